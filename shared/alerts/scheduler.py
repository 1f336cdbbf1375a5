"""Scheduler that evaluates alert rules when they are due.

Only the instance of the service that holds the lease of the background job runs the scheduler. If an instance loses the
lease during a run, the store rejects its results, because the token of the rule's record has changed. So each due time
of a rule has one stored evaluation.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import Final, NamedTuple

from shared.alerts.due_times import build_data_source_key, is_due
from shared.alerts.models import RuleState
from shared.alerts.ports import AlertStore
from shared.alerts.rule_evaluator import RuleEvaluator
from shared.alerts.rule_results import build_rule_revision
from shared.catalog.alert_rule_models import AlertRule, RuleKind
from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime

TASKS_AT_ONCE: Final = 4
"""Maximum number of tasks of the same kind, such as queries, that run at the same time."""

REFRESH_SECONDS: Final = 60.0
"""Maximum age in seconds of the rule states in memory; another instance can have evaluated rules meanwhile."""

RETRY_SECONDS: Final = 10.0
"""Seconds after a failed evaluation, or after a failed publication of events, before a rule is processed again."""

HISTORY: Final = timedelta(days=90)
"""Time for which resolved alerts are stored."""

_LOOK_SECONDS: Final = 1.0
"""Maximum time in seconds between two searches for due rules while evaluations are running."""
_CLEANUP_SECONDS: Final = 3600.0
_LOG = get_logger("alerts")


class _TaskKind(Enum):
    """Kind of a task; slow tasks of one kind do not delay the tasks of other kinds.

    ``PUBLISH`` is for rules that are not due, but have unpublished events.
    """

    EVALUATE_THRESHOLD = auto()
    EVALUATE_ABSENCE = auto()
    PUBLISH = auto()
    END = auto()


class _TaskKey(NamedTuple):
    """Kind of a task, and the data source of its rules; for the end of a rule, the lookup (id in URLs) of the rule."""

    kind: _TaskKind
    source: str


class AlertScheduler:
    """Evaluates the rules that are due, and resolves the alerts of disabled and deleted rules.

    Args:
        catalog: function that returns the current workspace catalog.
        store: storage of the alerts.
        evaluator: evaluates rules with the same data source, and stores the results.
        runtime: clock.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        store: AlertStore,
        evaluator: RuleEvaluator,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._evaluator = evaluator
        self._runtime = runtime
        self._states: dict[str, RuleState] = {}
        self._refresh_at = 0.0
        self._cleanup_at = 0.0
        self._retry_at: dict[str, float] = {}
        self._checked: dict[str, tuple[int, float]] = {}

    async def evaluate_due_rules(self) -> None:
        """Evaluate all rules that are due; return as soon as no rule is due and no evaluation is running.

        A slow query does not delay the rules that become due while it runs. Even if every query is slow, or the webhook
        outbox and the audit log do not respond, absence rules are evaluated on time. Slow queries delay neither the
        publication of events of rules that are not due, nor the end of alerts of disabled and deleted rules.
        """
        slots = {kind: asyncio.Semaphore(TASKS_AT_ONCE) for kind in _TaskKind}
        running: dict[_TaskKey, asyncio.Task[None]] = {}
        try:
            while True:
                # Not after the loop, because slow queries can keep a run busy for days.
                await self._try_to_delete_old_resolved_alerts()
                catalog = await self._catalog()
                for key, rules in (await self._group_due_rule_lookups_by_task(catalog)).items():
                    if key not in running:
                        processing = self._process_rules(rules, catalog, slots[key.kind])
                        running[key] = asyncio.create_task(processing)
                if not running:
                    break
                await asyncio.wait(running.values(), timeout=_LOOK_SECONDS)
                running = {key: task for key, task in running.items() if not task.done()}
        finally:
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)

    async def _group_due_rule_lookups_by_task(self, catalog: Catalog) -> Mapping[_TaskKey, Sequence[str]]:
        """Return the lookups (ids in URLs) of the rules to process, grouped by the task that processes them."""
        if self._runtime.monotonic() >= self._refresh_at:
            self._states = {state.rule: state for state in await self._store.list_rule_states()}
            self._refresh_at = self._runtime.monotonic() + REFRESH_SECONDS
        now, at = self._runtime.monotonic(), self._runtime.now()
        watched = self._find_absence_rules_with_inactive_connections(catalog)
        waiting = {lookup for lookup, retry_at in self._retry_at.items() if retry_at > now}
        due: dict[_TaskKey, list[str]] = {}
        for lookup, entry in catalog.alert_rules.items():
            state = self._states.get(lookup)
            if not entry.value.enabled or lookup in waiting:
                continue
            source = build_data_source_key(entry.value)
            if lookup in watched or is_due(entry.value, build_rule_revision(entry), state, at):
                due.setdefault(_TaskKey(_get_evaluation_kind(entry.value), source), []).append(lookup)
            elif state is not None and state.has_marks:
                due.setdefault(_TaskKey(_TaskKind.PUBLISH, source), []).append(lookup)
        for lookup, state in self._states.items():
            stored = catalog.alert_rules.get(lookup)
            is_disabled = stored is not None and not stored.value.enabled
            if lookup not in waiting and (catalog.is_alert_rule_deleted(lookup) or (is_disabled and not state.is_idle)):
                due[_TaskKey(_TaskKind.END, lookup)] = [lookup]
        return due

    def _find_absence_rules_with_inactive_connections(self, catalog: Catalog) -> set[str]:
        """Return the lookups of absence rules (alert rules for missing telemetry) with alerts that may have to end.

        These rules have open alerts, and watch a connection that is disabled or was removed. The result does not
        contain the rules that were successfully processed with this version of the catalog.
        """
        found = set[str]()
        now = self._runtime.monotonic()
        for lookup, state in self._states.items():
            entry = catalog.alert_rules.get(lookup)
            if entry is None or entry.value.kind is not RuleKind.ABSENCE or not (state.firing or state.pending):
                continue
            version, check_at = self._checked.get(lookup, (-1, math.inf))
            if version == catalog.version and now < check_at:
                continue
            if all(map(catalog.is_connection_enabled, entry.value.connections)):
                self._checked[lookup] = catalog.version, math.inf
            else:
                found.add(lookup)
        return found

    async def _process_rules(self, rule_lookups: Sequence[str], catalog: Catalog, slots: asyncio.Semaphore) -> None:
        async with slots:
            try:
                states = await self._evaluator.evaluate_or_end_rules(rule_lookups, catalog)
            except Exception as error:  # noqa: BLE001  the other rules must be evaluated whatever happens to these
                self._retry_at |= dict.fromkeys(rule_lookups, self._runtime.monotonic() + RETRY_SECONDS)
                count("workspace.alerts.failures")
                extra = fields(rules=list(rule_lookups[:10]))
                if isinstance(error, WorkspaceError):
                    _LOG.warning("alert rules could not be evaluated: %s", error, extra=extra)
                else:
                    _LOG.exception("alert rules could not be evaluated", extra=extra)
                return
        for lookup, state in states.items():
            self._cache_rule_state(lookup, state, catalog.version)

    def _cache_rule_state(self, rule_lookup: str, state: RuleState | None, catalog_version: int) -> None:
        """Cache the new state of a rule, and the catalog version with which the rule was processed.

        The next refresh of the cache replaces the state. If the state is None, remove the rule from the cache.
        """
        retry_at = self._runtime.monotonic() + RETRY_SECONDS
        self._retry_at.pop(rule_lookup, None)
        if state is None:
            self._states.pop(rule_lookup, None)
            self._checked.pop(rule_lookup, None)
            return
        self._states[rule_lookup] = state
        # A failed evaluation does not end the alerts of inactive connections.
        self._checked[rule_lookup] = catalog_version, math.inf if state.error is None else retry_at
        if state.has_marks:
            self._retry_at[rule_lookup] = retry_at

    async def _try_to_delete_old_resolved_alerts(self) -> None:
        """Once an hour, delete the resolved alerts that are older than ``HISTORY``; log an error of the store."""
        if self._runtime.monotonic() < self._cleanup_at:
            return
        self._cleanup_at = self._runtime.monotonic() + _CLEANUP_SECONDS
        try:
            await self._store.delete_and_count_resolved_alerts(self._runtime.now() - HISTORY)
        except WorkspaceError as error:
            _LOG.warning("old resolved alerts could not be deleted; they are deleted in an hour: %s", error)


def _get_evaluation_kind(rule: AlertRule) -> _TaskKind:
    return _TaskKind.EVALUATE_ABSENCE if rule.kind is RuleKind.ABSENCE else _TaskKind.EVALUATE_THRESHOLD
