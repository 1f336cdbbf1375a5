"""Tests of the slots that limit the running tasks of each principal."""

import asyncio

import pytest

from shared.errors import Kind, WorkspaceError
from shared.fair_use.principal_slots import PrincipalSlots


class GatedTasks:
    """Tasks that occupy a slot until the test opens the gate; ``started`` lists those that got a slot."""

    def __init__(self, per_principal: int) -> None:
        self.slots = PrincipalSlots(per_principal, "too many tasks")
        self.gate = asyncio.Event()
        self.started: list[str] = []

    def start(self, principal: str, name: str = "", wait_seconds: float = 60) -> asyncio.Task[None]:
        """Start a task of a principal; by default, the task has the name of its principal."""

        async def run_task() -> None:
            async with self.slots.occupy_slot(principal, wait_seconds):
                self.started.append(name or principal)
                await self.gate.wait()

        return asyncio.create_task(run_task())


async def run_ready_tasks() -> None:
    """Run the event loop until every task waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_waiting_tasks_run_in_the_order_of_their_arrival() -> None:
    """A principal's waiting tasks start in the order of their arrival; a cancelled task leaves the queue."""
    tasks = GatedTasks(1)
    started = [tasks.start("many", name) for name in ("first", "cancelled", "second", "third")]
    await run_ready_tasks()
    started[1].cancel()
    tasks.gate.set()
    await asyncio.gather(*started, return_exceptions=True)
    assert tasks.started == ["first", "second", "third"]


async def test_a_cancelled_task_frees_its_slot() -> None:
    """If a running task is cancelled, the principal's next task starts."""
    tasks = GatedTasks(1)
    running, waiting = tasks.start("many", "running"), tasks.start("many", "waiting")
    await run_ready_tasks()
    running.cancel()
    await run_ready_tasks()
    assert tasks.started == ["running", "waiting"]
    tasks.gate.set()
    await waiting


async def test_a_task_that_waits_too_long_is_throttled() -> None:
    """A task that gets no slot in time is rejected with THROTTLED and does not run."""
    tasks = GatedTasks(1)
    running = tasks.start("many")
    await run_ready_tasks()
    with pytest.raises(WorkspaceError, match="too many tasks") as late:
        await tasks.start("many", "late", wait_seconds=0)
    assert (late.value.kind, late.value.code, late.value.members) == (Kind.THROTTLED, "THROTTLED", {"retryAfter": 5})
    tasks.gate.set()
    await running
    assert tasks.started == ["many"]


async def test_nothing_remains_after_the_tasks_of_a_principal() -> None:
    """When all tasks of a principal have ended, nothing is stored about it, so that memory does not grow."""
    tasks = GatedTasks(1)
    tasks.gate.set()
    await asyncio.gather(*(tasks.start(f"member-{number % 50}") for number in range(100)))
    assert not tasks.slots._slots
    assert not tasks.slots._active
