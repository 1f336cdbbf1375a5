"""Tests of the Durable Task engine with the SDK's orchestrators and a manual clock."""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest
from azure.durable_functions import RetryOptions

from tests.emulators.durable.engine_harness import EngineHarness, SdkFunctions

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once

type Steps = Generator[Any, Any, Any]


async def test_activities_run_in_sequence(harness: EngineHarness, functions: SdkFunctions) -> None:
    """Activities run one after another, each once; each gets the result of the previous one."""

    @functions.register_orchestrator
    def double_four_times(context: Any) -> Steps:
        value = context.get_input()
        for _ in range(4):
            value = yield context.call_activity("double", value)
        return value

    await harness.start_orchestration("double_four_times", 3)
    assert (await harness.wait_for_end())["output"] == 48
    assert functions.called == [("double", value) for value in (3, 6, 12, 24)]


async def test_failure_of_an_activity_can_be_caught(harness: EngineHarness, functions: SdkFunctions) -> None:
    """An orchestrator can catch the exception of a failed activity; the exception has the original text."""

    @functions.register_orchestrator
    def catch_failure(context: Any) -> Steps:
        try:
            yield context.call_activity("refuse", "entry")
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return str(error)

    await harness.start_orchestration("catch_failure")
    assert "ValueError: no entry" in (await harness.wait_for_end())["output"]


async def test_uncaught_failure_fails_the_orchestration(harness: EngineHarness, functions: SdkFunctions) -> None:
    """If an orchestrator does not catch an exception, the orchestration fails, and its status contains the text."""

    @functions.register_orchestrator
    def call_failing_activity(context: Any) -> Steps:
        yield context.task_all([context.call_activity("refuse", "entry"), context.call_activity("double", 1)])

    await harness.start_orchestration("call_failing_activity")
    status = await harness.wait_for_end()
    assert status["runtimeStatus"] == "Failed"
    assert status["output"].startswith(
        "Orchestrator function 'call_failing_activity' failed: Activity function 'refuse' failed:"
    )


async def test_a_retry_policy_repeats_a_failed_call(harness: EngineHarness, functions: SdkFunctions) -> None:
    """A call of an activity with a retry policy is repeated until it succeeds or no attempts are left."""
    failures = iter([True, True, False])

    @functions.register_activity
    def fail_twice(value: int) -> int:
        if next(failures):
            raise ValueError("not yet")
        return value

    @functions.register_orchestrator
    def retry_calls(context: Any) -> Steps:
        options = RetryOptions(5000, 3)
        tasks = [
            context.call_activity_with_retry("fail_twice", options, 7),
            context.call_activity("double", 1),
        ]
        values = yield context.task_all(tasks)
        try:
            yield context.call_activity_with_retry("refuse", options, "entry")
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return [*values, "ValueError: no entry" in str(error)]

    await harness.start_orchestration("retry_calls")
    await harness.wait_for_replays(3)
    assert [name for name, _ in functions.called].count("fail_twice") == 1
    assert (await harness.wait_for_end(tick=1))["output"] == [7, 2, True]
    assert [name for name, _ in functions.called].count("fail_twice") == 3
    assert [name for name, _ in functions.called].count("refuse") == 3


async def test_timer_fires_when_due_and_not_before(harness: EngineHarness, functions: SdkFunctions) -> None:
    """A durable timer fires when it is due; the orchestrator's clock then shows at least that time."""

    @functions.register_orchestrator
    def wait_for_timer(context: Any) -> Steps:
        begun = context.current_utc_datetime
        yield context.create_timer(begun + timedelta(hours=30))
        return (context.current_utc_datetime - begun) / timedelta(hours=1)

    await harness.start_orchestration("wait_for_timer")
    await harness.wait_for_replays(1)
    harness.clock.advance(29 * 3600)
    assert (await harness.read_status())["runtimeStatus"] in {"Pending", "Running"}
    harness.clock.advance(3600)
    assert (await harness.wait_for_end())["output"] == 30


async def test_cancelled_timer_does_not_fire(harness: EngineHarness, functions: SdkFunctions) -> None:
    """If the orchestrator cancels a timer because an event arrives first, the timer does not fire."""

    @functions.register_orchestrator
    def cancel_timer_after_event(context: Any) -> Steps:
        timer = context.create_timer(context.current_utc_datetime + timedelta(minutes=1))
        approval = context.wait_for_external_event("approval")
        winner = yield context.task_any([timer, approval])
        timer.cancel()
        yield context.create_timer(context.current_utc_datetime + timedelta(minutes=5))
        return [winner == approval, approval.result]

    await harness.start_orchestration("cancel_timer_after_event")
    await harness.wait_for_replays(1)
    await harness.raise_event("approval", {"by": "Ada"})
    status = await harness.wait_for_end(tick=20)
    assert status["output"] == [True, {"by": "Ada"}]
    assert [event["EventType"] for event in status["historyEvents"]].count("TimerFired") == 1


