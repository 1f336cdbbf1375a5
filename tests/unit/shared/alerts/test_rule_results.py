"""Tests of the states of alert rules after evaluations, and of their status in API replies."""

from dataclasses import replace

from shared.alerts.conditions import AlertGroup
from shared.alerts.models import RuleState, RuleStatus
from shared.alerts.ports import RuleRecord
from shared.alerts.rule_results import (
    RuleStatusReport,
    build_rule_revision,
    build_status_report,
    compute_state_after_evaluation,
)
from tests.unit.shared.alerts.fakes import AT, SECOND, build_entry, build_rule


def test_a_new_alert_rule_is_due_at_once() -> None:
    """A rule that was never evaluated has the state ok and is due; a disabled rule is never due."""
    assert build_status_report(build_entry(build_rule()), None) == RuleStatusReport(RuleStatus.OK, None, None, AT)
    disabled = build_status_report(build_entry(build_rule(enabled=False)), None)
    assert (disabled.status, disabled.due_at) == (RuleStatus.OK, None)


def test_an_evaluated_rule_shows_its_result() -> None:
    """An evaluated rule shows its stored result; a rule that was changed afterwards is due since the change."""
    entry = build_entry(build_rule())
    state = RuleState(
        rule="hot",
        revision=build_rule_revision(entry),
        status=RuleStatus.ERROR,
        error="draft",
        evaluated_at=AT,
        due_at=AT + SECOND,
    )
    assert build_status_report(entry, state) == RuleStatusReport(RuleStatus.ERROR, "draft", AT, AT + SECOND)
    changed = replace(entry, updated_at=AT + SECOND * 5)
    assert build_status_report(changed, state).due_at == AT + SECOND * 5
    other = build_status_report(build_entry(build_rule(), created_at=AT + SECOND), state)
    assert (other.status, other.evaluated_at) == (RuleStatus.OK, None)


def test_an_unchanged_alert_with_marks_is_still_to_be_published() -> None:
    """The state of a rule has marks if a stored alert has marks, even if the evaluation does not change the alert."""
    entry, group = build_entry(build_rule()), AlertGroup({}, 9.0, matches=True)
    due_at = AT + SECOND
    _, begun = compute_state_after_evaluation(entry, RuleRecord("hot"), [group], AT, due_at, lambda: "a")
    record = RuleRecord("hot", None, tuple(begun.puts))
    state, changes = compute_state_after_evaluation(entry, record, [group], AT, due_at, lambda: "b")
    assert (changes.puts, state.firing, state.has_marks) == ([], 1, True)
