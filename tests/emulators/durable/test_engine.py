"""Tests of the Durable Task engine with the SDK's orchestrators and a manual clock."""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest
from azure.durable_functions import RetryOptions

from tests.emulators.durable.worlds import SdkFunctions, World

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once

type Steps = Generator[Any, Any, Any]


async def test_activities_run_in_sequence(world: World, functions: SdkFunctions) -> None:
    """Activities run one after another, each once; each gets the result of the previous one."""

    @functions.orchestrator
    def chain(context: Any) -> Steps:
        value = context.get_input()
        for _ in range(4):
            value = yield context.call_activity("double", value)
        return value

    await world.start("chain", 3)
    assert (await world.wait_for_end())["output"] == 48
    assert functions.called == [("double", value) for value in (3, 6, 12, 24)]


async def test_failure_of_an_activity_can_be_caught(world: World, functions: SdkFunctions) -> None:
    """An orchestrator can catch the exception of an activity, with its original text."""

    @functions.orchestrator
    def catching(context: Any) -> Steps:
        try:
            yield context.call_activity("refuse", "entry")
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return str(error)

    await world.start("catching")
    assert "ValueError: no entry" in (await world.wait_for_end())["output"]


async def test_uncaught_failure_fails_the_orchestration(world: World, functions: SdkFunctions) -> None:
    """If an exception is not caught, the orchestration fails, and its status contains the text."""

    @functions.orchestrator
    def failing(context: Any) -> Steps:
        yield context.task_all([context.call_activity("refuse", "entry"), context.call_activity("double", 1)])

    await world.start("failing")
    status = await world.wait_for_end()
    assert status["runtimeStatus"] == "Failed"
    assert status["output"].startswith("Orchestrator function 'failing' failed: Activity function 'refuse' failed:")


async def test_a_retry_policy_repeats_a_failed_call(world: World, functions: SdkFunctions) -> None:
    """A call with a retry policy is repeated until it succeeds or no attempts are left."""
    failures = iter([True, True, False])

    @functions.activity
    def flaky(value: int) -> int:
        if next(failures):
            raise ValueError("not yet")
        return value

    @functions.orchestrator
    def patient(context: Any) -> Steps:
        options = RetryOptions(5000, 3)
        tasks = [
            context.call_activity_with_retry("flaky", options, 7),
            context.call_activity("double", 1),
        ]
        values = yield context.task_all(tasks)
        try:
            yield context.call_activity_with_retry("refuse", options, "entry")
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return [*values, "ValueError: no entry" in str(error)]

    await world.start("patient")
    await world.wait_for_replays(3)
    assert [name for name, _ in functions.called].count("flaky") == 1
    assert (await world.wait_for_end(tick=1))["output"] == [7, 2, True]
    assert [name for name, _ in functions.called].count("flaky") == 3
    assert [name for name, _ in functions.called].count("refuse") == 3


async def test_timer_fires_when_due_and_not_before(world: World, functions: SdkFunctions) -> None:
    """A durable timer fires when it is due; the orchestrator's clock then shows at least that time."""

    @functions.orchestrator
    def sleeper(context: Any) -> Steps:
        begun = context.current_utc_datetime
        yield context.create_timer(begun + timedelta(hours=30))
        return (context.current_utc_datetime - begun) / timedelta(hours=1)

    await world.start("sleeper")
    await world.wait_for_replays(1)
    world.clock.advance(29 * 3600)
    assert (await world.status())["runtimeStatus"] in {"Pending", "Running"}
    world.clock.advance(3600)
    assert (await world.wait_for_end())["output"] == 30


async def test_cancelled_timer_does_not_fire(world: World, functions: SdkFunctions) -> None:
    """If the orchestrator cancels a timer because an event arrives first, the timer does not fire."""

    @functions.orchestrator
    def race(context: Any) -> Steps:
        timer = context.create_timer(context.current_utc_datetime + timedelta(minutes=1))
        approval = context.wait_for_external_event("approval")
        winner = yield context.task_any([timer, approval])
        timer.cancel()
        yield context.create_timer(context.current_utc_datetime + timedelta(minutes=5))
        return [winner == approval, approval.result]

    await world.start("race")
    await world.wait_for_replays(1)
    await world.raise_event("approval", {"by": "Ada"})
    status = await world.wait_for_end(tick=20)
    assert status["output"] == [True, {"by": "Ada"}]
    assert [event["EventType"] for event in status["historyEvents"]].count("TimerFired") == 1