async def test_a_timer_ends_a_wait_for_an_event(harness: EngineHarness, functions: SdkFunctions) -> None:
    """If an orchestrator waits for a timer or an event, and the timer is due first, the timer ends the wait."""

    @functions.register_orchestrator
    def wait_for_timer_or_event(context: Any) -> Steps:
        timer = context.create_timer(context.current_utc_datetime + timedelta(minutes=1))
        winner = yield context.task_any([context.wait_for_external_event("approval"), timer])
        return winner == timer

    await harness.start_orchestration("wait_for_timer_or_event")
    assert (await harness.wait_for_end(tick=30))["output"] is True


async def test_early_events_are_delivered_in_order(harness: EngineHarness, functions: SdkFunctions) -> None:
    """Events that arrive before the orchestrator waits are stored in order; each ends one wait for its event name."""

    @functions.register_orchestrator
    def wait_for_three_events(context: Any) -> Steps:
        yield context.call_activity("double", 1)
        first = yield context.wait_for_external_event("number")
        word = yield context.wait_for_external_event("word")
        second = yield context.wait_for_external_event("number")
        return [first, word, second]

    await harness.start_orchestration("wait_for_three_events")
    for number in (1, 2, 3):
        await harness.raise_event("number", number)
    await harness.raise_event("word", "last")
    assert (await harness.wait_for_end())["output"] == [1, "last", 2]


async def test_sub_orchestrations_return_and_fail(harness: EngineHarness, functions: SdkFunctions) -> None:
    """A sub-orchestration returns its output, or fails and is repeated by its retry policy."""

    @functions.register_orchestrator
    def double_input(context: Any) -> Steps:
        value = yield context.call_activity("double", context.get_input())
        return {"parent": context.parent_instance_id, "value": value}

    @functions.register_orchestrator
    def fail_always(context: Any) -> Steps:
        yield context.call_activity("refuse", "entry")

    @functions.register_orchestrator
    def call_sub_orchestrations(context: Any) -> Steps:
        both = yield context.task_all(
            [
                context.call_sub_orchestrator("double_input", 4),
                context.call_sub_orchestrator("double_input", 5, "named"),
            ]
        )
        try:
            yield context.call_sub_orchestrator_with_retry("fail_always", RetryOptions(1000, 2))
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return [both, "no entry" in str(error)]

    await harness.start_orchestration("call_sub_orchestrations")
    status = await harness.wait_for_end(tick=1)
    assert status["output"] == [[{"parent": "one", "value": 8}, {"parent": "one", "value": 10}], True]
    assert (await harness.read_status("named"))["runtimeStatus"] == "Completed"
    assert functions.called.count(("refuse", "entry")) == 2


async def test_continue_as_new_keeps_undelivered_events(harness: EngineHarness, functions: SdkFunctions) -> None:
    """After continue-as-new, the history is empty, but undelivered events are still delivered."""

    @functions.register_orchestrator
    def add_numbers_of_events(context: Any) -> Steps:
        total = context.get_input()
        total += yield context.wait_for_external_event("add")
        if total >= 10:
            return total
        context.continue_as_new(total)
        return None

    await harness.start_orchestration("add_numbers_of_events", 0)
    for number in (1, 2, 3, 4):
        await harness.raise_event("add", number)
    status = await harness.wait_for_end()
    assert status["output"] == 10
    assert [event["EventType"] for event in status["historyEvents"]].count("EventRaised") == 1


async def test_the_custom_status_of_a_waiting_orchestrator_is_visible(
    harness: EngineHarness, functions: SdkFunctions
) -> None:
    """The custom status of a waiting orchestrator is visible."""

    @functions.register_orchestrator
    def set_status_and_wait(context: Any) -> Steps:
        context.set_custom_status({"percent": 40})
        yield context.wait_for_external_event("go")

    await harness.start_orchestration("set_status_and_wait")

    async def has_custom_status() -> bool:
        return bool((await harness.read_status())["customStatus"] == {"percent": 40})

    await harness.wait_until(has_custom_status)


async def test_ids_and_time_are_the_same_on_replay(harness: EngineHarness, functions: SdkFunctions) -> None:
    """In each replay, generated ids and the current time have the same values."""
    seen: list[Any] = []

    @functions.register_orchestrator
    def record_ids_and_time(context: Any) -> Steps:
        values = (str(context.new_guid()), context.new_uuid(), str(context.current_utc_datetime))
        seen.append(values)
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=5))
        yield context.call_activity("double", 1)

    await harness.start_orchestration("record_ids_and_time")
    await harness.wait_for_end(tick=5)
    assert len(seen) == 3
    assert len(set(seen)) == 1
