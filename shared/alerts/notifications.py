"""Notifications about alerts after they are stored: webhook events and audit events."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import batched
from typing import Any, Final, NamedTuple

from shared.alerts.models import Alert, Mark
from shared.alerts.ports import AlertStore, RuleRecord
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.ports import AuditLog, Target
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339
from shared.webhooks.events import EventOutbox, WebhookEvent, WebhookEventType

SCOPE: Final = "alerts"
"""Scope of the audit events about alerts."""

MAX_PUBLISHED: Final = 100
"""Maximum number of alerts whose events are built and published together; more would block the event loop."""

_ALERT_SIZE: Final = 500
"""Assumed size of one alert; decides whether alerts are processed in a worker thread."""

_TYPES: Final = {Mark.FIRING: WebhookEventType.ALERT_FIRING, Mark.RESOLVED: WebhookEventType.ALERT_RESOLVED}
_LOG = get_logger("alerts")


@dataclass(slots=True)
class Outages:
    """Services that did not respond while the events of several rules were published.

    They are not called again during this publication, because each call would wait for its timeout.

    Attributes:
        has_publication_failed: whether the webhook outbox or the store of the alerts did not respond.
        has_audit_failed: whether the audit log did not respond.
    """

    has_publication_failed: bool = False
    has_audit_failed: bool = False


class Notifications:
    """Publisher of the webhook events and audit events about stored alerts.

    ``Alert.marks`` has a mark for each event about the alert that is not yet published.

    An event that is published twice has no second effect: the outbox and the audit log recognise the event's key.

    Args:
        store: storage of the alerts.
        outbox: publishes webhook events.
        audit_log: appends audit events.
        runtime: worker threads.
    """

    def __init__(
        self,
        store: AlertStore,
        outbox: EventOutbox,
        audit_log: AuditLog,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._audit_log = audit_log
        self._runtime = runtime

    async def publish_events_and_update_record(
        self, record: RuleRecord, outages: Outages | None = None
    ) -> RuleRecord | None:
        """Publish the unpublished events about a rule's alerts, remove the marks of the events; return the new record.

        Return None if another process changed the record meanwhile; the marks then stay, and the scheduler publishes
        the events again. If an audit event cannot be appended, only the mark of this event stays, because a damaged
        audit chain must not delay webhook events.

        Args:
            record: the rule's record, as it is stored.
            outages: outages so far. After an outage of the audit log, no more audit events are appended. The method
                records new outages of the audit log in this object.

        Raises:
            WorkspaceError: UNAVAILABLE if the outbox or the store does not respond; the marks stay.
        """
        error_alert = record.state.error_alert if record.state else None
        marked = [alert for alert in record.alerts if alert.marks]
        noted = [*marked, *([error_alert] if error_alert and error_alert.marks else [])]
        if not noted or record.state is None:
            return record
        for part in batched(noted, MAX_PUBLISHED, strict=False):
            if events := [event for alert in part for event in build_webhook_events(alert)]:
                await self._outbox.publish(events)
        unaudited = await self._append_audit_events_and_return_failed_ids(marked, outages or Outages())
        changed_alerts, open_alerts = await self._runtime.run_in_thread_if_large(
            len(marked) * _ALERT_SIZE, _clear_marks_of_published_events, record.alerts, unaudited
        )
        kept = error_alert.copy_without_marks(*Mark) if error_alert and error_alert.is_active else None
        state = record.state.model_copy(update={"has_marks": bool(unaudited), "error_alert": kept})
        if not changed_alerts and state == record.state:
            return record
        token = await self._store.try_save_rule_changes_and_return_token(record, state, changed_alerts)
        if token is None:
            return None
        return RuleRecord(record.rule, state, open_alerts, token)

    async def _append_audit_events_and_return_failed_ids(
        self, alerts: Iterable[Alert], outages: Outages
    ) -> frozenset[str]:
        """Append the audit events of acknowledged alerts; return the ids of the alerts whose event is not appended."""
        acknowledged = [alert for alert in alerts if Mark.ACKNOWLEDGED in alert.marks]
        unaudited = {alert.id for alert in acknowledged}
        for alert in acknowledged:
            if outages.has_audit_failed:
                break
            try:
                await self._append_audit_event(alert)
            except WorkspaceError as error:
                count("workspace.alerts.failures")
                _LOG.warning("an acknowledgement is not audited yet: %s", error, extra=fields(rule=alert.rule))
                outages.has_audit_failed = error.kind is Kind.UNAVAILABLE
            else:
                unaudited.discard(alert.id)
        return frozenset(unaudited)

    async def _append_audit_event(self, alert: Alert) -> None:
        event = build_acknowledgement_event(alert)
        user = str(alert.acknowledged_by)
        await self._audit_log.append(
            Target.DOMAIN_EVENTS, user, event, append_id=f"acknowledge-{alert.id}", scope_key=SCOPE
        )


class _ClearedAlerts(NamedTuple):
    """Alerts of a rule after the marks (unpublished events) of their published events were removed.

    Attributes:
        changed_alerts: alerts whose marks changed.
        open_alerts: pending and firing alerts, and resolved alerts that still have marks.
    """

    changed_alerts: list[Alert]
    open_alerts: tuple[Alert, ...]


def _clear_marks_of_published_events(alerts: Sequence[Alert], unaudited_alert_ids: AbstractSet[str]) -> _ClearedAlerts:
    """Remove the marks (unpublished events) of alerts after their events were published.

    Args:
        alerts: stored alerts of a rule.
        unaudited_alert_ids: ids of the alerts whose acknowledgement has no audit event yet; the marks of these
            acknowledgements stay.
    """
    cleared = [
        alert.copy_without_marks(*(_TYPES if alert.id in unaudited_alert_ids else Mark)) if alert.marks else alert
        for alert in alerts
    ]
    changed = [after for before, after in zip(alerts, cleared, strict=True) if after.marks != before.marks]
    return _ClearedAlerts(changed, tuple(alert for alert in cleared if alert.is_active or alert.marks))


def build_webhook_events(alert: Alert) -> Iterator[WebhookEvent]:
    """Yield the webhook events about an alert that are not yet published, in the order of its changes of state.

    ``alert.marks`` has a mark for each event about the alert that is not yet published.
    """
    for mark, at in ((Mark.FIRING, alert.fired_at), (Mark.RESOLVED, alert.resolved_at)):
        if mark in alert.marks and at is not None:
            yield WebhookEvent(
                key=f"{_TYPES[mark]}/{alert.id}",
                type=_TYPES[mark],
                at=at,
                data=_build_webhook_event_data(alert, mark),
                surfaces=frozenset({alert.surface}),
                connections=None if alert.connection is None else frozenset({alert.connection}),
                severity=alert.severity,
            )


def _build_webhook_event_data(alert: Alert, mark: Mark) -> dict[str, Any]:
    """Build the property ``data`` of a webhook event; ``mark`` is the event about the alert, such as ``firing``."""
    return {
        "alertId": alert.id,
        "rule": alert.rule,
        "name": alert.name,
        "severity": alert.severity.value,
        "state": mark.value,
        "labels": alert.labels,
        "value": alert.value,
        "startedAt": format_rfc3339(alert.started_at),
        "surface": alert.surface,
        "runbookUrl": alert.runbook_url,
    }


def build_acknowledgement_event(alert: Alert) -> dict[str, Any]:
    """Build the audit event of an alert's acknowledgement."""
    after = {
        "rule": alert.rule,
        "labels": alert.labels,
        "severity": alert.severity.value,
        "acknowledgedBy": alert.acknowledged_by,
        "acknowledgedAt": None if alert.acknowledged_at is None else format_rfc3339(alert.acknowledged_at),
        "comment": alert.comment,
    }
    return {
        "ActionType": "Alert.Acknowledged",
        "EntityType": "Alert",
        "EntityID": alert.id,
        "Name": alert.name,
        "AfterState": after,
    }
