"""Shutdown signal of the local host."""

import asyncio


class ShutdownSignal:
    """Signal that is set once, for example when the local host begins to stop.

    The tasks of the host check the signal or wait for it.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Signal to all tasks that the host stops."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the host is stopping."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the host begins to stop."""
        await self._event.wait()

    async def wait_until_set(self, seconds: float) -> bool:
        """Wait for a number of seconds, or until the host begins to stop; return whether it has begun to stop."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
