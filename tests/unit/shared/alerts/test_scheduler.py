"""Tests of the alert scheduler together with the evaluator and the notifications."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.alerts.models import RuleStatus
from shared.alerts.scheduler import HISTORY, RETRY_SECONDS, TASKS_AT_ONCE
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.telemetry.ports import ConnectionState
from shared.webhooks.events import WebhookEvent
from tests.random_examples import scale_examples
from tests.unit.shared.alerts.environment import COLD, FIRING, HOT, RESOLVED, AlertWorkspace
from tests.unit.shared.alerts.fakes import (
    AT,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_result,
    build_rule,
    build_unavailable_error,
)


async def test_an_alert_transition_is_published_once(alert_workspace: AlertWorkspace) -> None:
    """Each transition of an alert is published once, with the rule, the value and the times."""
    alert_workspace.queries.result = HOT
    assert await alert_workspace.run_scheduler_after(0) == [FIRING]
    assert await alert_workspace.run_scheduler_after() == [FIRING]
    alert_workspace.queries.result = COLD
    assert await alert_workspace.run_scheduler_after() == [FIRING, RESOLVED]
    event, resolved = alert_workspace.outbox.events.values()
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


async def test_a_rule_is_evaluated_once_for_each_due_time(alert_workspace: AlertWorkspace) -> None:
    """Between two due times of a rule, no instance executes its query."""
    await alert_workspace.run_scheduler_after(0)
    for _ in range(5):
        await alert_workspace.run_scheduler_after(0)
        await alert_workspace.start_scheduler().evaluate_due_rules()
    assert len(alert_workspace.queries.calls) == 1
    alert_workspace.time.advance(60)
    await asyncio.gather(
        alert_workspace.scheduler.evaluate_due_rules(), alert_workspace.start_scheduler().evaluate_due_rules()
    )
    assert len(alert_workspace.store.states) == 1
    assert alert_workspace.store.states["hot"].evaluated_at == alert_workspace.time.now


async def test_missed_evaluations_are_repeated_once(alert_workspace: AlertWorkspace) -> None:
    """After an outage, a rule is evaluated once, however many due times were missed."""
    await alert_workspace.run_scheduler_after(0)
    await alert_workspace.run_scheduler_after(3600)
    await alert_workspace.run_scheduler_after(0)
    assert len(alert_workspace.queries.calls) == 2


async def test_rules_with_the_same_data_share_a_query() -> None:
    """Rules with equal query, parameters and time range share one execution of the query."""
    rules = [build_rule(lookup=f"r{n}", condition={"column": "value", "operator": "gt", "value": n}) for n in range(5)]
    workspace = AlertWorkspace(
        build_catalog(*map(build_entry, rules), build_entry(build_rule(lookup="x", timeRange="PT5M")))
    )
    workspace.queries.result = build_result({"value": 2.5})
    await workspace.run_scheduler_after(0)
    assert [arguments for _, (arguments, _) in workspace.queries.calls] == [None, timedelta(minutes=5)]
    assert [workspace.get_status(f"r{n}").value for n in range(5)] == ["firing", "firing", "firing", "ok", "ok"]


async def test_the_hold_time_of_a_rule_survives_a_restart() -> None:
    """After a restart, a pending alert fires when its condition has been met for the hold time."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_rule(**{"for": "PT2M"}))))
    workspace.queries.result = HOT
    assert await workspace.run_scheduler_after(0) == []
    assert workspace.get_status() is RuleStatus.PENDING
    workspace.scheduler = workspace.start_scheduler()
    assert await workspace.run_scheduler_after() == []
    workspace.scheduler = workspace.start_scheduler()
    assert await workspace.run_scheduler_after() == [FIRING]


async def test_a_failing_store_does_not_stop_other_rules() -> None:
    """If the result of one rule cannot be stored, it is evaluated later, and other rules are still evaluated."""
    rules = build_rule(every="PT15S"), build_rule(lookup="x", timeRange="PT5M", every="PT15S")
    workspace = AlertWorkspace(build_catalog(*map(build_entry, rules)))
    workspace.queries.result = HOT
    await workspace.run_scheduler_after(0)
    workspace.store.failures = 1
    await workspace.run_scheduler_after(15)
    evaluated = {state.evaluated_at for state in workspace.store.states.values()}
    assert evaluated == {AT, AT + timedelta(seconds=15)}
    await workspace.run_scheduler_after(RETRY_SECONDS)
    assert AT not in {state.evaluated_at for state in workspace.store.states.values()}


