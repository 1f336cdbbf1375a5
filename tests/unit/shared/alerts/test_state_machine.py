"""Tests of the transitions of alerts."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from shared.alerts.conditions import AlertGroup
from shared.alerts.models import Alert, AlertState, Mark
from shared.alerts.state_machine import MAX_REFRESHED, compute_alert_changes
from tests.unit.shared.alerts.fakes import AT, SECOND, build_rule

PENDING, FIRING, RESOLVED = AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED
STEPS = st.lists(
    st.tuples(st.integers(-30, 90), st.dictionaries(st.sampled_from("abc"), st.booleans(), max_size=3)), max_size=12
)


class AlertTimeline:
    """Alerts of one rule over several evaluations.

    Attributes:
        alerts: active alerts by the value of their label.
        history: stored versions of each alert, by id.
        deleted: ids of deleted alerts.
    """

    def __init__(self, hold: str = "PT0S") -> None:
        self.rule = build_rule(**{"groupBy": ["device"], "for": hold})
        self.at = AT
        self.alerts: dict[str | None, Alert] = {}
        self.history: dict[str, list[Alert]] = defaultdict(list)
        self.deleted: list[str] = []
        self._ids = count(1)

    def evaluate(self, groups: Mapping[str, bool], seconds: float = 60, value: float = 9) -> list[AlertState]:
        """Evaluate the rule after some seconds, complete all pending tasks, and return the states of active alerts."""
        self.at += seconds * SECOND
        found = [AlertGroup({"device": device}, value, matches) for device, matches in groups.items()]
        stored = list(self.alerts.values())
        changes = compute_alert_changes(self.rule, stored, found, self.at, lambda: str(next(self._ids)))
        for alert in changes.puts:
            self.history[alert.id].append(alert)
        self.deleted += changes.deletes
        self.alerts = {alert.labels["device"]: alert.copy_without_marks(*Mark) for alert in changes.active}
        return [alert.state for alert in self.alerts.values()]


def test_an_alert_fires_and_resolves() -> None:
    """If a rule has no `for`, its alert fires at the first match and resolves when the condition is no longer met."""
    timeline = AlertTimeline()
    assert timeline.evaluate({"a": True, "b": False}) == [FIRING]
    assert timeline.evaluate({"a": True}) == [FIRING]
    assert timeline.evaluate({"a": False}) == []
    fired, resolved = timeline.history["1"]
    assert (fired.started_at, fired.fired_at, fired.marks) == (AT + 60 * SECOND, AT + 60 * SECOND, (Mark.FIRING,))
    assert (resolved.state, resolved.resolved_at, resolved.marks) == (RESOLVED, AT + 180 * SECOND, (Mark.RESOLVED,))


def test_the_alert_of_a_missing_group_resolves() -> None:
    """An alert is resolved if its group is no longer in the data."""
    timeline = AlertTimeline()
    timeline.evaluate({"a": True})
    assert timeline.evaluate({}) == []
    assert timeline.history["1"][-1].state is RESOLVED


def test_a_pending_alert_starts_again_after_the_clock_was_set_back() -> None:
    """If the clock is set back by over five minutes, the hold time of pending alerts starts again."""
    timeline = AlertTimeline("PT2M")
    assert timeline.evaluate({"a": True}) == [PENDING]
    assert timeline.evaluate({"a": True}, -3_000) == [PENDING]
    restarted = timeline.at
    assert timeline.evaluate({"a": True}, 60) == [PENDING]
    assert timeline.evaluate({"a": True}, 60) == [FIRING]
    fired = timeline.history["1"][-1]
    assert (fired.started_at, fired.fired_at) == (restarted, restarted + 120 * SECOND)


def test_an_alert_with_for_is_pending_first() -> None:
    """An alert of a rule with `for` is pending until its condition has been met for this time; then it fires."""
    timeline = AlertTimeline("PT2M")
    assert [timeline.evaluate({"a": True}) for _ in range(3)] == [[PENDING], [PENDING], [FIRING]]
    assert [alert.marks for alert in timeline.history["1"]] == [(), (Mark.FIRING,)]
    fired = timeline.alerts["a"]
    assert (fired.started_at, fired.fired_at) == (AT + 60 * SECOND, AT + 180 * SECOND)


def test_a_pending_alert_that_ends_is_deleted() -> None:
    """If the condition of a pending alert ends before the hold time, the alert is deleted without a notification."""
    timeline = AlertTimeline("PT2M")
    timeline.evaluate({"a": True})
    assert timeline.evaluate({"a": False}) == []
    assert timeline.deleted == ["1"]
    assert [alert.marks for alert in timeline.history["1"]] == [()]


def test_an_acknowledged_pending_alert_stays_in_the_history() -> None:
    """If a pending alert was acknowledged, it is resolved instead of deleted, without a notification."""
    timeline = AlertTimeline("PT2M")
    timeline.evaluate({"a": True})
    timeline.alerts["a"] = timeline.alerts["a"].copy_with_changes(acknowledged_by="editor@t")
    timeline.evaluate({"a": False})
    assert timeline.deleted == []
    assert (timeline.history["1"][-1].state, timeline.history["1"][-1].marks) == (RESOLVED, ())


def test_each_period_of_a_met_condition_is_a_separate_alert() -> None:
    """Each period in which the condition is met is a separate alert; `for` suppresses short periods."""
    timeline, patient = AlertTimeline(), AlertTimeline("PT2M")
    for index in range(6):
        timeline.evaluate({"a": index % 2 == 0})
        patient.evaluate({"a": index % 2 == 0})
    assert [len(versions) for versions in timeline.history.values()] == [2, 2, 2]
    assert not any(Mark.FIRING in alert.marks for versions in patient.history.values() for alert in versions)


def test_values_of_active_alerts_are_stored_unless_there_are_many() -> None:
    """Each evaluation stores the values of active alerts; if a rule has many alerts, only transitions store values."""
    timeline, large = AlertTimeline(), AlertTimeline()
    timeline.evaluate({"a": True}, value=6)
    timeline.evaluate({"a": True}, value=8)
    assert timeline.alerts["a"].value == 8
    groups = {str(number): True for number in range(MAX_REFRESHED + 1)}
    large.evaluate(groups, value=6)
    large.evaluate(groups, value=8)
    assert {alert.value for alert in large.alerts.values()} == {6}


def test_a_rule_can_have_ten_thousand_alerts() -> None:
    """A rule with ten thousand matching groups has ten thousand alerts."""
    timeline = AlertTimeline()
    assert len(timeline.evaluate({str(number): True for number in range(10_000)})) == 10_000
    assert timeline.evaluate({}) == []
    assert len(timeline.history) == 10_000


def test_a_fired_alert_has_name_and_severity_of_the_changed_rule() -> None:
    """If a rule changes while its alert is pending, the alert fires with the rule's new name and severity."""
    timeline = AlertTimeline("PT1M")
    timeline.evaluate({"a": True})
    timeline.rule = timeline.rule.model_copy(update={"name": "Hotter", "severity": "info"})
    timeline.evaluate({"a": True})
    assert (timeline.alerts["a"].name, timeline.alerts["a"].severity) == ("Hotter", "info")


@given(STEPS, st.sampled_from(["PT0S", "PT1M", "PT3M"]))
def test_an_alert_fires_and_resolves_at_most_once(steps: list[tuple[int, dict[str, bool]]], hold: str) -> None:
    """For any values and clock changes, each alert fires at most once and then resolves at most once."""
    timeline = AlertTimeline(hold)
    for seconds, groups in steps:
        timeline.evaluate(groups, seconds)
        matching = {device for device, matches in groups.items() if matches}
        assert timeline.alerts.keys() == matching
        for alert in timeline.alerts.values():
            assert (alert.state is FIRING) is (alert.fired_at is not None)
            assert alert.fired_at is None or alert.fired_at - alert.started_at >= timeline.rule.hold_duration
    for versions in timeline.history.values():
        marks = [mark for alert in versions for mark in alert.marks]
        states = [alert.state for alert in versions]
        assert marks in ([], [Mark.FIRING], [Mark.FIRING, Mark.RESOLVED])
        assert states == sorted(states, key=[PENDING, FIRING, RESOLVED].index)
        last = versions[-1]
        times = [at for at in (last.started_at, last.fired_at, last.resolved_at) if at is not None]
        assert times == sorted(times)