async def test_a_timer_ends_a_wait_for_an_event(world: World, functions: SdkFunctions) -> None:
    """If an orchestrator waits for a timer or an event, and the timer is due first, the timer ends the wait."""

    @functions.orchestrator
    def race(context: Any) -> Steps:
        timer = context.create_timer(context.current_utc_datetime + timedelta(minutes=1))
        winner = yield context.task_any([context.wait_for_external_event("approval"), timer])
        return winner == timer

    await world.start("race")
    assert (await world.wait_for_end(tick=30))["output"] is True


async def test_early_events_are_delivered_in_order(world: World, functions: SdkFunctions) -> None:
    """Events that arrive before the orchestrator waits are stored in order; each ends one wait for its event name."""

    @functions.orchestrator
    def listener(context: Any) -> Steps:
        yield context.call_activity("double", 1)
        first = yield context.wait_for_external_event("number")
        word = yield context.wait_for_external_event("word")
        second = yield context.wait_for_external_event("number")
        return [first, word, second]

    await world.start("listener")
    for number in (1, 2, 3):
        await world.raise_event("number", number)
    await world.raise_event("word", "last")
    assert (await world.wait_for_end())["output"] == [1, "last", 2]


async def test_sub_orchestrations_return_and_fail(world: World, functions: SdkFunctions) -> None:
    """A sub-orchestration returns its output, or fails and is repeated by its retry policy."""

    @functions.orchestrator
    def inner(context: Any) -> Steps:
        value = yield context.call_activity("double", context.get_input())
        return {"parent": context.parent_instance_id, "value": value}

    @functions.orchestrator
    def broken(context: Any) -> Steps:
        yield context.call_activity("refuse", "entry")

    @functions.orchestrator
    def outer(context: Any) -> Steps:
        both = yield context.task_all(
            [context.call_sub_orchestrator("inner", 4), context.call_sub_orchestrator("inner", 5, "named")]
        )
        try:
            yield context.call_sub_orchestrator_with_retry("broken", RetryOptions(1000, 2))
        except Exception as error:  # noqa: BLE001  what the SDK raises
            return [both, "no entry" in str(error)]

    await world.start("outer")
    status = await world.wait_for_end(tick=1)
    assert status["output"] == [[{"parent": "one", "value": 8}, {"parent": "one", "value": 10}], True]
    assert (await world.status("named"))["runtimeStatus"] == "Completed"
    assert functions.called.count(("refuse", "entry")) == 2


async def test_continue_as_new_keeps_events(world: World, functions: SdkFunctions) -> None:
    """After continue-as-new, the history is empty, but undelivered events are still delivered."""

    @functions.orchestrator
    def counter(context: Any) -> Steps:
        total = context.get_input()
        total += yield context.wait_for_external_event("add")
        if total >= 10:
            return total
        context.continue_as_new(total)
        return None

    await world.start("counter", 0)
    for number in (1, 2, 3, 4):
        await world.raise_event("add", number)
    status = await world.wait_for_end()
    assert status["output"] == 10
    assert [event["EventType"] for event in status["historyEvents"]].count("EventRaised") == 1


async def test_the_custom_status_of_a_waiting_orchestrator_is_visible(world: World, functions: SdkFunctions) -> None:
    """The custom status of a waiting orchestrator is visible."""

    @functions.orchestrator
    def telling(context: Any) -> Steps:
        context.set_custom_status({"percent": 40})
        yield context.wait_for_external_event("go")

    await world.start("telling")

    async def has_custom_status() -> bool:
        return bool((await world.status())["customStatus"] == {"percent": 40})

    await world.wait_until(has_custom_status)


async def test_ids_and_time_are_the_same_on_replay(world: World, functions: SdkFunctions) -> None:
    """In each replay, generated ids and the current time have the same values."""
    seen: list[Any] = []

    @functions.orchestrator
    def remembering(context: Any) -> Steps:
        values = (str(context.new_guid()), context.new_uuid(), str(context.current_utc_datetime))
        seen.append(values)
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=5))
        yield context.call_activity("double", 1)

    await world.start("remembering")
    await world.wait_for_end(tick=5)
    assert len(seen) == 3
    assert len(set(seen)) == 1
