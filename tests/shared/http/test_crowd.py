"""Turns in a crowd of requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from contextvars import Context

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.crowd import (
    COUNTED_SECONDS,
    PATIENCE_SECONDS,
    STANDING_PATIENCE_SECONDS,
    STANDING_SECONDS,
    TOLERATED,
    Crowd,
)

PLACES = 2
REFUSAL = f"{Kind.UNAVAILABLE} OVERLOADED {{'retryAfter': 1}}"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Requests:
    """Requests that are asked one after the other and work until they are told to end."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._crowd = Crowd(PLACES, self.clock)
        self._tasks: list[asyncio.Task[str]] = []
        self.working: list[int] = []
        self._ends: list[asyncio.Event] = []

    async def come(self, count: int) -> None:
        """Let so many come."""
        for _ in range(count):
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._work(len(self._tasks))))
        await self.settle()

    async def _work(self, number: int) -> str:
        try:
            async with self._crowd.turn("/a"):
                self.working.append(number)
                await self._ends[number].wait()
                return "done"
        except WorkspaceError as error:
            return f"{error.kind} {error.code} {error.members}"

    async def end(self, *numbers: int) -> None:
        """Let some end."""
        for number in numbers:
            self._ends[number].set()
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(5):
            await asyncio.sleep(0)

    def refused(self) -> list[int]:
        """Return which were refused."""
        return [n for n, task in enumerate(self._tasks) if task.done() and task.result() == REFUSAL]

    async def cancel(self, *numbers: int) -> None:
        """Let some callers go away."""
        for number in numbers:
            self._tasks[number].cancel()
        await asyncio.gather(*(self._tasks[number] for number in numbers), return_exceptions=True)
        await self.settle()

    async def close(self) -> None:
        """End all."""
        await self.cancel(*range(len(self._tasks)))


@pytest.fixture
async def requests() -> AsyncIterator[Requests]:
    """Requests of two places."""
    asked = Requests()
    yield asked
    await asked.close()


async def test_as_many_work_as_there_are_places_and_the_next_in_turn(requests: Requests) -> None:
    """Who came first works first, and a place that becomes free goes to who waits longest."""
    await requests.come(5)
    assert requests.working == [0, 1]
    await requests.end(1)
    assert requests.working == [0, 1, 2]
    await requests.end(0, 2)
    assert requests.working == [0, 1, 2, 3, 4]


async def test_a_long_request_makes_room(requests: Requests) -> None:
    """A place is given away when its request takes long, so that slow ones never keep others out."""
    await requests.come(PLACES)
    requests.clock.now += COUNTED_SECONDS
    await requests.come(3)
    assert requests.working == [0, 1, 2, 3]
    await requests.end(0, 1)
    assert requests.working == [0, 1, 2, 3]
    await requests.end(2)
    assert requests.working == [0, 1, 2, 3, 4]


async def test_few_that_wait_are_never_refused(requests: Requests) -> None:
    """As many as callers commonly have under way wait for their turn, however slow those before them are."""
    await requests.come(PLACES + TOLERATED)
    for number in range(PLACES + TOLERATED):
        assert number in requests.working
        requests.clock.now += COUNTED_SECONDS / 2
        await requests.end(number)
    assert requests.refused() == []


async def test_a_crowd_is_refused_after_a_while(requests: Requests) -> None:
    """Beyond that, those who waited for too long are refused, from the front, until few wait."""
    await requests.come(PLACES + TOLERATED + 3)
    requests.clock.now += min(PATIENCE_SECONDS, COUNTED_SECONDS) * 0.9
    await requests.end(0)
    assert (requests.working[-1], requests.refused()) == (PLACES, [])
    requests.clock.now += PATIENCE_SECONDS
    await requests.come(1)
    assert requests.refused() == [PLACES + 1, PLACES + 2, PLACES + 3]


async def test_a_crowd_that_stays_is_refused_sooner(requests: Requests) -> None:
    """After a second of crowd the patience is shorter, and long again once the crowd was gone."""
    await requests.come(PLACES + TOLERATED + 1)
    first = len(requests.working)
    requests.clock.now += PATIENCE_SECONDS / 2
    await requests.come(40)
    requests.clock.now += STANDING_SECONDS
    await requests.come(1)
    refused = len(requests.refused())
    assert refused
    await requests.come(40)
    requests.clock.now += STANDING_PATIENCE_SECONDS
    await requests.come(1)
    assert len(requests.refused()) > refused
    assert len(requests.working) > first


async def test_health_and_what_is_handed_on_take_no_turn() -> None:
    """Whether the process is alive is answered in any crowd, and a request that asks within itself is not stuck."""
    crowd = Crowd(1)
    async with crowd.turn("/a"):
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(crowd.turn("/within"))
        await asyncio.create_task(_asked(crowd, "/healthz"), context=Context())
        waiting = asyncio.create_task(_asked(crowd, "/b"), context=Context())
        done, _ = await asyncio.wait({waiting}, timeout=0)
        assert not done
    await waiting


async def _asked(crowd: Crowd, path: str) -> None:
    async with crowd.turn(path):
        pass


async def test_callers_that_go_away_leave_no_trace(requests: Requests) -> None:
    """Who gives up waiting, or working, gives its place to the next."""
    await requests.come(6)
    await requests.cancel(2, 3)
    await requests.cancel(0)
    assert requests.working == [0, 1, 4]
    await requests.end(1, 4)
    assert requests.working == [0, 1, 4, 5]
