"""Tests of the models of alert rules."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from shared.catalog.alert_rule_models import AlertRule, has_same_query_use, iterate_rule_errors
from shared.catalog.fields import DECLARED

COMMON = {"lookup": "r", "name": "R", "severity": "info", "surface": "s", "every": "PT1M"}
ABSENCE = {**COMMON, "kind": "absence", "connections": ["rig"], "after": "PT5M"}
THRESHOLD = {**COMMON, "kind": "threshold", "query": "q", "condition": {"rows": "any"}}


def test_a_definition_has_only_the_properties_of_its_kind() -> None:
    """The stored definition of an alert rule has only the fields of its kind, because a document rejects all others."""
    threshold = AlertRule.model_validate(THRESHOLD).model_dump(mode="json", by_alias=True)
    absence = AlertRule.model_validate(ABSENCE).model_dump(mode="json", by_alias=True)
    assert not threshold.keys() & {"connections", "after"}
    assert not absence.keys() & {"query", "parameters", "timeRange", "condition", "groupBy"}
    assert threshold["condition"] == {"rows": "any"}


@pytest.mark.parametrize(
    "changes",
    [
        {"every": "PT14S"},
        {"every": "P1DT1S"},
        {"for": "-PT1S"},
        {"for": "P367D"},
        {"after": "PT0S"},
        {"runbookUrl": "ftp://x"},
        {"runbookUrl": "https://user:secret@x/"},
        {"condition": {"column": "c", "operator": "gt", "value": True}},
        {"condition": {"column": "c", "operator": "gt", "value": 10**400}},
    ],
)
def test_alert_rule_values_outside_the_limits_are_rejected(changes: dict[str, Any]) -> None:
    """A time outside the limits, a link with credentials, or a limit that is not a finite number is rejected."""
    with pytest.raises(ValidationError):
        AlertRule.model_validate({**ABSENCE, **changes})


@pytest.mark.parametrize("name", ["every", "for", "after"])
def test_only_declared_durations_must_have_whole_microseconds(name: str) -> None:
    """A fraction of a microsecond is rejected in a declared rule, but not in a rule that an earlier version stored."""
    fields = {**ABSENCE, name: "PT33.3333333S"}
    assert AlertRule.model_validate(fields).model_dump(by_alias=True)[name] == "PT33.3333333S"
    with pytest.raises(ValidationError, match="whole microseconds"):
        AlertRule.model_validate(fields, context=DECLARED)


def test_durations_of_alert_rules_are_parsed() -> None:
    """Interval and hold time are parsed as durations; the default hold time is zero."""
    rule = AlertRule.model_validate(ABSENCE)
    assert (rule.interval, rule.hold_duration) == (timedelta(minutes=1), timedelta(0))


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        (THRESHOLD, []),
        (ABSENCE, []),
        ({**THRESHOLD, "after": "PT5M"}, [("after",)]),
        ({**COMMON, "kind": "threshold"}, [("query",), ("condition",)]),
        ({**ABSENCE, "connections": []}, [("connections",)]),
        ({**ABSENCE, "connections": ["a", "b", "a"]}, [("connections", 2)]),
        ({**THRESHOLD, "condition": {"column": "c"}}, [("condition", "operator"), ("condition", "value")]),
        ({**THRESHOLD, "condition": {"rows": "any", "value": 1}}, [("condition", "value")]),
        ({**THRESHOLD, "condition": {"rows": "none"}, "groupBy": ["c"]}, [("groupBy",)]),
    ],
)
def test_contradictions_in_alert_rules_are_reported_at_their_fields(
    rule: dict[str, Any], fields: list[tuple[str | int, ...]]
) -> None:
    """Fields that do not belong to the kind of rule, incomplete conditions and repeated values are reported."""
    assert [path for path, _ in iterate_rule_errors(AlertRule.model_validate(rule))] == fields


@pytest.mark.parametrize(
    ("stored", "new", "is_same"), [(1, True, False), (0, False, False), (1, 1.0, True), (True, True, True)]
)
def test_a_number_and_a_boolean_are_different_uses_of_a_query(stored: object, new: object, *, is_same: bool) -> None:
    """A parameter that changes from a number to true or false is a changed use of the query; 1 and 1.0 are the same."""
    before, after = (
        {**THRESHOLD, "parameters": {"plain": value, "nested": [{"value": value}]}} for value in (stored, new)
    )
    assert has_same_query_use(before, after) is is_same
