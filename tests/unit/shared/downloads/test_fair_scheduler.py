"""Tests of the scheduler that shares work slots fairly between principals."""

import asyncio

from shared.downloads.fair_scheduler import FairScheduler


async def run_task(turns: FairScheduler, principal: str, order: list[str], gate: asyncio.Event) -> None:
    """Run a task when the scheduler starts it, and record the start."""
    async with turns.wait_for_turn(principal):
        order.append(principal)
        await gate.wait()


async def test_a_task_waits_for_one_task_of_each_other_principal() -> None:
    """A principal's first task waits for at most one task of each other principal."""
    turns, order, gate = FairScheduler(1, 10), list[str](), asyncio.Event()
    tasks = [
        asyncio.create_task(run_task(turns, who, order, gate)) for who in ("busy", "busy", "busy", "busy", "small")
    ]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    assert order == ["busy", "small", "busy", "busy", "busy"]


async def test_tasks_per_principal_are_limited() -> None:
    """If a principal is at the limit, another task starts only after one of its tasks has ended."""
    turns, order, gate = FairScheduler(1, 2), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(run_task(turns, "busy", order, gate)) for _ in range(2)]
    await asyncio.sleep(0)
    assert (turns.has_room("busy"), turns.has_room("small")) == (False, True)
    gate.set()
    await asyncio.gather(*tasks)
    assert turns.has_room("busy")


async def test_the_next_task_gets_the_slot_of_a_cancelled_one() -> None:
    """If a waiting task is cancelled, the next task gets its slot."""
    turns, order, gate = FairScheduler(1, 3), list[str](), asyncio.Event()
    first, second, third = (asyncio.create_task(run_task(turns, who, order, gate)) for who in ("a", "b", "c"))
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    gate.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert order == ["a", "c"]
    async with asyncio.timeout(5), turns.wait_for_turn("d"):
        assert turns.has_room("d")
