"""Tests of the evaluation of due rules: the scheduler, the evaluator and the notifications together."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.alerts.evaluation import RuleEvaluation
from shared.alerts.models import RuleStatus
from shared.alerts.notifications import Notifications
from shared.alerts.rule_evaluator import RuleEvaluator
from shared.alerts.scheduler import RETRY_SECONDS, AlertScheduler
from shared.alerts.service import Alerts
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.results import QueryResult
from tests.unit.shared.alerts.fakes import (
    AT,
    ListAuditLog,
    ListOutbox,
    MemoryAlertStore,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_result,
    build_rule,
)
from tests.virtual_time import VirtualTime


class Queries:
    """Executes queries: returns a result or raises an error.

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
        """Return the result or raise the error."""
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
    """Statistics of connections."""

    def __init__(self) -> None:
        self.states: dict[str, ConnectionState] = {}

    async def load_states(self) -> dict[str, ConnectionState]:
        """Return the statistics."""
        return self.states


class Plant:
    """Workspace with rules, stores and a clock; instances of the service share it."""

    def __init__(self, catalog: Catalog) -> None:
        self.time = VirtualTime(AT)
        self.catalog = catalog
        self.queries, self.connections = Queries(), ConnectionStates()
        self.store, self.outbox, self.audit_log = MemoryAlertStore(), ListOutbox(), ListAuditLog()
        self.audited = True
        self.scheduler = self.start()

    async def _current(self) -> Catalog:
        return self.catalog

    async def _is_audited(self) -> bool:
        return self.audited

    def _build_evaluation(self) -> RuleEvaluation:
        return RuleEvaluation(self.queries, self.connections, runtime=self.time.runtime)  # type: ignore[arg-type]

    def _build_notifications(self) -> Notifications:
        return Notifications(self.store, self.outbox, self.audit_log, self._is_audited)

    def start(self) -> AlertScheduler:
        """Return the scheduler of another instance, or of this one after a restart."""
        evaluator = RuleEvaluator(
            self.store, self._build_evaluation(), self._build_notifications(), runtime=self.time.runtime
        )
        return AlertScheduler(self._current, self.store, evaluator, runtime=self.time.runtime)

    def build_service(self) -> Alerts:
        """Return the service for callers."""
        evaluation, notifications = self._build_evaluation(), self._build_notifications()
        return Alerts(self._current, self.store, evaluation, notifications, runtime=self.time.runtime)

    async def run(self, seconds: float = 60) -> list[tuple[str, str]]:
        """Run the scheduler after some seconds; return the transitions that were published so far."""
        self.time.advance(seconds)
        await self.scheduler.run()
        return self.outbox.list_transitions()

    def get_status(self, rule: str = "hot") -> RuleStatus:
        """Return the stored state of a rule."""
        return self.store.states[rule].status


HOT = build_result({"value": 9.0})
COLD = build_result({"value": 1.0})
FIRING, RESOLVED = ("alert.firing", "hot"), ("alert.resolved", "hot")


@pytest.fixture
def plant() -> Plant:
    """Return a plant with one threshold rule."""
    return Plant(build_catalog(build_entry(build_rule())))


async def test_a_crossing_value_is_published_once(plant: Plant) -> None:
    """Each transition is one event, whose data names rule, value and times."""
    plant.queries.result = HOT
    assert await plant.run(0) == [FIRING]
    assert await plant.run() == [FIRING]
    plant.queries.result = COLD
    assert await plant.run() == [FIRING, RESOLVED]
    event, resolved = plant.outbox.events.values()
    assert event.data == {
        "alertId": event.data["alertId"],
        "rule": "hot",
        "name": "Hot",
        "severity": "critical",
        "state": "firing",
        "labels": {},
        "value": 9.0,
        "startedAt": "2026-03-01T12:00:00.000000Z",
        "surface": "hall",
        "runbookUrl": None,
    }
    assert (event.surfaces, event.connections, event.severity) == (frozenset({"hall"}), None, "critical")
    assert (resolved.data["alertId"], resolved.data["state"]) == (event.data["alertId"], "resolved")
    assert resolved.key != event.key


