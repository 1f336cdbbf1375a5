"""Lock and pause for the asyncio client; ``oi._sync.waiting`` is the counterpart and is not generated."""

import asyncio

Lock = asyncio.Lock


async def sleep(seconds: float) -> None:
    """Wait for this number of seconds."""
    await asyncio.sleep(seconds)
