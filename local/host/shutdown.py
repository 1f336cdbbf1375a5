"""Shutdown signal of the host."""

import asyncio


class ShutdownSignal:
    """Signal that is set once when the host stops."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Signal that the host stops."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the host is stopping."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the host stops."""
        await self._event.wait()

    async def wait_for(self, seconds: float) -> bool:
        """Wait for a number of seconds or until the host stops; return whether it stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
