"""Clocks that advance only when a test advances them, or when all tasks of a test wait."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.runtime import Runtime

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class VirtualTime:
    """Fake wall clock and monotonic clock that only a test advances; code that sleeps waits until then.

    Args:
        start: current time at the start.

    Attributes:
        now: current time.
        runtime: runtime with these clocks, for the code that is tested.
    """

    def __init__(self, start: datetime = START) -> None:
        self.now = start
        self._start = start
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []
        self.runtime = Runtime(now=lambda: self.now, monotonic=lambda: self.seconds, sleep=self._sleep)

    @property
    def seconds(self) -> float:
        """Seconds since the start; the number is small, because a large float is not exact to the microsecond."""
        return (self.now - self._start).total_seconds()

    @property
    def has_sleepers(self) -> bool:
        """True if code waits until a test advances the clocks."""
        return bool(self._sleepers)

    def advance(self, seconds: float) -> None:
        """Advance both clocks, and wake code whose sleep has ended."""
        self.now += timedelta(seconds=seconds)
        for sleeper in [each for each in self._sleepers if each[0] <= self.now]:
            self._sleepers.remove(sleeper)
            if not sleeper[1].done():
                sleeper[1].set_result(None)

    def set_back(self, seconds: float) -> None:
        """Set the wall clock back; the monotonic clock does not change."""
        self.now -= timedelta(seconds=seconds)
        self._start -= timedelta(seconds=seconds)
        self._sleepers = [(at - timedelta(seconds=seconds), woken) for at, woken in self._sleepers]

    async def _sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + timedelta(seconds=seconds), woken))
        await woken


class _InstantSelector(selectors.DefaultSelector):
    """Selector that advances a virtual clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("all tasks wait, and no callback is scheduled that could wake one")
        self.now += max(timeout, 0.0)
        return []


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio event loop with virtual time, which advances only if no callback is ready."""

    def __init__(self) -> None:
        self._clock = _InstantSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run_in_virtual_time[T](main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time and return its result."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main)
