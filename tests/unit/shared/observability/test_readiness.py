"""Readiness: everything is asked together, in time, and not for each caller."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shared.observability import readiness
from shared.observability.readiness import Readiness

SECONDS = 0.05


class Store:
    """Something that is stood on.

    Args:
        work: what it does when it is asked.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self.asked = 0
        self._work = work

    async def __call__(self) -> None:
        """Answer."""
        self.asked += 1
        await self._work()


async def answer() -> None:
    """Answer at once."""


async def fail() -> None:
    """Fail with what no code here expects."""
    raise LookupError


async def test_what_fails_or_is_silent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that fails, and one that never answers, are named in time; one that answers is not."""
    monkeypatch.setattr(readiness, "READY_SECONDS", SECONDS)
    stores = {"good": Store(answer), "bad": Store(fail), "silent": Store(asyncio.Event().wait)}
    async with asyncio.timeout(20):
        assert await Readiness(lambda: stores).find_failing() == ["bad", "silent"]


async def test_all_are_asked_together() -> None:
    """Stores that each wait for the other are both ready: nobody waits for one before the next is asked."""
    meeting = asyncio.Barrier(2)
    stores = {"one": Store(meeting.wait), "other": Store(meeting.wait)}
    async with asyncio.timeout(20):
        assert await Readiness(lambda: stores).find_failing() == []


async def test_an_answer_serves_those_who_ask_soon() -> None:
    """Callers at the same time, and soon afterwards, share one answer; later callers do not."""
    store = Store(fail)
    asked = Readiness(lambda: {"store": store}, cache_seconds=3600)
    assert await asyncio.gather(*(asked.find_failing() for _ in range(5))) == [["store"]] * 5
    assert await asked.find_failing() == ["store"]
    assert store.asked == 1
    asked.cache_seconds = 0
    await asked.find_failing()
    assert store.asked == 2


async def test_the_host_adds_what_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the host of the process stands on is asked, too."""
    monkeypatch.setattr(readiness, "_host_probes", {})
    readiness.add_probe("engine", fail)
    assert await Readiness(lambda: {"store": answer}).find_failing() == ["engine"]
