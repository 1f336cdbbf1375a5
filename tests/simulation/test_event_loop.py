"""Tests of the event loop and the thread pools of a simulated process."""

import asyncio
import gc
import random
import weakref
from collections.abc import Coroutine
from typing import Any

from tests.simulation.crash_points import list_suspended_awaits
from tests.simulation.event_loop import SimulatedLoop, SimulatedPool
from tests.simulation.scheduler import Scheduler

ABANDONED: list[object] = []
"""Tasks of dead processes; a coroutine that Python deletes would run its ``finally`` blocks."""


class QuietObserver:
    """Job observer that starts each job after one millisecond and never crashes its process."""

    def survives_job_start(self, site: str) -> bool:  # noqa: ARG002  signature of JobObserver
        """Return True, because no process crashes."""
        return True

    def survives_job_end(self, site: str) -> bool:  # noqa: ARG002  signature of JobObserver
        """Return True, because no process crashes."""
        return True

    def draw_job_delay(self) -> int:
        """Return one millisecond as the delay of a job."""
        return 1_000


class CrashingObserver(QuietObserver):
    """Job observer whose process crashes immediately after each job."""

    def survives_job_end(self, site: str) -> bool:  # noqa: ARG002  signature of JobObserver
        """Return False, because the process crashes."""
        return False


def make_loop(seed: int = 0) -> SimulatedLoop:
    """Return an event loop with a new scheduler."""
    return SimulatedLoop(Scheduler(random.Random(seed)), "process")


def run_until_idle(loop: SimulatedLoop) -> None:
    """Run steps until the scheduler of the loop has none left."""
    while loop.scheduler.run_step():
        pass


def run_to_end[T](loop: SimulatedLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result."""
    task = loop.create_task(coroutine)
    run_until_idle(loop)
    return task.result()


def test_a_sleep_takes_virtual_time() -> None:
    """A sleep of one hour ends at once and advances the virtual clock by one hour."""
    loop = make_loop()

    async def sleep_briefly() -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert 3600 <= run_to_end(loop, sleep_briefly()) < 3601


def test_callbacks_run_in_the_order_in_which_they_were_queued() -> None:
    """An event loop runs callbacks in the order in which they were queued, as asyncio documents."""
    loop, seen = make_loop(), list[int]()
    for number in range(5):
        loop.call_soon(seen.append, number)
    run_until_idle(loop)
    assert seen == [0, 1, 2, 3, 4]


def test_a_paused_process_runs_nothing_until_the_pause_ends() -> None:
    """Callbacks, expired timers and jobs of a paused process run when the pause ends, and none is lost."""
    loop, times = make_loop(), list[float]()
    pool = SimulatedPool(loop, 1, QuietObserver())
    loop.call_soon(lambda: times.append(loop.time()))
    loop.pause(10_000_000)
    loop.call_soon(lambda: times.append(loop.time()))
    loop.call_later(3, lambda: times.append(loop.time()))
    pool.submit(lambda: times.append(loop.time()))
    run_until_idle(loop)
    assert len(times) == 4
    assert all(10 <= each < 11 for each in times)


def test_a_crash_ends_a_pause() -> None:
    """A process that crashes during a pause runs nothing after it."""
    loop, seen = make_loop(), list[int]()
    loop.pause(1_000_000)
    loop.call_soon(seen.append, 1)
    loop.crash()
    run_until_idle(loop)
    assert seen == []


def test_a_job_of_a_pool_runs_at_a_later_step() -> None:
    """A thread-pool job runs at a later step, and the coroutine that awaits it gets its result."""
    loop = make_loop()
    pool = SimulatedPool(loop, 1, QuietObserver())

    async def return_value() -> tuple[int, float]:
        return await loop.run_in_executor(pool, lambda: 7), loop.time()

    result, at = run_to_end(loop, return_value())
    assert result == 7
    assert at >= 0.001


def test_a_pool_with_one_thread_keeps_the_order_of_its_jobs() -> None:
    """A pool with one thread starts a job only after the job before it has ended."""
    loop, seen = make_loop(), list[int]()
    pool = SimulatedPool(loop, 1, QuietObserver())
    for number in range(4):
        pool.submit(seen.append, number)
    run_until_idle(loop)
    assert seen == [0, 1, 2, 3]


def test_nothing_runs_in_a_process_after_its_crash() -> None:
    """After a crash, no queued callback, timer, job or ``finally`` block runs."""
    loop, seen = make_loop(), list[str]()
    pool = SimulatedPool(loop, 1, QuietObserver())

    async def wait_forever() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            seen.append("finally")

    task = loop.create_task(wait_forever())
    loop.scheduler.run_step()
    loop.call_soon(seen.append, "callback")
    pool.submit(seen.append, "job")
    loop.crash()
    run_until_idle(loop)
    assert seen == []
    assert not task.done()
    ABANDONED.append(task)


def test_the_result_of_a_job_survives_a_crash_after_the_job() -> None:
    """The result of a job is not deleted if its process crashes, because an object can delete files when it is deleted.

    A temporary folder is such an object.
    """

    class Result:
        """Object that can be referenced weakly."""

    loop = make_loop()
    created: list[weakref.ref[Result]] = []

    def create_result() -> Result:
        result = Result()
        created.append(weakref.ref(result))
        return result

    SimulatedPool(loop, 1, CrashingObserver()).submit(create_result)
    run_until_idle(loop)
    gc.collect()
    assert created[0]() is not None


def test_the_stack_of_a_suspended_coroutine_names_awaits_of_the_service_only() -> None:
    """For a suspended coroutine, the list contains only awaits in the code of the service."""
    loop = make_loop()

    async def wait() -> None:
        await asyncio.sleep(1)

    task = loop.create_task(wait())
    loop.scheduler.run_step()
    assert list(list_suspended_awaits(task.get_coro())) == []
    run_until_idle(loop)
