"""State machine of alerts: pending, firing, resolved."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from shared.alerts.conditions import AlertGroup, GroupKey, to_group_key
from shared.alerts.models import Alert, AlertState, Mark
from shared.background.ports import cap_stored_time
from shared.catalog.alert_rule_models import AlertRule

MAX_REFRESHED: Final = 100
"""Maximum number of alerts of a rule whose values are stored at each evaluation, because each costs a write."""


@dataclass(frozen=True, slots=True)
class AlertChanges:
    """Changes to the stored alerts of a rule after an evaluation.

    Attributes:
        puts: alerts to create or replace.
        deletes: ids of unacknowledged pending alerts that end without having fired.
        active: pending and firing alerts after the changes.
    """

    puts: list[Alert] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    active: list[Alert] = field(default_factory=list)


def compute_alert_changes(
    rule: AlertRule,
    alerts: Sequence[Alert],
    groups: Iterable[AlertGroup],
    at: datetime,
    new_id: Callable[[], str],
    *,
    restarts_hold_duration: bool = False,
) -> AlertChanges:
    """Return the changes to a rule's alerts after an evaluation.

    Args:
        rule: rule that was evaluated.
        alerts: stored alerts of the rule; resolved ones are ignored.
        groups: evaluated groups of the rule's data.
        at: time of the evaluation. If the clock was set back, an alert does not fire or end before its start, and a
            pending alert whose start is later than ``at`` by more than ``CLOCK_TOLERANCE`` starts again. An alert of an
            absence rule does not end before the next message of its connection.
        new_id: returns a new id.
        restarts_hold_duration: True if the hold time of pending alerts begins again, because the rule's data source or
            condition was edited.
    """
    by_key = {group.key: group for group in groups}
    active: Mapping[GroupKey, Alert] = {to_group_key(alert.labels): alert for alert in alerts if alert.is_active}
    refreshes = len(active) <= MAX_REFRESHED
    changes = AlertChanges()
    for key, alert in active.items():
        group = by_key.get(key)
        if group is not None and (group.matches or (_has_no_new_message(alert, group) and not restarts_hold_duration)):
            after = _continue_alert(
                rule, alert, group, at, refreshes_value=refreshes, restarts_hold_duration=restarts_hold_duration
            )
            changes.active.append(after)
            if after != alert:
                changes.puts.append(after)
        else:
            add_alert_end_to_changes(alert, at, changes)
    for key, group in by_key.items():
        if group.matches and key not in active:
            begun = _begin_alert(rule, group, at, new_id())
            changes.puts.append(begun)
            changes.active.append(begun)
    return changes


def _has_no_new_message(alert: Alert, group: AlertGroup) -> bool:
    """Return whether the connection of an absence rule's alert has sent no message since the latest evaluation.

    The silence can then be too short for the rule only because the clock was set back.
    """
    return group.message_count is not None and group.message_count == alert.message_count


def add_alert_end_to_changes(alert: Alert, at: datetime, changes: AlertChanges) -> None:
    """Add the end of an active alert to ``changes``.

    A pending alert without an acknowledgement is deleted; every other alert becomes resolved.
    """
    if alert.state is AlertState.PENDING and alert.acknowledged_by is None:
        changes.deletes.append(alert.id)
        return
    marks = (*alert.marks, Mark.RESOLVED) if alert.state is AlertState.FIRING else alert.marks
    latest = max(at, alert.fired_at or alert.started_at)
    changes.puts.append(alert.copy_with_changes(state=AlertState.RESOLVED, resolved_at=latest, marks=marks))


def _begin_alert(rule: AlertRule, group: AlertGroup, at: datetime, alert_id: str) -> Alert:
    """Build the alert of a group that begins to meet the condition.

    The alert is pending during the rule's hold duration; if the rule has none, the alert fires at once.
    """
    pending = Alert(
        id=alert_id,
        rule=rule.lookup,
        name=rule.name,
        severity=rule.severity,
        surface=rule.surface,
        runbook_url=rule.runbook_url,
        labels=dict(group.labels),
        connection=group.connection,
        message_count=group.message_count,
        state=AlertState.PENDING,
        value=group.value,
        started_at=at,
    )
    return pending if rule.hold_duration else _fire_alert(pending, at)


def _continue_alert(
    rule: AlertRule,
    alert: Alert,
    group: AlertGroup,
    at: datetime,
    *,
    refreshes_value: bool,
    restarts_hold_duration: bool,
) -> Alert:
    """Return the updated alert of a group that still meets the condition; pending alerts fire after their hold time."""
    if alert.message_count != group.message_count:
        alert = alert.copy_with_changes(message_count=group.message_count)
    if alert.state is AlertState.PENDING:
        # Without the cap, the alert would not fire until the clocks reach the stored time again.
        started_at = at if restarts_hold_duration else cap_stored_time(alert.started_at, at)
        alert = alert.copy_with_changes(started_at=started_at)
    if alert.state is AlertState.PENDING and at - alert.started_at >= rule.hold_duration:
        renamed = alert.copy_with_changes(
            name=rule.name, severity=rule.severity, surface=rule.surface, runbook_url=rule.runbook_url
        )
        return _fire_alert(renamed.copy_with_changes(value=group.value), at)
    return alert.copy_with_changes(value=group.value) if refreshes_value else alert


def _fire_alert(alert: Alert, at: datetime) -> Alert:
    marks = (*alert.marks, Mark.FIRING)
    return alert.copy_with_changes(state=AlertState.FIRING, fired_at=max(at, alert.started_at), marks=marks)
