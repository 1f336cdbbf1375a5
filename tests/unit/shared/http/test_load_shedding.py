"""Turns in a crowd of requests."""

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
    PRESS_SECONDS,
    PRESSES,
    PRESSES_AGAIN,
    RECENT_SECONDS,
    SHARES,
    TOLERATED,
    LoadShedder,
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

    def __init__(self, places: int = PLACES) -> None:
        self.clock = Clock()
        self._load_shedder = LoadShedder(places, self.clock)
        self._tasks: list[asyncio.Task[str]] = []
        self.working: list[int] = []
        self._ends: list[asyncio.Event] = []

    async def come(self, count: int, path: str = "") -> None:
        """Let so many come, to a path of its own each unless there is one given."""
        for _ in range(count):
            number = len(self._tasks)
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._work(number, path or f"/{number}")))
        await self.settle()

    async def press(self, spans: int) -> None:
        """Let many wait, and more come for so many spans than are let in."""
        await self.come(TOLERATED + PLACES + 1)
        for _ in range(spans):
            await self.come(40)
            self.clock.now += PRESS_SECONDS * 1.01
            await self.come(1)

    async def end_all(self) -> None:
        """Let everybody who works end, and who comes to work by that, until nobody waits."""
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
        """Let some end."""
        for number in numbers:
            self._ends[number].set()
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(5):
            await asyncio.sleep(0)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._tasks) - len(self.working) - len(self.refused())

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


async def test_a_burst_is_worked_off(requests: Requests) -> None:
    """However many come at once, and however long they wait, all are worked on when few come after them."""
    await requests.come(500)
    for number in range(500):
        assert number in requests.working
        requests.clock.now += 0.02
        if number % 10 == 0:
            await requests.come(1)
        await requests.end(number)
    assert requests.refused() == []


async def test_a_crowd_that_stands_is_refused(requests: Requests) -> None:
    """When as many keep coming as are let in, those who waited for long are refused, from the front, until few wait."""
    await requests.press(PRESSES - 1)
    assert requests.refused() == []
    await requests.come(40)
    requests.clock.now += PRESS_SECONDS * 1.01
    await requests.come(1)
    assert FEW - PLACES <= requests.waiting <= FEW
    refused = len(requests.refused())
    await requests.come(20)
    assert len(requests.refused()) <= refused + FEW
    requests.clock.now += PATIENCE_SECONDS
    await requests.come(1)
    assert len(requests.refused()) >= refused + 20 - PLACES


async def test_a_crowd_is_over_when_nobody_had_to_be_refused(requests: Requests) -> None:
    """After a while of calm a burst is worked off again."""
    await requests.press(PRESSES)
    await requests.end_all()
    requests.clock.now += CALM_SECONDS
    refused = requests.refused()
    assert refused
    await requests.come(500)
    requests.clock.now += 2 * PATIENCE_SECONDS
    await requests.end_all()
    assert requests.refused() == refused


@pytest.mark.parametrize(("calm", "spans"), [(CALM_SECONDS, PRESSES_AGAIN), (RECENT_SECONDS, PRESSES)])
async def test_a_crowd_that_comes_again_stands_sooner(requests: Requests, calm: float, spans: int) -> None:
    """Shortly after a crowd the next one is known for what it is earlier than one that comes out of the blue."""
    await requests.press(PRESSES)
    await requests.end_all()
    requests.clock.now += calm
    await requests.come(1)
    refused = requests.refused()
    await requests.press(spans - 1)
    assert requests.refused() == refused
    await requests.press(1)
    assert len(requests.refused()) > len(refused)


async def test_while_a_crowd_stands_a_path_has_its_share() -> None:
    """Slow requests to one address cannot pile up at work; other addresses go on, and so does it without a crowd."""
    places = 2 * SHARES
    asked = Requests(places)
    await asked.come(places)
    assert len(asked.working) == places
    await asked.press(PRESSES)
    await asked.end_all()
    working, refused = len(asked.working), len(asked.refused())
    await asked.come(places // SHARES + 3, "/a")
    assert (len(asked.working), len(asked.refused())) == (working + places // SHARES, refused + 3)
    asked.clock.now += COUNTED_SECONDS
    await asked.come(1, "/a")
    assert len(asked.refused()) == refused + 4
    await asked.come(1, "/b")
    assert len(asked.working) == working + places // SHARES + 1
    asked.clock.now += CALM_SECONDS
    await asked.come(1, "/a")
    assert len(asked.refused()) == refused + 4
    await asked.close()


async def test_health_and_what_is_handed_on_take_no_turn() -> None:
    """Whether the process is alive is answered in any crowd, and a request that asks within itself is not stuck."""
    shedder = LoadShedder(1)
    async with shedder.admit("/a"):
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(shedder.admit("/within"))
        await asyncio.create_task(_asked(shedder, "/healthz"), context=Context())
        waiting = asyncio.create_task(_asked(shedder, "/b"), context=Context())
        done, _ = await asyncio.wait({waiting}, timeout=0)
        assert not done
    await waiting


async def _asked(shedder: LoadShedder, path: str) -> None:
    async with shedder.admit(path):
        pass


async def test_callers_that_go_away_leave_no_trace(requests: Requests) -> None:
    """Who gives up waiting, or working, gives its place to the next."""
    await requests.come(6)
    await requests.cancel(2, 3)
    await requests.cancel(0)
    assert requests.working == [0, 1, 4]
    await requests.end(1, 4)
    assert requests.working == [0, 1, 4, 5]
