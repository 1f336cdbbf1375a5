"""Tests of the checks of single catalog items."""

from typing import Any

import pytest

from shared.catalog.item_checks import (
    find_alert_rule_errors,
    find_connection_errors,
    find_settings_errors,
    find_surface_errors,
)
from shared.catalog.items import WorkspaceSettings
from shared.catalog.models import AlertRule, Connection, Surface, WorkspaceInfo
from shared.errors import MAX_LISTED

SIMULATOR = {"variables": [{"name": "t", "kind": "sine", "min": 1, "max": 2, "periodSec": 60}]}
RULE = {
    "lookup": "r",
    "name": "R",
    "severity": "info",
    "surface": "cooling",
    "kind": "absence",
    "every": "PT15S",
    "connections": ["rig"],
    "after": "PT5M",
}


def test_the_field_of_an_error_is_relative_to_the_item() -> None:
    """The field of an error is relative to the item in the request instead of a whole document."""
    broken = {"lookup": "a", "name": "A", "type": "CLOUD_EVENT_HUB", "simulator": SIMULATOR}
    [error] = find_connection_errors(Connection.model_validate(broken))
    assert error.field == "simulator"
    assert find_connection_errors(Connection.model_validate({**broken, "type": "SIMULATOR"})) == []


def test_a_surface_must_name_existing_connections() -> None:
    """A surface with an unknown connection is rejected; the error has the connection's index in the list."""
    surface = Surface.model_validate({"lookup": "s", "name": "S", "connections": ["rig", "none"]})
    assert [error.field for error in find_surface_errors(surface, ["rig"])] == ["connections[1]"]
    assert find_surface_errors(surface, ["rig", "none"]) == []


def test_the_search_for_errors_of_an_item_ends_after_a_thousand() -> None:
    """The search for errors ends after one error more than a reply lists."""
    names = [f"c{number}" for number in range(5_000)]
    surface = Surface.model_validate({"lookup": "s", "name": "S", "connections": names})
    assert len(find_surface_errors(surface, [])) == MAX_LISTED + 1


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, []),
        ({"surface": "none"}, ["surface"]),
        ({"connections": ["none"]}, ["connections[0]"]),
        ({"condition": {"rows": "any"}}, ["condition"]),
    ],
)
def test_an_alert_rule_must_name_existing_items(changes: dict[str, Any], fields: list[str]) -> None:
    """An alert rule that names an unknown item is rejected, because it would never fire."""
    rule = AlertRule.model_validate({**RULE, **changes})
    assert [error.field for error in find_alert_rule_errors(rule, ["rig"], ["cooling"])] == fields


def test_quotas_have_the_maximum_of_the_tier() -> None:
    """A quota above the maximum of the tier is reported with its path in the settings."""
    workspace = WorkspaceInfo.model_validate({"id": "plant-a", "name": "A"})
    valid = WorkspaceSettings.model_validate({"policies": {"quotas": {"streamsPerPrincipal": 1}}})
    excessive = WorkspaceSettings.model_validate({"policies": {"quotas": {"streamsPerPrincipal": 10_000}}})
    assert find_settings_errors(workspace, valid) == []
    assert [error.field for error in find_settings_errors(workspace, excessive)] == [
        "policies.quotas.streamsPerPrincipal"
    ]