async def test_an_unexpected_error_does_not_stop_the_scheduler(alert_workspace: AlertWorkspace) -> None:
    """An unexpected error in one evaluation is logged, and the run ends normally."""
    alert_workspace.queries.result = None  # type: ignore[assignment]
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = HOT
    assert await alert_workspace.run_scheduler_after(RETRY_SECONDS) == [FIRING]


async def test_a_slow_query_does_not_delay_other_rules() -> None:
    """While a query runs, other rules that become due are evaluated."""
    slow, fast = build_rule(lookup="slow", timeRange="PT5M"), build_rule(lookup="fast")
    workspace = AlertWorkspace(build_catalog(build_entry(slow)))
    workspace.queries.result = HOT
    gate = asyncio.Event()
    workspace.queries.gate = gate.wait
    running = asyncio.create_task(workspace.scheduler.evaluate_due_rules())
    await workspace.queries.called.wait()
    workspace.queries.gate = None
    workspace.catalog = build_catalog(build_entry(slow), build_entry(fast), version=2)
    workspace.queries.called.clear()
    await workspace.queries.called.wait()
    assert "slow" not in workspace.store.states
    gate.set()
    await running
    assert set(workspace.store.states) == {"slow", "fast"}


async def test_slow_queries_do_not_delay_rules_without_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """While as many queries run as may run at once, absence rules are evaluated and alerts of disabled rules end."""
    slow = [build_entry(build_rule(lookup=f"slow{n}", timeRange=f"PT{n + 2}M")) for n in range(TASKS_AT_ONCE + 1)]
    workspace = AlertWorkspace(build_catalog(build_entry(build_rule())))
    workspace.queries.result = HOT
    assert await workspace.run_scheduler_after(0) == [FIRING]
    workspace.time.advance(600)
    workspace.queries.gate = asyncio.Event().wait
    workspace.queries.calls.clear()
    rules = [*slow, build_entry(build_rule(enabled=False)), build_entry(build_absence_rule())]
    workspace.catalog = build_catalog(*rules, version=2)
    publish, has_published_all = workspace.outbox.publish, asyncio.Event()

    async def publish_events(events: Sequence[WebhookEvent]) -> None:
        await publish(events)
        if len(workspace.outbox.events) == 3:
            has_published_all.set()

    monkeypatch.setattr(workspace.outbox, "publish", publish_events)
    running = asyncio.create_task(workspace.scheduler.evaluate_due_rules())
    async with asyncio.timeout(20):
        await has_published_all.wait()
    assert set(workspace.outbox.list_transitions()) == {FIRING, RESOLVED, SILENT}
    assert len(workspace.queries.calls) == TASKS_AT_ONCE
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_slow_queries_do_not_delay_unpublished_events() -> None:
    """While as many queries run as may run at once, the unpublished events of a rule that is not due are published."""
    hot = build_entry(build_rule(every="PT1H"))
    workspace = AlertWorkspace(build_catalog(hot))
    workspace.queries.result, workspace.outbox.failures = HOT, 1
    assert await workspace.run_scheduler_after(0) == []
    slow = [build_entry(build_rule(lookup=f"slow{n}", timeRange=f"PT{n + 2}M")) for n in range(TASKS_AT_ONCE)]
    workspace.catalog = build_catalog(*slow, hot, version=2)
    workspace.queries.gate = asyncio.Event().wait
    workspace.time.advance(RETRY_SECONDS)
    running = asyncio.create_task(workspace.scheduler.evaluate_due_rules())
    for _ in range(1000):
        await asyncio.sleep(0)
    assert workspace.outbox.list_transitions() == [FIRING]
    assert len(workspace.queries.calls) == 1 + TASKS_AT_ONCE
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_unpublished_events_do_not_delay_absence_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the webhook outbox does not respond for many rules with unpublished events, absence rules are evaluated."""
    rules = [build_entry(build_rule(lookup=f"hot{n}", timeRange=f"PT{n + 2}M", every="PT1H")) for n in range(9)]
    workspace = AlertWorkspace(build_catalog(*rules, build_entry(build_absence_rule(every="P1D"))))
    workspace.queries.result, workspace.outbox.failures = HOT, len(rules)
    assert await workspace.run_scheduler_after(0) == []
    publishing, evaluated = asyncio.Semaphore(0), asyncio.Event()

    async def wait_without_end(events: Sequence[WebhookEvent]) -> None:
        del events
        publishing.release()
        await asyncio.Event().wait()

    async def note_evaluation() -> None:
        evaluated.set()

    monkeypatch.setattr(workspace.outbox, "publish", wait_without_end)
    workspace.connections.gate = note_evaluation
    workspace.time.advance(RETRY_SECONDS)
    running = asyncio.create_task(workspace.scheduler.evaluate_due_rules())
    for _ in range(TASKS_AT_ONCE):
        await publishing.acquire()
    absence = build_entry(build_absence_rule(lookup="silent2", every="P1D"))
    workspace.catalog = build_catalog(*rules, absence, version=2)
    async with asyncio.timeout(20):
        await evaluated.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_slow_query_does_not_delay_the_deletion_of_old_alerts(
    alert_workspace: AlertWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old resolved alerts are deleted although queries keep the run busy, and although the store fails at first."""
    limits: list[datetime] = []

    async def fail_to_delete(resolved_before: datetime) -> int:
        limits.append(resolved_before)
        raise build_unavailable_error()

    monkeypatch.setattr(alert_workspace.store, "delete_and_count_resolved_alerts", fail_to_delete)
    alert_workspace.queries.gate = asyncio.Event().wait
    running = asyncio.create_task(alert_workspace.scheduler.evaluate_due_rules())
    await alert_workspace.queries.called.wait()
    assert limits == [AT - HISTORY]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    alert_workspace.queries.gate = None
    for seconds in (60, 3600):
        await alert_workspace.run_scheduler_after(seconds)
    assert limits == [AT - HISTORY, AT + timedelta(seconds=3660) - HISTORY]


