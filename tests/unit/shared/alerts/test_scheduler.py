"""Tests of the alert scheduler together with the evaluator and the notifications."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.alerts.models import RuleStatus
from shared.alerts.scheduler import RETRY_SECONDS
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.alerts.environment import COLD, FIRING, HOT, RESOLVED, Plant
from tests.unit.shared.alerts.fakes import (
    AT,
    build_catalog,
    build_entry,
    build_result,
    build_rule,
)


async def test_an_alert_transition_is_published_once(alert_environment: Plant) -> None:
    """Each transition of an alert is published once, with the rule, the value and the times."""
    alert_environment.queries.result = HOT
    assert await alert_environment.run_scheduler_after(0) == [FIRING]
    assert await alert_environment.run_scheduler_after() == [FIRING]
    alert_environment.queries.result = COLD
    assert await alert_environment.run_scheduler_after() == [FIRING, RESOLVED]
    event, resolved = alert_environment.outbox.events.values()
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


async def test_a_rule_is_evaluated_once_for_each_due_time(alert_environment: Plant) -> None:
    """Between two due times of a rule, no instance executes its query."""
    await alert_environment.run_scheduler_after(0)
    for _ in range(5):
        await alert_environment.run_scheduler_after(0)
        await alert_environment.start_scheduler().run()
    assert len(alert_environment.queries.calls) == 1
    alert_environment.time.advance(60)
    await asyncio.gather(alert_environment.scheduler.run(), alert_environment.start_scheduler().run())
    assert len(alert_environment.store.states) == 1
    assert alert_environment.store.states["hot"].evaluated_at == alert_environment.time.now


async def test_missed_evaluations_are_repeated_once(alert_environment: Plant) -> None:
    """After an outage, a rule is evaluated once, however many due times were missed."""
    await alert_environment.run_scheduler_after(0)
    await alert_environment.run_scheduler_after(3600)
    await alert_environment.run_scheduler_after(0)
    assert len(alert_environment.queries.calls) == 2


async def test_rules_with_the_same_data_share_a_query() -> None:
    """Rules with equal query, parameters and time range share one execution of the query."""
    rules = [build_rule(lookup=f"r{n}", condition={"column": "value", "operator": "gt", "value": n}) for n in range(5)]
    plant = Plant(build_catalog(*map(build_entry, rules), build_entry(build_rule(lookup="x", timeRange="PT5M"))))
    plant.queries.result = build_result({"value": 2.5})
    await plant.run_scheduler_after(0)
    assert [arguments for _, (arguments, _) in plant.queries.calls] == [None, timedelta(minutes=5)]
    assert [plant.get_status(f"r{n}").value for n in range(5)] == ["firing", "firing", "firing", "ok", "ok"]


async def test_the_hold_time_of_a_rule_survives_a_restart() -> None:
    """After a restart, a pending alert fires when its condition has been met for the hold time."""
    plant = Plant(build_catalog(build_entry(build_rule(**{"for": "PT2M"}))))
    plant.queries.result = HOT
    assert await plant.run_scheduler_after(0) == []
    assert plant.get_status() is RuleStatus.PENDING
    plant.scheduler = plant.start_scheduler()
    assert await plant.run_scheduler_after() == []
    plant.scheduler = plant.start_scheduler()
    assert await plant.run_scheduler_after() == [FIRING]


async def test_a_failing_store_does_not_stop_other_rules() -> None:
    """If the result of one rule cannot be stored, other rules are evaluated, and this rule is evaluated later."""
    rules = build_rule(every="PT15S"), build_rule(lookup="x", timeRange="PT5M", every="PT15S")
    plant = Plant(build_catalog(*map(build_entry, rules)))
    plant.queries.result = HOT
    await plant.run_scheduler_after(0)
    plant.store.failures = 1
    await plant.run_scheduler_after(15)
    evaluated = {state.evaluated_at for state in plant.store.states.values()}
    assert evaluated == {AT, AT + timedelta(seconds=15)}
    await plant.run_scheduler_after(RETRY_SECONDS)
    assert AT not in {state.evaluated_at for state in plant.store.states.values()}


async def test_an_unexpected_error_does_not_stop_the_scheduler(alert_environment: Plant) -> None:
    """An unexpected error in one evaluation is logged, and the run ends normally."""
    alert_environment.queries.result = None  # type: ignore[assignment]
    await alert_environment.run_scheduler_after(0)
    alert_environment.queries.result = HOT
    assert await alert_environment.run_scheduler_after(RETRY_SECONDS) == [FIRING]


async def test_a_slow_query_does_not_delay_other_rules() -> None:
    """While a query runs, other rules that become due are evaluated."""
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


async def test_a_cancelled_run_can_be_repeated(alert_environment: Plant) -> None:
    """If the lease is lost during a query, nothing is stored; the next run evaluates the rule."""
    alert_environment.queries.result = HOT
    alert_environment.queries.gate = asyncio.Event().wait
    running = asyncio.create_task(alert_environment.scheduler.run())
    await alert_environment.queries.called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alert_environment.store.states == {}
    alert_environment.queries.gate = None
    assert await alert_environment.run_scheduler_after(0) == [FIRING]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hot", "cold", "error", "disable", "delete", "restart"]), st.integers(0, 6), st.booleans()
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(STEPS)
def test_no_store_failure_loses_or_repeats_a_transition(steps: list[tuple[str, int, bool]]) -> None:
    """If stores fail at any point, each stored transition is published once and in order."""
    asyncio.run(_run_steps(steps))


async def _run_steps(steps: list[tuple[str, int, bool]]) -> None:
    plant = Plant(build_catalog(build_entry(build_rule())))
    version = 1
    for action, failures, hits_outbox in steps:
        version += 1
        if action in ("hot", "cold"):
            plant.queries.result = HOT if action == "hot" else COLD
        elif action == "error":
            plant.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
        elif action == "restart":
            plant.scheduler = plant.start_scheduler()
        rule = build_entry(build_rule(enabled=action != "disable"), AT, plant.time.now)
        plant.catalog = build_catalog(*([] if action == "delete" else [rule]), version=version)
        plant.store.failures, plant.outbox.failures = (0, failures % 2) if hits_outbox else (failures, 0)
        try:
            await plant.run_scheduler_after(60)
        except WorkspaceError:
            plant.scheduler = plant.start_scheduler()
    plant.store.failures = plant.outbox.failures = 0
    plant.catalog = build_catalog(version=version + 1)
    for _ in range(3):
        await plant.run_scheduler_after(60)
    assert plant.store.states == {}
    published: dict[str, list[str]] = {}
    for event in plant.outbox.events.values():
        published.setdefault(event.data["alertId"], []).append(event.type.value)
    assert all(types == ["alert.firing", "alert.resolved"] for types in published.values())
    assert plant.store.alerts.keys() <= published.keys()
    assert not any(alert.is_active or alert.marks for alert in plant.store.alerts.values())
