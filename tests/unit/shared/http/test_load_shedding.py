"""Tests of the request queue and of rejections under overload."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from contextvars import Context

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.load_shedding import (
    CALM_SECONDS,
    COUNTED_SECONDS,
    FEW,
    PATIENCE_SECONDS,
    RECENT_SECONDS,
    SHARES,
    TOLERATED,
    WINDOW_SECONDS,
    WINDOWS,
    WINDOWS_AGAIN,
    LoadShedder,
)
from tests.virtual_time import VirtualTime

PLACES = 2
REJECTION = f"{Kind.UNAVAILABLE} OVERLOADED {{'retryAfter': 1}}"


class Requests:
    """Requests that arrive one after another; an admitted request runs until the test ends it."""

    def __init__(self, places: int = PLACES) -> None:
        self.clock = VirtualTime()
        self._load_shedder = LoadShedder(places, runtime=self.clock.runtime)
        self._tasks: list[asyncio.Task[str]] = []
        self.working: list[int] = []
        self._ends: list[asyncio.Event] = []

    async def send_new_requests(self, count: int, path: str = "") -> None:
        """Send new requests, each to another path by default."""
        for _ in range(count):
            number = len(self._tasks)
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._work(number, path or f"/{number}")))
        await self.run_ready_tasks()

    async def overload(self, windows: int) -> None:
        """Let requests wait, then send more requests than are admitted, during the given number of time windows."""
        await self.send_new_requests(TOLERATED + PLACES + 1)
        for _ in range(windows):
            await self.send_new_requests(40)
            self.clock.advance(WINDOW_SECONDS * 1.01)
            await self.send_new_requests(1)

    async def end_all(self) -> None:
        """End all requests, also those that are admitted meanwhile."""
        for number in range(len(self._ends)):
            await self.end(number)

    async def _work(self, number: int, path: str) -> str:
        try:
            async with self._load_shedder.admit(path):
                self.working.append(number)
                await self._ends[number].wait()
                return "done"
        except WorkspaceError as error:
            return f"{error.kind} {error.code} {error.members}"

    async def end(self, *numbers: int) -> None:
        """End the running requests with the given numbers."""
        for number in numbers:
            self._ends[number].set()
        await self.run_ready_tasks()

    async def run_ready_tasks(self) -> None:
        """Run all asyncio tasks that are ready."""
        for _ in range(5):
            await asyncio.sleep(0)

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return len(self._tasks) - len(self.working) - len(self.rejected())

    def rejected(self) -> list[int]:
        """Return the numbers of the rejected requests."""
        return [n for n, task in enumerate(self._tasks) if task.done() and task.result() == REJECTION]

    async def cancel(self, *numbers: int) -> None:
        """Cancel the requests with the given numbers, as if their callers had disconnected."""
        for number in numbers:
            self._tasks[number].cancel()
        await asyncio.gather(*(self._tasks[number] for number in numbers), return_exceptions=True)
        await self.run_ready_tasks()

    async def close(self) -> None:
        """Cancel all requests."""
        await self.cancel(*range(len(self._tasks)))


@pytest.fixture
async def request_source() -> AsyncIterator[Requests]:
    """Provide a source of requests to a load shedder that runs two requests at once."""
    created = Requests()
    yield created
    await created.close()


async def test_requests_are_admitted_in_the_order_of_arrival(request_source: Requests) -> None:
    """Requests are admitted in the order of arrival, up to the maximum number of running requests."""
    await request_source.send_new_requests(5)
    assert request_source.working == [0, 1]
    await request_source.end(1)
    assert request_source.working == [0, 1, 2]
    await request_source.end(0, 2)
    assert request_source.working == [0, 1, 2, 3, 4]


async def test_a_slow_request_no_longer_counts_as_running(request_source: Requests) -> None:
    """A request that runs for long no longer counts as running, so that it blocks no other request."""
    await request_source.send_new_requests(PLACES)
    request_source.clock.advance(COUNTED_SECONDS)
    await request_source.send_new_requests(3)
    assert request_source.working == [0, 1, 2, 3]
    await request_source.end(0, 1)
    assert request_source.working == [0, 1, 2, 3]
    await request_source.end(2)
    assert request_source.working == [0, 1, 2, 3, 4]


async def test_a_short_queue_is_never_rejected(request_source: Requests) -> None:
    """A queue up to the tolerated length is not rejected, even if earlier requests are slow."""
    await request_source.send_new_requests(PLACES + TOLERATED)
    for number in range(PLACES + TOLERATED):
        assert number in request_source.working
        request_source.clock.advance(COUNTED_SECONDS / 2)
        await request_source.end(number)
    assert request_source.rejected() == []


async def test_all_requests_of_a_burst_are_admitted(request_source: Requests) -> None:
    """A large burst is not overload: if few requests arrive after it, all its requests are admitted."""
    await request_source.send_new_requests(500)
    for number in range(500):
        assert number in request_source.working
        request_source.clock.advance(0.02)
        if number % 10 == 0:
            await request_source.send_new_requests(1)
        await request_source.end(number)
    assert request_source.rejected() == []


async def test_requests_are_rejected_under_overload(request_source: Requests) -> None:
    """Under overload, requests that wait longest are rejected until only a few wait."""
    await request_source.overload(WINDOWS - 1)
    assert request_source.rejected() == []
    await request_source.send_new_requests(40)
    request_source.clock.advance(WINDOW_SECONDS * 1.01)
    await request_source.send_new_requests(1)
    assert FEW - PLACES <= request_source.waiting <= FEW
    rejected = len(request_source.rejected())
    await request_source.send_new_requests(20)
    assert len(request_source.rejected()) <= rejected + FEW
    request_source.clock.advance(PATIENCE_SECONDS)
    await request_source.send_new_requests(1)
    assert len(request_source.rejected()) >= rejected + 20 - PLACES


async def test_overload_ends_after_a_time_without_rejections(request_source: Requests) -> None:
    """After some time without rejections, the overload ends, and a new burst is admitted."""
    await request_source.overload(WINDOWS)
    await request_source.end_all()
    request_source.clock.advance(CALM_SECONDS)
    rejected = request_source.rejected()
    assert rejected
    await request_source.send_new_requests(500)
    request_source.clock.advance(2 * PATIENCE_SECONDS)
    await request_source.end_all()
    assert request_source.rejected() == rejected


@pytest.mark.parametrize(("calm", "windows"), [(CALM_SECONDS, WINDOWS_AGAIN), (RECENT_SECONDS, WINDOWS)])
async def test_repeated_overload_is_detected_sooner(request_source: Requests, calm: float, windows: int) -> None:
    """Shortly after an overload, the next one is detected after fewer busy time windows."""
    await request_source.overload(WINDOWS)
    await request_source.end_all()
    request_source.clock.advance(calm)
    await request_source.send_new_requests(1)
    rejected = request_source.rejected()
    await request_source.overload(windows - 1)
    assert request_source.rejected() == rejected
    await request_source.overload(1)
    assert len(request_source.rejected()) > len(rejected)


async def test_under_overload_a_path_uses_only_its_share_of_places() -> None:
    """Under overload, slow requests to one path cannot use all places, so that other paths are admitted."""
    places = 2 * SHARES
    requests = Requests(places)
    await requests.send_new_requests(places)
    assert len(requests.working) == places
    await requests.overload(WINDOWS)
    await requests.end_all()
    working, rejected = len(requests.working), len(requests.rejected())
    await requests.send_new_requests(places // SHARES + 3, "/a")
    assert (len(requests.working), len(requests.rejected())) == (working + places // SHARES, rejected + 3)
    requests.clock.advance(COUNTED_SECONDS)
    await requests.send_new_requests(1, "/a")
    assert len(requests.rejected()) == rejected + 4
    await requests.send_new_requests(1, "/b")
    assert len(requests.working) == working + places // SHARES + 1
    requests.clock.advance(CALM_SECONDS)
    await requests.send_new_requests(1, "/a")
    assert len(requests.rejected()) == rejected + 4
    await requests.close()


async def test_liveness_and_nested_requests_bypass_the_queue() -> None:
    """Liveness checks are always admitted, and nested requests do not wait for their outer request."""
    shedder = LoadShedder(1)
    async with shedder.admit("/a"):
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(shedder.admit("/nested"))
        await asyncio.create_task(_admit_request(shedder, "/healthz"), context=Context())
        waiting = asyncio.create_task(_admit_request(shedder, "/b"), context=Context())
        done, _ = await asyncio.wait({waiting}, timeout=0)
        assert not done
    await waiting


async def _admit_request(shedder: LoadShedder, path: str) -> None:
    async with shedder.admit(path):
        pass


async def test_a_cancelled_request_releases_its_place(request_source: Requests) -> None:
    """A cancelled request leaves the queue, or frees its place if it is running."""
    await request_source.send_new_requests(6)
    await request_source.cancel(2, 3)
    await request_source.cancel(0)
    assert request_source.working == [0, 1, 4]
    await request_source.end(1, 4)
    assert request_source.working == [0, 1, 4, 5]