async def test_a_cancelled_run_can_be_repeated(alert_workspace: AlertWorkspace) -> None:
    """If the lease is lost during a query, nothing is stored; the next run evaluates the rule."""
    alert_workspace.queries.result = HOT
    alert_workspace.queries.gate = asyncio.Event().wait
    running = asyncio.create_task(alert_workspace.scheduler.evaluate_due_rules())
    await alert_workspace.queries.called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alert_workspace.store.states == {}
    alert_workspace.queries.gate = None
    assert await alert_workspace.run_scheduler_after(0) == [FIRING]


SILENT, HEARD = ("alert.firing", "silent"), ("alert.resolved", "silent")


async def test_the_alert_of_a_disabled_connection_ends_after_a_failure() -> None:
    """If the store fails when a connection is disabled, its alert ends at the next attempt, before the due time."""
    workspace = await _start_workspace_with_silent_press()
    workspace.catalog = _disable_press(workspace.catalog)
    workspace.store.failures = 1
    assert await workspace.run_scheduler_after(1) == [SILENT]
    assert await workspace.run_scheduler_after(RETRY_SECONDS) == [SILENT, HEARD]


async def test_the_alert_of_a_disabled_connection_ends_after_a_failed_evaluation() -> None:
    """If the evaluation fails when a connection is disabled, its alert ends as soon as an evaluation succeeds."""
    workspace = await _start_workspace_with_silent_press()
    workspace.catalog = _disable_press(workspace.catalog)
    workspace.connections.error = WorkspaceError(Kind.UNAVAILABLE, "CONNECTION_STATES_UNAVAILABLE", "x")
    await workspace.run_scheduler_after(1)
    assert workspace.get_status("silent") is RuleStatus.ERROR
    workspace.connections.error = None
    assert HEARD in await workspace.run_scheduler_after(RETRY_SECONDS)
    assert workspace.get_status("silent") is RuleStatus.OK


async def test_the_alert_of_a_connection_that_was_disabled_during_an_evaluation_ends() -> None:
    """If a connection is disabled during an evaluation that makes its alert fire, the alert ends in the same run."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule(every="P1D"))))
    workspace.time.advance(600)

    async def disable_press() -> None:
        workspace.connections.gate = None
        changed = _disable_press(workspace.catalog)
        rules = {**changed.alert_rules, "hot": build_entry(build_rule())}
        workspace.catalog = replace(changed, alert_rules=rules)
        # The new rule is evaluated after the scheduler has seen the new catalog.
        await workspace.queries.called.wait()

    workspace.connections.gate = disable_press
    assert await workspace.run_scheduler_after(0) == [SILENT, HEARD]


@pytest.mark.parametrize("hold", ["PT0S", "PT2M"])
@pytest.mark.parametrize("minutes", [4, 40])
async def test_a_clock_setback_does_not_end_the_alert_of_a_silent_connection(hold: str, minutes: int) -> None:
    """If the clock is set back, the alert of a silent connection continues until its next message."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule(**{"for": hold}))))
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    await workspace.run_scheduler_after(300)
    assert await workspace.run_scheduler_after(120) == [SILENT]
    workspace.time.set_back(60 * minutes)
    for _ in range(minutes + 10):
        assert await workspace.run_scheduler_after(60) == [SILENT]
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 2, workspace.time.now)}
    assert await workspace.run_scheduler_after(60) == [SILENT, HEARD]


