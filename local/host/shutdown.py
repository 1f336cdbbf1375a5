"""The host's end: what every loop of it waits on."""

import asyncio


class ShutdownSignal:
    """Set once, when the host is to stop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Tell every waiter that the host stops."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the host stops."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the host stops."""
        await self._event.wait()

    async def wait_for(self, seconds: float) -> bool:
        """Wait so many seconds, or until the host stops; return whether it stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
