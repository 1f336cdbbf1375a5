"""The engine's time; tests bring another."""

import asyncio
from datetime import datetime
from typing import Protocol

from shared.timestamps import now

_LONGEST_SECONDS = 1.0
"""Another process may start an orchestration in the same file, and the clock of a desk machine may be set."""


class Clock(Protocol):
    """Tells the time and waits for it."""

    def now(self) -> datetime:
        """Return the current instant, in UTC."""
        ...

    async def wait(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Return when the instant has come, when woken, or earlier."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current instant, in UTC."""
        return now()

    async def wait(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Return when the instant has come, when woken, or after a second."""
        seconds = _LONGEST_SECONDS
        if due is not None:
            seconds = min(seconds, max(0.0, (due - now()).total_seconds()))
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            return
