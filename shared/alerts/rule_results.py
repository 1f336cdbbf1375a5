"""Computation of an alert rule's new state after an evaluation, a failed evaluation, or the end of the rule.

The module also builds the report about a rule for API callers, which is derived from the state.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.alerts.conditions import AlertGroup
from shared.alerts.due_times import build_data_source_key
from shared.alerts.models import Alert, AlertState, Mark, RuleState, RuleStatus
from shared.alerts.ports import RuleRecord
from shared.alerts.state_machine import AlertChanges, add_alert_end_to_changes, compute_alert_changes
from shared.catalog.alert_rule_models import AlertRule, Severity
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.timestamps import format_rfc3339

MAX_ERROR: Final = 2_000
"""Maximum number of characters of the stored reason of a failure."""


def build_rule_revision(entry: CatalogEntry[AlertRule]) -> str:
    """Return a text that identifies the current version of an alert rule; each edit of the rule changes it."""
    return f"{format_rfc3339(entry.created_at)}/{format_rfc3339(entry.updated_at)}"


def is_current_rule(entry: CatalogEntry[AlertRule], catalog: Catalog) -> bool:
    """Return whether a catalog contains this version of an alert rule: it was neither edited nor deleted."""
    current = catalog.alert_rules.get(entry.value.lookup)
    return current is not None and build_rule_revision(current) == build_rule_revision(entry)


def has_changed_condition(rule: AlertRule, state: RuleState | None) -> bool:
    """Return whether the data source or the condition of a rule was edited since its active alerts met the condition.

    A rule whose state was stored by an earlier version of the service counts as unchanged.
    """
    return state is not None and state.condition_digest not in {"", _compute_condition_digest(rule)}


def _compute_condition_digest(rule: AlertRule) -> str:
    """Return a digest of the fields that decide whether a group of the data meets the condition of a rule."""
    condition = None if rule.condition is None else rule.condition.model_dump(mode="json")
    text = json.dumps([build_data_source_key(rule), condition, rule.after])
    return hashlib.sha256(text.encode()).hexdigest()


def has_open_alerts_of_deleted_rule(entry: CatalogEntry[AlertRule], record: RuleRecord) -> bool:
    """Return whether a record has open alerts of a deleted rule with the same lookup (id in URLs) as this rule.

    The alerts of the deleted rule must end before this rule is evaluated, because a record has space for only one alert
    about failed evaluations.
    """
    state = record.state
    if state is None or state.revision.startswith(f"{format_rfc3339(entry.created_at)}/"):
        return False
    return state.error_alert is not None or any(alert.is_active for alert in record.alerts)


def compute_state_after_evaluation(
    entry: CatalogEntry[AlertRule],
    record: RuleRecord,
    groups: Iterable[AlertGroup],
    at: datetime,
    due_at: datetime,
    new_id: Callable[[], str],
) -> tuple[RuleState, AlertChanges]:
    """Return a rule's new state and the changes to its alerts after a successful evaluation.

    Args:
        entry: alert rule with its creation time.
        record: stored state and alerts of the rule.
        groups: evaluated groups of the rule's data.
        at: time of the evaluation.
        due_at: time of the next evaluation.
        new_id: returns a new id.
    """
    restarts_hold_duration = has_changed_condition(entry.value, record.state)
    changes = compute_alert_changes(
        entry.value, record.alerts, groups, at, new_id, restarts_hold_duration=restarts_hold_duration
    )
    error_alert = _resolve_error_alert_if_any(record.state, at)
    state = RuleState(
        rule=record.rule,
        revision=build_rule_revision(entry),
        condition_digest=_compute_condition_digest(entry.value),
        evaluated_at=at,
        due_at=due_at,
        error_alert=error_alert,
        firing=sum(alert.state is AlertState.FIRING for alert in changes.active),
        pending=sum(alert.state is AlertState.PENDING for alert in changes.active),
        has_marks=_has_unpublished_events(record.alerts, changes.puts, error_alert),
    )
    return state, changes


def compute_state_after_failure(
    entry: CatalogEntry[AlertRule],
    record: RuleRecord,
    reason: str,
    at: datetime,
    due_at: datetime,
    new_id: Callable[[], str],
) -> RuleState:
    """Return the new state of a rule whose evaluation failed; the rule's alerts do not change.

    The first failure starts an alert of severity `warning` about the rule: ``error_alert`` in the new state. Further
    failures only replace ``error`` in the state.

    Args:
        entry: alert rule with its creation time.
        record: stored state and alerts of the rule.
        reason: reason of the failure, for users.
        at: time of the evaluation.
        due_at: time of the next evaluation.
        new_id: returns a new id.
    """
    before = record.state
    error_alert = before.error_alert if before is not None else None
    if error_alert is None:
        error_alert = _build_error_alert(entry.value, reason, at, new_id())
    return RuleState(
        rule=record.rule,
        revision=build_rule_revision(entry),
        condition_digest=before.condition_digest if before else "",
        evaluated_at=at,
        due_at=due_at,
        error=reason[:MAX_ERROR],
        error_alert=error_alert,
        firing=before.firing if before else 0,
        pending=before.pending if before else 0,
        has_marks=_has_unpublished_events(record.alerts, (), error_alert),
    )


def compute_state_after_rule_end(
    state: RuleState, alerts: Sequence[Alert], at: datetime
) -> tuple[RuleState, AlertChanges]:
    """Return the new state of a disabled or deleted rule, and the changes that end all its alerts.

    Args:
        state: stored state of the rule.
        alerts: stored alerts of the rule.
        at: the current time.
    """
    changes = AlertChanges()
    for alert in alerts:
        if alert.is_active:
            add_alert_end_to_changes(alert, at, changes)
    error_alert = _resolve_error_alert_if_any(state, at)
    ended = state.model_copy(
        update={
            "error": None,
            "error_alert": error_alert,
            "firing": 0,
            "pending": 0,
            "has_marks": _has_unpublished_events(alerts, changes.puts, error_alert),
        }
    )
    return ended, changes


def _has_unpublished_events(
    alerts: Iterable[Alert], changed_alerts: Iterable[Alert], error_alert: Alert | None
) -> bool:
    """Return whether a rule has alerts with marks (events that are not published yet) after an evaluation.

    The stored version of a changed alert counts, too, because an evaluation only adds marks.

    Args:
        alerts: stored alerts of the rule before the evaluation.
        changed_alerts: alerts that the evaluation has changed or created.
        error_alert: alert about failed evaluations; None if there is none.
    """
    return any(alert.marks for alert in (*alerts, *changed_alerts)) or bool(error_alert and error_alert.marks)


def _build_error_alert(rule: AlertRule, reason: str, at: datetime, alert_id: str) -> Alert:
    return Alert(
        id=alert_id,
        rule=rule.lookup,
        name=rule.name,
        severity=Severity.WARNING,
        surface=rule.surface,
        runbook_url=rule.runbook_url,
        labels={"error": reason[:MAX_ERROR]},
        state=AlertState.FIRING,
        value=None,
        started_at=at,
        fired_at=at,
        marks=(Mark.FIRING,),
    )


def _resolve_error_alert_if_any(state: RuleState | None, at: datetime) -> Alert | None:
    """Return the rule's alert about failed evaluations, resolved if it was firing; None if the rule has none."""
    alert = state.error_alert if state is not None else None
    if alert is None or not alert.is_active:
        return alert
    resolved_at = max(at, alert.started_at)
    return alert.copy_with_changes(
        state=AlertState.RESOLVED, resolved_at=resolved_at, marks=(*alert.marks, Mark.RESOLVED)
    )


