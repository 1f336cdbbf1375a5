"""Tests of the models of alerts."""

from typing import Any

import pytest

from shared.alerts.models import Alert, AlertState, Mark, RuleState, RuleStatus
from tests.unit.shared.alerts.fakes import AT

ALERT = Alert.model_validate(
    {
        "id": "a1",
        "rule": "hot",
        "name": "Hot",
        "severity": "critical",
        "surface": "hall",
        "runbook_url": None,
        "labels": {},
        "state": "firing",
        "value": 9,
        "started_at": AT,
    }
)


@pytest.mark.parametrize(("state", "is_active"), [("pending", True), ("firing", True), ("resolved", False)])
def test_an_alert_is_active_until_it_is_resolved(state: str, *, is_active: bool) -> None:
    """Pending and firing alerts are active; resolved alerts are not."""
    assert ALERT.copy_with_changes(state=AlertState(state)).is_active is is_active


def test_marks_of_pending_alert_tasks_are_removed_one_by_one() -> None:
    """Each unfinished task of an alert has a mark; when a task is done, only its own mark is removed."""
    marked = ALERT.copy_with_changes(marks=(Mark.FIRING, Mark.ACKNOWLEDGED))
    assert marked.copy_without_marks(Mark.FIRING, Mark.RESOLVED).marks == (Mark.ACKNOWLEDGED,)


@pytest.mark.parametrize(
    ("values", "status", "is_idle"),
    [
        ({}, RuleStatus.OK, True),
        ({"pending": 1}, RuleStatus.PENDING, False),
        ({"firing": 1, "pending": 1}, RuleStatus.FIRING, False),
        ({"firing": 1, "error": "x"}, RuleStatus.ERROR, False),
        ({"has_marks": True}, RuleStatus.OK, False),
        ({"error_alert": ALERT}, RuleStatus.OK, False),
    ],
)
def test_the_status_of_an_alert_rule_is_its_worst_state(
    values: dict[str, Any], status: RuleStatus, *, is_idle: bool
) -> None:
    """In the status of a rule, error has priority over firing; a rule with unfinished work is not idle."""
    state = RuleState(rule="hot", revision="r", due_at=AT, **values)
    assert (state.status, state.is_idle) == (status, is_idle)
