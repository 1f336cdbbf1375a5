"""Workspace with alert rules, in-memory stores, and a clock that tests set."""

import asyncio
from collections.abc import Callable
from typing import Any

from shared.alerts.evaluation import RuleEvaluation
from shared.alerts.models import RuleStatus
from shared.alerts.notifications import Notifications
from shared.alerts.rule_evaluator import RuleEvaluator
from shared.alerts.scheduler import AlertScheduler
from shared.alerts.service import Alerts
from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.results import QueryResult
from tests.unit.shared.alerts.fakes import (
    AT,
    ListAuditLog,
    ListOutbox,
    MemoryAlertStore,
    build_result,
)
from tests.virtual_time import VirtualTime


class Queries:
    """Fake query executor that returns the result, or raises the error, that the test has set.

    Attributes:
        result: result, error, or function that returns a result.
        calls: lookups and arguments of the executed queries.
    """

    def __init__(self) -> None:
        self.result: QueryResult | WorkspaceError = build_result()
        self.calls: list[tuple[str, Any]] = []
        self.gate: Callable[[], Any] | None = None
        self.called = asyncio.Event()

    async def execute(
        self, lookup: str, time_range: Any, limit: int, arguments: Any, label: Any, *, use_cache: bool
    ) -> QueryResult:
        """Return the result, or raise the error, that the test has set."""
        del limit, label
        assert not use_cache
        self.calls.append((lookup, (time_range, dict(arguments))))
        self.called.set()
        if self.gate is not None:
            await self.gate()
        if isinstance(self.result, WorkspaceError):
            raise self.result
        return self.result


class ConnectionStates:
    """Fake store of the message statistics of connections.

    Attributes:
        states: statistics that the store returns.
        error: error that the store raises.
        gate: called at each read.
    """

    def __init__(self) -> None:
        self.states: dict[str, ConnectionState] = {}
        self.error: WorkspaceError | None = None
        self.gate: Callable[[], Any] | None = None

    async def load_states_by_connection(self) -> dict[str, ConnectionState]:
        """Return the connection statistics, or raise the error, that the test has set."""
        if self.gate is not None:
            await self.gate()
        if self.error is not None:
            raise self.error
        return self.states


class AlertWorkspace:
    """Workspace with alert rules, in-memory stores and a clock; several service instances can share it.

    Attributes:
        catalog: stored catalog.
        outdated_catalog: catalog in the cache of the instance, until the instance reads the stored one.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.time = VirtualTime(AT)
        self.catalog = catalog
        self.outdated_catalog: Catalog | None = None
        self.queries, self.connections = Queries(), ConnectionStates()
        self.store, self.outbox, self.audit_log = MemoryAlertStore(), ListOutbox(), ListAuditLog()
        self.audited = True
        self.scheduler = self.start_scheduler()

    async def _read_cached_catalog(self) -> Catalog:
        return self.outdated_catalog or self.catalog

    async def _read_stored_catalog(self) -> Catalog:
        self.outdated_catalog = None
        return self.catalog

    async def _is_audited(self) -> bool:
        return self.audited

    def _build_evaluation(self) -> RuleEvaluation:
        return RuleEvaluation(self.queries, self.connections, runtime=self.time.runtime)  # type: ignore[arg-type]

    def _build_notifications(self) -> Notifications:
        return Notifications(self.store, self.outbox, self.audit_log)

    def start_scheduler(self) -> AlertScheduler:
        """Return a new scheduler on the same stores, as a second or restarted instance of the service creates it."""
        evaluation, notifications = self._build_evaluation(), self._build_notifications()
        runtime = self.time.runtime
        evaluator = RuleEvaluator(self._read_stored_catalog, self.store, evaluation, notifications, runtime=runtime)
        return AlertScheduler(self._read_cached_catalog, self.store, evaluator, runtime=runtime)

    def build_service(self) -> Alerts:
        """Return the alert service that API requests use."""
        evaluation, notifications = self._build_evaluation(), self._build_notifications()
        return Alerts(
            self._read_cached_catalog,
            self.store,
            evaluation,
            notifications,
            self._is_audited,
            runtime=self.time.runtime,
        )

    async def run_scheduler_after(self, seconds: float = 60) -> list[tuple[str, str]]:
        """Advance the clock by some seconds and run the scheduler; return all transitions published since the start."""
        self.time.advance(seconds)
        await self.scheduler.evaluate_due_rules()
        return self.outbox.list_transitions()

    def get_status(self, rule: str = "hot") -> RuleStatus:
        """Return the stored state of a rule."""
        return self.store.states[rule].status


HOT = build_result({"value": 9.0})


COLD = build_result({"value": 1.0})


FIRING, RESOLVED = ("alert.firing", "hot"), ("alert.resolved", "hot")
