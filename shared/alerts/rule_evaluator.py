"""Evaluation of alert rules that read the same data, and storage of the results."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from shared.alerts.conditions import AlertGroup, EvaluationError
from shared.alerts.due_times import compute_next_due_time, is_due
from shared.alerts.evaluation import RuleData, RuleEvaluation
from shared.alerts.models import RuleState
from shared.alerts.notifications import Notifications, Outages
from shared.alerts.ports import AlertStore, RuleRecord
from shared.alerts.rule_results import (
    build_rule_revision,
    compute_state_after_evaluation,
    compute_state_after_failure,
    compute_state_after_rule_end,
    has_open_alerts_of_deleted_rule,
    is_current_rule,
)
from shared.alerts.state_machine import AlertChanges
from shared.catalog.alert_rule_models import AlertRule
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime

type Entry = CatalogEntry[AlertRule]
type RuleStates = Mapping[str, RuleState | None]
"""States of alert rules by lookup (id in URLs); None for a rule that no longer has a state."""

_ATTEMPTS: Final = 3
_GROUP_SIZE: Final = 500
"""Assumed size of one group; decides whether groups are processed in a worker thread."""
_LOG = get_logger("alerts")


class RuleEvaluator:
    """Evaluates alert rules that read the same data, and stores the results.

    Args:
        catalog: function that returns the newest workspace catalog, with the changes of other instances.
        store: storage of the alerts.
        evaluation: reads data and evaluates conditions.
        notifications: publishes changes of alert states.
        runtime: clock, ids and worker threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        store: AlertStore,
        evaluation: RuleEvaluation,
        notifications: Notifications,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._evaluation = evaluation
        self._notifications = notifications
        self._runtime = runtime

    async def evaluate_or_end_rules(self, rule_lookups: Sequence[str], catalog: Catalog) -> RuleStates:
        """Evaluate the due rules, end the alerts of disabled and deleted rules, and return the states of the rules.

        If another process changes the stored record of a rule during the call, the result does not contain the rule. If
        the webhook outbox or the audit log does not respond, the call waits for it only once. The states of rules
        with events that are not published have ``has_marks`` set.

        Args:
            rule_lookups: lookups (ids in URLs) of rules that read the same data.
            catalog: a recent workspace catalog. Rules that were changed since then are not processed.

        Raises:
            WorkspaceError: UNAVAILABLE if the store of the alerts or of the catalog does not respond.
        """
        states: dict[str, RuleState | None] = {}
        due: list[tuple[Entry, RuleRecord]] = []
        outages = Outages()
        for lookup in rule_lookups:
            record = await self._try_to_publish_events_and_update_record(
                await self._store.load_rule_record(lookup), outages
            )
            if record is None:
                continue
            entry = catalog.alert_rules.get(lookup)
            if entry is None or not entry.value.enabled or has_open_alerts_of_deleted_rule(entry, record):
                # Another instance can have just created or enabled the rule, and its new alerts must not end.
                if await self._was_rule_changed(lookup, catalog):
                    states[lookup] = record.state
                    continue
                states[lookup] = await self._end_alerts_and_return_state(record, outages, is_rule_deleted=entry is None)
            elif self._is_rule_due(entry, record, catalog) and not _has_resolved_error_alert(record):
                due.append((entry, record))
            else:
                states[lookup] = record.state
        if due:
            at = self._runtime.now()
            # Another instance can have just enabled a connection, and its new alert must not end.
            data = await self._read_data_or_error(due[0][0], await self._catalog())
            for entry, record in due:
                states[record.rule] = await self._evaluate_rule_and_store_state(entry, record, data, at, outages)
        return states

    async def _was_rule_changed(self, rule_lookup: str, catalog: Catalog) -> bool:
        """Return whether a rule was created, edited or deleted since the catalog was read."""
        entry, newest = catalog.alert_rules.get(rule_lookup), await self._catalog()
        return not (newest.is_alert_rule_deleted(rule_lookup) if entry is None else is_current_rule(entry, newest))

    def _is_rule_due(self, entry: Entry, record: RuleRecord, catalog: Catalog) -> bool:
        """Return whether a rule is due, or has an alert about a connection that is disabled or was removed."""
        if is_due(entry.value, build_rule_revision(entry), record.state, self._runtime.now()):
            return True
        watched = (alert.connection for alert in record.alerts if alert.is_active and alert.connection is not None)
        return not all(map(catalog.is_connection_enabled, watched))

    async def _read_data_or_error(self, entry: Entry, catalog: Catalog) -> RuleData | EvaluationError:
        try:
            return await self._evaluation.read_data(entry.value, catalog)
        except EvaluationError as error:
            return error

    async def _evaluate_groups_or_error(
        self, entry: Entry, data: RuleData | EvaluationError
    ) -> list[AlertGroup] | EvaluationError:
        """Return the evaluated groups of a rule's data, or the reason why data or condition cannot be evaluated."""
        if isinstance(data, EvaluationError):
            return data
        try:
            return await self._evaluation.evaluate_groups(entry, data)
        except EvaluationError as error:
            return error

    async def _evaluate_rule_and_store_state(
        self, entry: Entry, record: RuleRecord, data: RuleData | EvaluationError, at: datetime, outages: Outages
    ) -> RuleState | None:
        """Evaluate a rule, store the result, and return the rule's new state.

        If another process has stored a newer evaluation, or the rule was changed, disabled or deleted since the catalog
        of the evaluation was read, store nothing and return the stored state.
        """
        groups = await self._evaluate_groups_or_error(entry, data)
        count("workspace.alerts.evaluations", failed=isinstance(groups, EvaluationError))
        for _ in range(_ATTEMPTS):
            if not is_current_rule(entry, await self._catalog()):
                break
            state, changes = await self._compute_new_state_and_alert_changes(entry, record, groups, at)
            token = await self._store.try_save_rule_changes_and_return_token(
                record, state, changes.puts, changes.deletes
            )
            if token is not None:
                return await self._publish_events_and_return_state(record, state, changes, token, outages)
            # An acknowledgement changes the record, too; its audit event is then appended at once.
            loaded = await self._store.load_rule_record(record.rule)
            record = await self._try_to_publish_events_and_update_record(loaded, outages) or loaded
            is_evaluated = record.state is not None and record.state.due_at > at
            if is_evaluated or has_open_alerts_of_deleted_rule(entry, record) or _has_resolved_error_alert(record):
                break
        return record.state

    async def _compute_new_state_and_alert_changes(
        self, entry: Entry, record: RuleRecord, groups: list[AlertGroup] | EvaluationError, at: datetime
    ) -> tuple[RuleState, AlertChanges]:
        due_at = compute_next_due_time(entry.value, max(at, self._runtime.now()))
        new_id = self._runtime.new_id
        if isinstance(groups, EvaluationError):
            size, reason = len(record.alerts) * _GROUP_SIZE, str(groups)
            state = await self._runtime.run_in_thread_if_large(
                size, compute_state_after_failure, entry, record, reason, at, due_at, new_id
            )
            return state, AlertChanges()
        size = (len(groups) + len(record.alerts)) * _GROUP_SIZE
        return await self._runtime.run_in_thread_if_large(
            size, compute_state_after_evaluation, entry, record, groups, at, due_at, new_id
        )

    async def _end_alerts_and_return_state(
        self, record: RuleRecord, outages: Outages, *, is_rule_deleted: bool
    ) -> RuleState | None:
        """End all stored alerts of an alert rule; return the rule's state, or None if none is stored.

        The state of a deleted rule is deleted after all events about its alerts are published.
        """
        if record.state is None:
            return None
        size, at = len(record.alerts) * _GROUP_SIZE, self._runtime.now()
        ended, changes = await self._runtime.run_in_thread_if_large(
            size, compute_state_after_rule_end, record.state, record.alerts, at
        )
        removed = is_rule_deleted and ended.is_idle
        state = None if removed else ended
        if not removed and ended == record.state:
            return state
        token = await self._store.try_save_rule_changes_and_return_token(record, state, changes.puts, changes.deletes)
        if token is None:
            return record.state
        return (
            None
            if state is None
            else await self._publish_events_and_return_state(record, state, changes, token, outages)
        )

    async def _publish_events_and_return_state(
        self, before: RuleRecord, state: RuleState, changes: AlertChanges, token: str, outages: Outages
    ) -> RuleState | None:
        """Publish the unpublished events about alerts after a change was stored; return the stored state of the rule.

        Args:
            before: record on which the change was based.
            state: stored state.
            changes: stored changes of the alerts.
            token: token of the changed record.
            outages: outages of the current evaluation.
        """
        marked = {alert.id: alert for alert in before.alerts if alert.marks} | {
            alert.id: alert for alert in changes.puts
        }
        record = RuleRecord(before.rule, state, tuple(marked.values()), token)
        settled = await self._try_to_publish_events_and_update_record(record, outages)
        return state if settled is None else settled.state

    async def _try_to_publish_events_and_update_record(self, record: RuleRecord, outages: Outages) -> RuleRecord | None:
        """Publish the unpublished events about a rule's alerts; return the record without their marks.

        Return None if another process has changed the record. After a failure, return the record with its marks; the
        scheduler publishes the events later. After an outage nothing is published, so that the rules do not wait.
        """
        if outages.has_publication_failed:
            return record
        try:
            return await self._notifications.publish_events_and_update_record(record, outages)
        except WorkspaceError as error:
            outages.has_publication_failed = error.kind is Kind.UNAVAILABLE
            count("workspace.alerts.failures")
            _LOG.warning("events about alerts stay unpublished: %s", error, extra=fields(rule=record.rule))
            return record


def _has_resolved_error_alert(record: RuleRecord) -> bool:
    """Return whether a rule's error alert is resolved, but still stored because its end is not published yet.

    The error alert notifies about failed evaluations. A rule can have only one, so the rule is not evaluated before the
    end is published.
    """
    error_alert = record.state.error_alert if record.state else None
    return error_alert is not None and not error_alert.is_active
