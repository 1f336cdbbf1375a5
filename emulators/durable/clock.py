"""Clock of the engine, which tests replace."""

import asyncio
from datetime import datetime
from typing import Protocol

from shared.timestamps import now

_LONGEST_SECONDS = 1.0
"""Another process may start an orchestration in the same file, and the system clock may change."""


class Clock(Protocol):
    """Current time and waiting for an instant."""

    def now(self) -> datetime:
        """Return the current instant, in UTC."""
        ...

    async def wait(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Wait until the instant or the wake event, or shorter."""
        ...


class SystemClock:
    """System clock."""

    def now(self) -> datetime:
        """Return the current instant, in UTC."""
        return now()

    async def wait(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Wait until the instant, the wake event or one second."""
        seconds = _LONGEST_SECONDS
        if due is not None:
            seconds = min(seconds, max(0.0, (due - now()).total_seconds()))
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            return