async def test_a_rule_is_evaluated_once_for_each_due_time(plant: Plant) -> None:
    """Runs between two due times, of any instance, execute no query."""
    await plant.run(0)
    for _ in range(5):
        await plant.run(0)
        await plant.start().run()
    assert len(plant.queries.calls) == 1
    plant.time.advance(60)
    await asyncio.gather(plant.scheduler.run(), plant.start().run())
    assert len(plant.store.states) == 1
    assert plant.store.states["hot"].evaluated_at == plant.time.now


async def test_late_evaluations_are_made_up_once(plant: Plant) -> None:
    """After an outage the rule is evaluated once, not once for each missed due time."""
    await plant.run(0)
    await plant.run(3600)
    await plant.run(0)
    assert len(plant.queries.calls) == 2


async def test_rules_with_the_same_data_share_a_query() -> None:
    """Rules with equal query, parameters and time range execute the query once."""
    rules = [build_rule(lookup=f"r{n}", condition={"column": "value", "operator": "gt", "value": n}) for n in range(5)]
    plant = Plant(build_catalog(*map(build_entry, rules), build_entry(build_rule(lookup="x", timeRange="PT5M"))))
    plant.queries.result = build_result({"value": 2.5})
    await plant.run(0)
    assert [arguments for _, (arguments, _) in plant.queries.calls] == [None, timedelta(minutes=5)]
    assert [plant.get_status(f"r{n}").value for n in range(5)] == ["firing", "firing", "firing", "ok", "ok"]


async def test_the_time_of_a_rule_survives_a_restart() -> None:
    """A pending alert fires after its time, although the instance was restarted."""
    plant = Plant(build_catalog(build_entry(build_rule(**{"for": "PT2M"}))))
    plant.queries.result = HOT
    assert await plant.run(0) == []
    assert plant.get_status() is RuleStatus.PENDING
    plant.scheduler = plant.start()
    assert await plant.run() == []
    plant.scheduler = plant.start()
    assert await plant.run() == [FIRING]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (WorkspaceError(Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "x"), "is a draft"),
        (WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "The query took too long."), "took too long"),
        (WorkspaceError(Kind.INVALID, "QUERY_INVALID", "no such column"), "no such column"),
    ],
)
async def test_a_failing_query_neither_fires_nor_resolves(plant: Plant, error: WorkspaceError, reason: str) -> None:
    """The rule is in error with the reason, its alerts stay, and one warning is published until it works again."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = error
    assert await plant.run() == [FIRING, FIRING]
    assert await plant.run() == [FIRING, FIRING]
    state = plant.store.states["hot"]
    assert (state.status, reason in (state.error or ""), state.firing) == (RuleStatus.ERROR, True, 1)
    warning = list(plant.outbox.events.values())[1]
    assert (warning.severity, warning.data["severity"], warning.data["value"]) == ("warning", "warning", None)
    assert reason in warning.data["labels"]["error"]
    plant.queries.result = HOT
    assert await plant.run() == [FIRING, FIRING, RESOLVED]
    assert list(plant.outbox.events.values())[2].data["alertId"] == warning.data["alertId"]
    assert len(plant.store.alerts) == 1


async def test_a_missing_query_or_column_is_an_error(plant: Plant) -> None:
    """A deleted query and a changed column put the rule into error."""
    plant.queries.result = build_result({"other": 9.0})
    await plant.run(0)
    assert plant.store.states["hot"].error == "The query has no column 'value'."
    plant.catalog = build_catalog(build_entry(build_rule()), queries={})
    await plant.run()
    assert plant.store.states["hot"].error == "The warm query 'temperatures' does not exist."
    assert len(plant.outbox.events) == 1


@pytest.mark.parametrize("change", ["deleted", "disabled"])
async def test_the_end_of_a_rule_resolves_its_alerts(plant: Plant, change: str) -> None:
    """Alerts and the warning about an error of a rule that is deleted or disabled are resolved at once."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await plant.run()
    disabled = build_entry(build_rule(enabled=False), AT, plant.time.now)
    plant.catalog = build_catalog(*([disabled] if change == "disabled" else []), version=2)
    assert (await plant.run(1))[2:] == [RESOLVED, RESOLVED]
    await plant.run(1)
    assert len(plant.outbox.events) == 4
    assert plant.store.states.keys() == ({"hot"} if change == "disabled" else set())
    assert [alert.state.value for alert in plant.store.alerts.values()] == ["resolved"]
    assert len(plant.queries.calls) == 2