async def test_a_message_ends_an_alert_although_a_later_time_is_stored() -> None:
    """If the clock is set back, a message ends an alert also while the stored time of an earlier message is later."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule(after="PT1M"))))
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    assert await workspace.run_scheduler_after(60) == [SILENT]
    workspace.time.set_back(240)
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 2, AT)}
    assert await workspace.run_scheduler_after(60) == [SILENT, HEARD]


async def test_an_edited_rule_ends_the_alert_of_a_silent_connection() -> None:
    """If `after` of an absence rule is longer than the silence of a connection, its alert ends."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule())))
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 1, AT)}
    assert await workspace.run_scheduler_after(300) == [SILENT]
    edited = build_entry(build_absence_rule(after="PT1H"), updated_at=workspace.time.now)
    workspace.catalog = build_catalog(edited, version=2)
    assert await workspace.run_scheduler_after(60) == [SILENT, HEARD]


async def test_an_alert_of_another_connection_is_not_checked_again() -> None:
    """A firing rule that also watches a disabled connection is evaluated at its due times only."""
    rule = build_absence_rule(every="P1D", connections=["press", "off"])
    workspace = AlertWorkspace(build_catalog(build_entry(rule)))
    assert await workspace.run_scheduler_after(600) == [SILENT]
    evaluated_at = workspace.store.states["silent"].evaluated_at
    assert await workspace.run_scheduler_after(60) == [SILENT]
    assert workspace.store.states["silent"].evaluated_at == evaluated_at


async def _start_workspace_with_silent_press() -> AlertWorkspace:
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule(every="P1D"))))
    assert await workspace.run_scheduler_after(600) == [SILENT]
    return workspace


def _disable_press(catalog: Catalog) -> Catalog:
    press = catalog.connections["press"]
    disabled = replace(press, value=press.value.model_copy(update={"enabled": False}))
    return replace(catalog, version=catalog.version + 1, connections={"press": disabled})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hot", "cold", "error", "disable", "delete", "restart"]), st.integers(0, 6), st.booleans()
    ),
    max_size=15,
)


@settings(max_examples=scale_examples(60))
@given(STEPS)
def test_no_store_failure_loses_or_repeats_a_transition(steps: list[tuple[str, int, bool]]) -> None:
    """If stores fail at any point, each stored transition is published once and in order."""
    asyncio.run(_run_scheduler_with_store_failures(steps))


async def _run_scheduler_with_store_failures(steps: list[tuple[str, int, bool]]) -> None:
    workspace = AlertWorkspace(build_catalog(build_entry(build_rule())))
    version = 1
    for action, failures, hits_outbox in steps:
        version += 1
        if action in ("hot", "cold"):
            workspace.queries.result = HOT if action == "hot" else COLD
        elif action == "error":
            workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
        elif action == "restart":
            workspace.scheduler = workspace.start_scheduler()
        rule = build_entry(build_rule(enabled=action != "disable"), AT, workspace.time.now)
        workspace.catalog = build_catalog(*([] if action == "delete" else [rule]), version=version)
        workspace.store.failures, workspace.outbox.failures = (0, failures) if hits_outbox else (failures, 0)
        try:
            await workspace.run_scheduler_after(60)
        except WorkspaceError:
            workspace.scheduler = workspace.start_scheduler()
    workspace.store.failures = workspace.outbox.failures = 0
    workspace.catalog = build_catalog(version=version + 1)
    for _ in range(3):
        await workspace.run_scheduler_after(60)
    assert workspace.store.states == {}
    published: dict[str, list[str]] = {}
    for event in workspace.outbox.events.values():
        published.setdefault(event.data["alertId"], []).append(event.type.value)
    assert all(types == ["alert.firing", "alert.resolved"] for types in published.values())
    assert workspace.store.alerts.keys() <= published.keys()
    assert not any(alert.is_active or alert.marks for alert in workspace.store.alerts.values())
