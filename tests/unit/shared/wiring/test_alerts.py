"""Tests of the selection of the store for alerts, and of the catalog with which rules are evaluated."""

import contextlib
from dataclasses import replace

import pytest

from shared.catalog.document import load_document
from shared.catalog.items import ItemKind
from shared.errors import Kind, WorkspaceError
from shared.wiring import Services
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.wiring.conftest import Choice

RULE = """alertRules:
  - lookup: silent
    name: Silent
    severity: info
    surface: cooling
    kind: absence
    every: PT1M
    connections: [rig]
    after: PT0.001S
"""


def test_the_setting_stores_selects_the_alert_store(find_store_classes: Choice) -> None:
    """The setting STORES selects the store of alerts, of the same kind as the other stores."""
    assert find_store_classes(lambda services: services.alerts.store) == ("SqliteAlertStore", "CosmosAlertStore")


async def test_a_rule_that_another_instance_disables_during_its_evaluation_does_not_fire(
    local_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another instance disables a rule while its data is read, the result is not used."""
    await local_services.provenance.catalog_service.apply(load_document(PLANT + RULE, "test"), "apply")
    states, catalog_store = local_services.telemetry.connection_states, local_services.catalog.store
    load = states.load_states_by_connection

    async def disable_rule_in_store_and_load() -> object:
        stored = await catalog_store.load()
        [rule] = [item for item in stored.items if item.kind == ItemKind.ALERT_RULE]
        disabled = replace(rule, definition={**rule.definition, "enabled": False})
        await catalog_store.save([disabled], [], [], stored.version)
        return await load()

    monkeypatch.setattr(states, "load_states_by_connection", disable_rule_in_store_and_load)
    await local_services.alerts.scheduler.evaluate_due_rules()
    assert not (await local_services.alerts.store.load_rule_record("silent")).alerts


async def test_no_result_is_stored_while_the_catalog_cannot_be_read(
    local_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store of the catalog fails while a rule's data is read, the rule is not judged by the cached catalog."""
    states, catalog_store, is_failing = local_services.telemetry.connection_states, local_services.catalog.store, False
    load, read_version = states.load_states_by_connection, catalog_store.read_version

    async def read_version_or_fail() -> int:
        if is_failing:
            raise WorkspaceError(Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE", "the store does not respond")
        return await read_version()

    async def load_states_and_break_catalog_store() -> object:
        nonlocal is_failing
        is_failing = True
        return await load()

    monkeypatch.setattr(catalog_store, "read_version", read_version_or_fail)
    monkeypatch.setattr(states, "load_states_by_connection", load_states_and_break_catalog_store)
    await local_services.provenance.catalog_service.apply(load_document(PLANT + RULE, "test"), "apply")
    with contextlib.suppress(WorkspaceError):
        await local_services.alerts.scheduler.evaluate_due_rules()
    assert is_failing
    assert not (await local_services.alerts.store.load_rule_record("silent")).alerts
