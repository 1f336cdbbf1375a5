"""Alerts for API callers: rule states, trial evaluations, the list of alerts, and acknowledgement."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from shared.alerts.conditions import EvaluationError, to_group_key
from shared.alerts.evaluation import RuleEvaluation
from shared.alerts.models import Alert, AlertState, Labels, Mark, Number, RuleState
from shared.alerts.notifications import Notifications
from shared.alerts.ports import AlertFilter, AlertPlace, AlertStore, RuleRecord
from shared.alerts.rule_results import has_changed_condition
from shared.alerts.state_machine import compute_alert_changes
from shared.catalog.alert_rule_models import AlertRule
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.results import QueryResult

_ATTEMPTS: Final = 10
_GROUP_SIZE: Final = 500
_LOG = get_logger("alerts")


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """Group of the data in a trial evaluation of a rule.

    Attributes:
        labels: names and values that identify the group.
        value: value of the group that the condition compares.
        would_fire: True if the group's alert would be firing after an evaluation now.
    """

    labels: Labels
    value: Number | None
    would_fire: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a trial evaluation of an alert rule.

    Attributes:
        alerts: groups of the rule's data, each of which would have its own alert.
        rows: number of rows of the query; for an absence rule, the number of enabled connections that it watches.
        error: reason why the rule cannot be evaluated; None if it can.
    """

    alerts: Sequence[TrialGroup] = ()
    rows: int = 0
    error: str | None = None


class AlertPage(NamedTuple):
    """Page of the list of alerts.

    Attributes:
        alerts: the alerts, newest first.
        has_more: True if another page follows.
    """

    alerts: Sequence[Alert]
    has_more: bool


class Alerts:
    """Service for API callers: lists and acknowledges alerts, and tries rules.

    Args:
        catalog: function that returns the current workspace catalog.
        store: storage of the alerts.
        evaluation: evaluates conditions.
        notifications: appends the audit events of acknowledgements.
        is_audited: returns whether the workspace has provenance (audit chains) now.
        runtime: clock, ids and worker threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        store: AlertStore,
        evaluation: RuleEvaluation,
        notifications: Notifications,
        is_audited: Callable[[], Awaitable[bool]],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._evaluation = evaluation
        self._notifications = notifications
        self._is_audited = is_audited
        self._runtime = runtime

    async def load_states_by_rule(self) -> Mapping[str, RuleState]:
        """Return the stored states of alert rules, by the lookup (id in URLs) of the rule."""
        return {state.rule: state for state in await self._store.list_rule_states()}

    async def find_rule_state(self, rule_lookup: str) -> RuleState | None:
        """Return the stored state of the alert rule with this lookup (id in URLs); None before its first evaluation."""
        return (await self._store.load_rule_record(rule_lookup)).state

    async def list_alerts(self, alert_filter: AlertFilter, after: AlertPlace | None, limit: int) -> AlertPage:
        """Return a page of the alerts, newest first."""
        found = await self._store.list_alerts(alert_filter, after, limit + 1)
        return AlertPage(found[:limit], len(found) > limit)

    async def run_trial_evaluation(self, entry: CatalogEntry[AlertRule]) -> Trial:
        """Evaluate an alert rule once, even if it is disabled, without a change of stored states and alerts."""
        record = await self._store.load_rule_record(entry.value.lookup)
        at = self._runtime.now()
        try:
            data = await self._evaluation.read_data(entry.value, await self._catalog())
            groups = await self._evaluation.evaluate_groups(entry, data)
        except EvaluationError as error:
            return Trial(error=str(error))
        size = (len(groups) + len(record.alerts)) * _GROUP_SIZE
        changes = await self._runtime.run_in_thread_if_large(
            size,
            compute_alert_changes,
            entry.value,
            record.alerts,
            groups,
            at,
            self._runtime.new_id,
            restarts_hold_duration=has_changed_condition(entry.value, record.state),
        )
        firing = {to_group_key(alert.labels) for alert in changes.active if alert.state is AlertState.FIRING}
        alerts = [TrialGroup(group.labels, group.value, group.key in firing) for group in groups]
        return Trial(alerts, len(data.rows) if isinstance(data, QueryResult) else len(groups))

    async def acknowledge(self, alert_id: str, user_id: str, comment: str | None) -> Alert:
        """Record that a person has seen an alert; do nothing if the alert is already acknowledged.

        If the workspace has provenance, the acknowledgement is stored together with a mark (unpublished event). If this
        call cannot append the audit event, the scheduler therefore appends it later.

        Args:
            alert_id: id of the alert.
            user_id: member id of the person.
            comment: comment of the person.

        Raises:
            WorkspaceError: NOT_FOUND ``ALERT_NOT_FOUND``; CONFLICT ``ALERT_RESOLVED`` if the alert is resolved;
                CONFLICT ``ALERT_CHANGED`` if other processes changed the alert during each attempt to store the
                acknowledgement; UNAVAILABLE if a store does not respond.
        """
        found = await self._store.find_alert(alert_id)
        if found is None:
            raise build_alert_not_found_error()
        is_audited = await self._is_audited()
        for _ in range(_ATTEMPTS):
            record = await self._store.load_rule_record(found.rule)
            alert = next((one for one in record.alerts if one.id == alert_id), None)
            if alert is None or not alert.is_active or record.state is None:
                raise await self._build_alert_ended_error(alert_id)
            if alert.acknowledged_by is not None:
                return alert
            acknowledged = alert.copy_with_changes(
                acknowledged_by=user_id,
                acknowledged_at=self._runtime.now(),
                comment=comment,
                marks=(*alert.marks, Mark.ACKNOWLEDGED) if is_audited else alert.marks,
            )
            state = record.state.model_copy(update={"has_marks": record.state.has_marks or is_audited})
            token = await self._store.try_save_rule_changes_and_return_token(record, state, [acknowledged])
            if token is not None:
                if not is_audited:
                    _LOG.warning("provenance is not configured; the acknowledgement of an alert is not audited")
                alerts = tuple(acknowledged if one.id == alert_id else one for one in record.alerts)
                await self._publish_acknowledgement(RuleRecord(record.rule, state, alerts, token))
                return acknowledged
        detail = "The alert was changed concurrently; try again."
        raise WorkspaceError(Kind.CONFLICT, "ALERT_CHANGED", detail)

    async def _build_alert_ended_error(self, alert_id: str) -> WorkspaceError:
        """Return the error for acknowledging an alert that is resolved, or that ended while it was pending."""
        if await self._store.find_alert(alert_id) is None:
            return build_alert_not_found_error()
        detail = "The alert is resolved; only pending and firing alerts can be acknowledged."
        return WorkspaceError(Kind.CONFLICT, "ALERT_RESOLVED", detail)

    async def _publish_acknowledgement(self, record: RuleRecord) -> None:
        """Append the audit event of a stored acknowledgement; after a failure, the scheduler appends it later."""
        try:
            await self._notifications.publish_events_and_update_record(record)
        except WorkspaceError as error:
            # The mark is stored, so the background job appends the event.
            _LOG.warning("an acknowledgement is not audited yet: %s", error, extra=fields(rule=record.rule))


def build_alert_not_found_error() -> WorkspaceError:
    """Return the error for an unknown alert id."""
    return WorkspaceError(Kind.NOT_FOUND, "ALERT_NOT_FOUND", "No alert has this id.")
