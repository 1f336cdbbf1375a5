"""Tests of the times at which alert rules are due."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.alerts.due_times import build_data_source_key, compute_next_due_time, is_due
from shared.alerts.models import RuleState
from tests.unit.shared.alerts.fakes import AT, SECOND, build_absence_rule, build_rule

TIMES = st.timedeltas(timedelta(0), timedelta(days=400)).map(lambda passed: AT + passed)
EVERY = st.sampled_from(["PT15S", "PT1M", "PT7M30S", "P1D"])


@given(TIMES, EVERY)
def test_the_next_due_time_is_within_one_interval(at: datetime, every: str) -> None:
    """The next due time of a rule is at most one interval in the future; due times are one interval apart."""
    rule = build_rule(every=every)
    due = compute_next_due_time(rule, at)
    assert timedelta(0) < due - at <= rule.interval
    assert compute_next_due_time(rule, due) == due + rule.interval


def test_a_late_rule_is_due_once() -> None:
    """After an outage of many intervals, a rule is evaluated once and is next due in the future."""
    rule = build_rule()
    state = RuleState(rule="hot", revision="r", due_at=AT)
    late = AT + timedelta(hours=3)
    assert is_due(rule, "r", state, late)
    after = state.model_copy(update={"due_at": compute_next_due_time(rule, late)})
    assert not is_due(rule, "r", after, late)


def test_rules_with_the_same_data_are_due_together() -> None:
    """Rules with equal query, parameters and time range are due at the same times, other rules at other times."""
    first, second = build_rule(timeRange="PT5M"), build_rule(lookup="x", timeRange="PT5M", severity="info")
    assert build_data_source_key(first) == build_data_source_key(second)
    assert compute_next_due_time(first, AT) == compute_next_due_time(second, AT)
    others = [build_rule(parameters={"device": str(number)}) for number in range(20)]
    assert len({compute_next_due_time(rule, AT) for rule in others}) == 20
    assert build_data_source_key(build_absence_rule()) != build_data_source_key(first)


def test_new_and_changed_rules_are_due_at_once() -> None:
    """A rule is due at once if it has no stored state, or if its state belongs to an earlier revision of the rule."""
    state = RuleState(rule="hot", revision="r", due_at=AT + SECOND)
    assert is_due(build_rule(), "r", None, AT)
    assert is_due(build_rule(), "changed", state, AT)
    assert not is_due(build_rule(), "r", state, AT)
    assert is_due(build_rule(), "r", state, AT + SECOND)


def test_a_clock_that_was_set_back_does_not_stop_the_rule() -> None:
    """If the stored due time is further away than one interval, the rule is due at once."""
    state = RuleState(rule="hot", revision="r", due_at=AT + timedelta(hours=1))
    assert is_due(build_rule(), "r", state, AT)
