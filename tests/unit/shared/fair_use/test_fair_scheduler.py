"""Tests of the scheduler that shares work slots fairly between principals."""

import asyncio

from shared.fair_use.fair_scheduler import FairScheduler


async def run_task(scheduler: FairScheduler, principal: str, started: list[str], may_end: asyncio.Event) -> None:
    """Wait for the scheduler, record the start of a task, and end the task when ``may_end`` is set."""
    async with scheduler.occupy_slot(principal):
        started.append(principal)
        await may_end.wait()


async def test_a_task_waits_for_one_task_of_each_other_principal() -> None:
    """A principal's first task waits for at most one task of each other principal."""
    scheduler, order, gate = FairScheduler(1, 10), list[str](), asyncio.Event()
    tasks = [
        asyncio.create_task(run_task(scheduler, who, order, gate)) for who in ("busy", "busy", "busy", "busy", "small")
    ]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    assert order == ["busy", "small", "busy", "busy", "busy"]


async def test_tasks_per_principal_are_limited() -> None:
    """If a principal is at the limit, another task starts only after one of its tasks has ended."""
    scheduler, order, gate = FairScheduler(1, 2), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(run_task(scheduler, "busy", order, gate)) for _ in range(2)]
    await asyncio.sleep(0)
    assert (scheduler.has_room("busy"), scheduler.has_room("small")) == (False, True)
    gate.set()
    await asyncio.gather(*tasks)
    assert scheduler.has_room("busy")


async def test_the_next_task_gets_the_slot_of_a_cancelled_one() -> None:
    """If a waiting task is cancelled, the slot goes to the next waiting task."""
    scheduler, order, gate = FairScheduler(1, 3), list[str](), asyncio.Event()
    first, second, third = (asyncio.create_task(run_task(scheduler, who, order, gate)) for who in ("a", "b", "c"))
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    gate.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert order == ["a", "c"]
    async with asyncio.timeout(5), scheduler.occupy_slot("d"):
        assert scheduler.has_room("d")


async def test_a_cancelled_waiting_task_frees_no_slot() -> None:
    """A task that is cancelled while it waits frees no slot, because it had none."""
    scheduler, order, gate = FairScheduler(1, 3), list[str](), asyncio.Event()
    first, second = (asyncio.create_task(run_task(scheduler, who, order, gate)) for who in ("a", "b"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(run_task(scheduler, "c", order, gate))
    await asyncio.sleep(0)
    assert order == ["a"]
    gate.set()
    await asyncio.gather(first, third)
    assert order == ["a", "c"]


async def test_a_task_that_is_cancelled_at_its_turn_frees_the_slot() -> None:
    """A task that is cancelled after it was given the slot, but before it starts, frees the slot."""
    scheduler, order, gate = FairScheduler(1, 3), list[str](), asyncio.Event()
    async with scheduler.occupy_slot("a"):
        waiting = asyncio.create_task(run_task(scheduler, "b", order, gate))
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    gate.set()
    async with asyncio.timeout(5):
        await run_task(scheduler, "c", order, gate)
    assert order == ["c"]


async def test_long_tasks_of_a_principal_leave_slots_to_others() -> None:
    """If slots are left free, a principal gets half of the slots that others do not use, so others start at once."""
    scheduler, order, gate = FairScheduler(8, 10, leaves_slots_free=True), list[str](), asyncio.Event()
    principals = ["first"] * 10 + ["second"] * 10 + ["third", "fourth"]
    tasks = [asyncio.create_task(run_task(scheduler, who, order, gate)) for who in principals]
    await asyncio.sleep(0)
    assert order == ["first"] * 4 + ["second"] * 2 + ["third", "fourth"]
    gate.set()
    await asyncio.gather(*tasks)
    assert sorted(order) == sorted(principals)


async def test_a_share_of_the_slots_grows_when_others_end() -> None:
    """If slots are left free, a waiting task starts when a task of another principal ends, within its own share."""
    scheduler, order, gate = FairScheduler(3, 10, leaves_slots_free=True), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(run_task(scheduler, "many", order, gate)) for _ in range(4)]
    async with scheduler.occupy_slot("one"):
        await asyncio.sleep(0)
        assert order == ["many"]
    await asyncio.sleep(0)
    assert order == ["many", "many"]
    gate.set()
    await asyncio.gather(*tasks)
    assert order == ["many"] * 4