async def test_a_rule_that_was_created_again_has_new_alerts(plant: Plant) -> None:
    """Between two runs a rule can be deleted and created again; the old alert is resolved."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.catalog = build_catalog(build_entry(build_rule(), plant.time.now + timedelta(seconds=1)), version=2)
    assert sorted(await plant.run(2)) == [FIRING, FIRING, RESOLVED]
    assert sorted(alert.state.value for alert in plant.store.alerts.values()) == ["firing", "resolved"]


async def test_a_changed_rule_is_evaluated_at_once(plant: Plant) -> None:
    """A PUT takes effect without waiting for the due time."""
    plant.queries.result = HOT
    await plant.run(0)
    raised = build_rule(condition={"column": "value", "operator": "gt", "value": 50})
    plant.catalog = build_catalog(build_entry(raised, AT, AT + timedelta(seconds=1)), version=2)
    assert await plant.run(1) == [FIRING, RESOLVED]


async def test_silence_fires_for_each_connection() -> None:
    """An absence rule fires after its time and resolves when a message arrives, without a query."""
    plant = Plant(build_catalog(build_entry(build_absence_rule())))
    plant.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    assert await plant.run(60) == []
    assert await plant.run(300) == [("alert.firing", "silent")]
    [event] = plant.outbox.events.values()
    assert (event.data["labels"], event.connections) == ({"connection": "press"}, frozenset({"press"}))
    plant.connections.states = {"press": ConnectionState("CONNECTED", 2, plant.time.now)}
    assert await plant.run(60) == [("alert.firing", "silent"), ("alert.resolved", "silent")]
    assert plant.queries.calls == []


async def test_a_disabled_connection_resolves_its_alert_at_once() -> None:
    """The alert does not wait for the next evaluation, which can be a day away."""
    entry = build_entry(build_absence_rule(every="P1D"))
    plant = Plant(build_catalog(entry))
    assert await plant.run(600) == [("alert.firing", "silent")]
    plant.catalog = build_catalog(entry, version=2, connections={})
    assert (await plant.run(1))[1:] == [("alert.resolved", "silent")]


async def test_unpublished_transitions_are_published_later(plant: Plant) -> None:
    """If the outbox fails after the transition was stored, the event is published by a later run, once."""
    plant.queries.result = HOT
    plant.outbox.failures = 2
    assert await plant.run(0) == []
    assert plant.get_status() is RuleStatus.FIRING
    plant.scheduler = plant.start()
    assert await plant.run(1) == [FIRING]
    assert await plant.run(1) == [FIRING]
    assert len(plant.queries.calls) == 1


async def test_a_failing_store_does_not_stop_other_rules() -> None:
    """Rules whose storage fails are tried again after a pause."""
    rules = build_rule(every="PT15S"), build_rule(lookup="x", timeRange="PT5M", every="PT15S")
    plant = Plant(build_catalog(*map(build_entry, rules)))
    plant.queries.result = HOT
    await plant.run(0)
    plant.store.failures = 1
    await plant.run(15)
    evaluated = {state.evaluated_at for state in plant.store.states.values()}
    assert evaluated == {AT, AT + timedelta(seconds=15)}
    await plant.run(RETRY_SECONDS)
    assert AT not in {state.evaluated_at for state in plant.store.states.values()}


async def test_an_unexpected_error_does_not_stop_the_scheduler(plant: Plant) -> None:
    """A defect in one evaluation is logged, and the run ends normally."""
    plant.queries.result = None  # type: ignore[assignment]
    await plant.run(0)
    plant.queries.result = HOT
    assert await plant.run(RETRY_SECONDS) == [FIRING]


async def test_a_slow_query_does_not_delay_other_rules() -> None:
    """While one query runs, rules that become due are evaluated."""
    slow, fast = build_rule(lookup="slow", timeRange="PT5M"), build_rule(lookup="fast")
    plant = Plant(build_catalog(build_entry(slow)))
    plant.queries.result = HOT
    gate = asyncio.Event()
    plant.queries.gate = gate.wait
    running = asyncio.create_task(plant.scheduler.run())
    await plant.queries.called.wait()
    plant.queries.gate = None
    plant.catalog = build_catalog(build_entry(slow), build_entry(fast), version=2)
    plant.queries.called.clear()
    await plant.queries.called.wait()
    assert "slow" not in plant.store.states
    gate.set()
    await running
    assert set(plant.store.states) == {"slow", "fast"}


async def test_a_cancelled_run_can_be_repeated(plant: Plant) -> None:
    """If the lease is lost during a query, nothing is stored, and the next run evaluates the rule."""
    plant.queries.result = HOT
    plant.queries.gate = asyncio.Event().wait
    running = asyncio.create_task(plant.scheduler.run())
    await plant.queries.called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert plant.store.states == {}
    plant.queries.gate = None
    assert await plant.run(0) == [FIRING]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hot", "cold", "error", "disable", "delete", "restart"]), st.integers(0, 6), st.booleans()
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(STEPS)
def test_no_failure_loses_or_repeats_a_transition(steps: list[tuple[str, int, bool]]) -> None:
    """With stores that fail at any place, every stored transition is published once and in order."""
    asyncio.run(_follow(steps))


async def _follow(steps: list[tuple[str, int, bool]]) -> None:
    plant = Plant(build_catalog(build_entry(build_rule())))
    version = 1
    for action, failures, hits_outbox in steps:
        version += 1
        if action in ("hot", "cold"):
            plant.queries.result = HOT if action == "hot" else COLD
        elif action == "error":
            plant.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
        elif action == "restart":
            plant.scheduler = plant.start()
        rule = build_entry(build_rule(enabled=action != "disable"), AT, plant.time.now)
        plant.catalog = build_catalog(*([] if action == "delete" else [rule]), version=version)
        plant.store.failures, plant.outbox.failures = (0, failures % 2) if hits_outbox else (failures, 0)
        try:
            await plant.run(60)
        except WorkspaceError:
            plant.scheduler = plant.start()
    plant.store.failures = plant.outbox.failures = 0
    plant.catalog = build_catalog(version=version + 1)
    for _ in range(3):
        await plant.run(60)
    assert plant.store.states == {}
    published: dict[str, list[str]] = {}
    for event in plant.outbox.events.values():
        published.setdefault(event.data["alertId"], []).append(event.type.value)
    assert all(types == ["alert.firing", "alert.resolved"] for types in published.values())
    assert plant.store.alerts.keys() <= published.keys()
    assert not any(alert.is_active or alert.marks for alert in plant.store.alerts.values())


async def test_acknowledgement_is_audited_once(plant: Plant) -> None:
    """An acknowledgement is one audit event in the scope `alerts`; a repetition returns the alert."""
    plant.queries.result = HOT
    await plant.run(0)
    service = plant.build_service()
    [alert_id] = plant.store.alerts
    first = await service.acknowledge(alert_id, "editor@t", "seen")
    again = await service.acknowledge(alert_id, "other@t", "me too")
    assert (first.acknowledged_by, again.acknowledged_by, again.comment) == ("editor@t", "editor@t", "seen")
    [event] = plant.audit_log.events.values()
    assert (event["Target"], event["ScopeKey"], event["UserID"]) == ("DomainEvents", "alerts", "editor@t")
    assert (event["ActionType"], event["EntityID"]) == ("Alert.Acknowledged", alert_id)
    await plant.run()
    assert plant.store.alerts[alert_id].acknowledged_by == "editor@t"
    assert plant.outbox.list_transitions() == [FIRING]


async def test_an_acknowledgement_survives_a_crash_before_its_event(plant: Plant) -> None:
    """If the audit log fails, the acknowledgement stays, and the background job appends the event later."""
    plant.queries.result = HOT
    await plant.run(0)
    [alert_id] = plant.store.alerts
    plant.audit_log.failures = 1
    await plant.build_service().acknowledge(alert_id, "editor@t", None)
    assert plant.audit_log.events == {}
    plant.scheduler = plant.start()
    await plant.run(1)
    assert len(plant.audit_log.events) == 1
    await plant.run(60)
    assert len(plant.audit_log.events) == 1


async def test_an_acknowledgement_without_provenance_is_stored(plant: Plant) -> None:
    """Without an audit log the acknowledgement is stored with a warning in the log."""
    plant.audited = False
    plant.queries.result = HOT
    await plant.run(0)
    [alert_id] = plant.store.alerts
    await plant.build_service().acknowledge(alert_id, "editor@t", None)
    assert (plant.store.alerts[alert_id].acknowledged_by, plant.audit_log.events) == ("editor@t", {})


@pytest.mark.parametrize(("rows", "code"), [(COLD, "ALERT_RESOLVED"), (HOT, "ALERT_NOT_FOUND")])
async def test_only_active_alerts_can_be_acknowledged(plant: Plant, rows: QueryResult, code: str) -> None:
    """A resolved and an unknown alert are errors."""
    plant.queries.result = HOT
    await plant.run(0)
    plant.queries.result = rows
    await plant.run()
    alert_id = "unknown" if code == "ALERT_NOT_FOUND" else next(iter(plant.store.alerts))
    with pytest.raises(WorkspaceError) as raised:
        await plant.build_service().acknowledge(alert_id, "editor@t", None)
    assert raised.value.code == code


async def test_a_trial_changes_nothing(plant: Plant) -> None:
    """A trial evaluation shows what would fire, also for a disabled rule, and stores and publishes nothing."""
    entry = build_entry(build_rule(enabled=False, groupBy=["device"]))
    plant.catalog = build_catalog(entry)
    plant.queries.result = build_result({"device": "a", "value": 9.0}, {"device": "b", "value": 1.0})
    trial = await plant.build_service().try_rule(entry)
    assert [(dict(one.labels), one.value, one.would_fire) for one in trial.alerts] == [
        ({"device": "a"}, 9.0, True),
        ({"device": "b"}, 1.0, False),
    ]
    assert (trial.rows, trial.error) == (2, None)
    assert (plant.store.states, plant.store.alerts, plant.outbox.events) == ({}, {}, {})
    plant.queries.result = WorkspaceError(Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "x")
    failed = await plant.build_service().try_rule(entry)
    assert (failed.alerts, failed.rows) == ((), 0)
    assert "is a draft" in (failed.error or "")


async def test_a_trial_considers_the_time_of_a_rule() -> None:
    """With `for`, an alert would fire only if it has been pending for this time."""
    entry = build_entry(build_rule(**{"for": "PT1M"}))
    plant = Plant(build_catalog(entry))
    plant.queries.result = HOT
    service = plant.build_service()
    assert [one.would_fire for one in (await service.try_rule(entry)).alerts] == [False]
    await plant.run(0)
    plant.time.advance(60)
    assert [one.would_fire for one in (await service.try_rule(entry)).alerts] == [True]