@dataclass(frozen=True, slots=True)
class RuleStatusReport:
    """Report for callers about the newest evaluation of an alert rule.

    Attributes:
        status: status of the rule, such as ``firing``.
        error: reason why the newest evaluation failed; else None.
        evaluated_at: time of the newest evaluation; None before the first one.
        due_at: time of the next evaluation, in the past if the rule was just changed; None for a disabled rule.
    """

    status: RuleStatus
    error: str | None
    evaluated_at: datetime | None
    due_at: datetime | None


def build_status_report(entry: CatalogEntry[AlertRule], state: RuleState | None) -> RuleStatusReport:
    """Build the report about the newest evaluation of an alert rule.

    A state of a deleted rule with the same lookup (id in URLs) is ignored.

    Args:
        entry: alert rule with its creation time.
        state: stored state of the rule; None before the first evaluation.
    """
    if state is None or not state.revision.startswith(build_rule_revision(entry).partition("/")[0]):
        return RuleStatusReport(RuleStatus.OK, None, None, entry.updated_at if entry.value.enabled else None)
    if not entry.value.enabled:
        return RuleStatusReport(RuleStatus.OK, None, state.evaluated_at, None)
    # A changed rule is evaluated at once.
    due_at = state.due_at if state.revision == build_rule_revision(entry) else entry.updated_at
    return RuleStatusReport(state.status, state.error, state.evaluated_at, due_at)
