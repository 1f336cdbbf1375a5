"""Clock of the Durable Task engine; tests replace the clock to control timers."""

import asyncio
from datetime import datetime
from typing import Protocol

from shared.timestamps import now

_LONGEST_SECONDS = 1.0
"""Longest wait: another process can start an orchestration in the same file, and the system clock can change."""


class Clock(Protocol):
    """Port to a clock that returns the current time and waits for a due time."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    async def wait_until_due_or_woken(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Wait until ``due`` (if any), or until the event ``wake`` is set; an implementation can return earlier."""
        ...


class SystemClock:
    """Clock of the operating system."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return now()

    async def wait_until_due_or_woken(self, due: datetime | None, wake: asyncio.Event) -> None:
        """Wait until the time ``due`` (if any), until ``wake`` is set, or for one second, whichever comes first."""
        seconds = _LONGEST_SECONDS
        if due is not None:
            seconds = min(seconds, max(0.0, (due - now()).total_seconds()))
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            return
