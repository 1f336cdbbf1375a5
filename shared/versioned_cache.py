"""A copy in memory of something kept in a store, refreshed when its version moved."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from shared.observability import logs

_LOG = logs.get_logger("snapshots")


class VersionedCache[T]:
    """Holds the newest value known; asks the store for its version at most once per ``max_age`` seconds.

    Args:
        version: gives the store's current version, cheaply.
        load: gives a version and the value as of it.
        max_age: seconds for which the copy is used without asking.
        max_stale: seconds for which the copy is still used while the store does not answer.
    """

    def __init__(
        self,
        version: Callable[[], Awaitable[int]],
        load: Callable[[], Awaitable[tuple[int, T]]],
        *,
        max_age: float,
        max_stale: float,
    ) -> None:
        self._version = version
        self._load = load
        self._max_age = max_age
        self._max_stale = max_stale
        self._held: tuple[int, T] | None = None
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")
        self._generation = 0
        self._lock = asyncio.Lock()

    async def current(self) -> T:
        """Return the value, at most ``max_age`` seconds behind the store.

        Raises:
            WorkspaceError: whatever the store raises, when there is no copy or it is older than ``max_stale``.
        """
        if self._held is not None and time.monotonic() - self._asked_at < self._max_age:
            return self._held[1]
        async with self._lock:
            return await self._refreshed()

    def invalidate(self) -> None:
        """Make the next call ask the store, after a change made here."""
        self._generation += 1
        self._asked_at = float("-inf")

    async def _refreshed(self) -> T:
        now = time.monotonic()
        if self._held is not None and now - self._asked_at < self._max_age:
            return self._held[1]
        generation = self._generation
        try:
            if self._held is None or await self._version() != self._held[0]:
                self._held = await self._load()
        except Exception:
            if self._held is None or now - self._answered_at > self._max_stale:
                raise
            _LOG.warning("the store does not answer; the copy in memory is used", exc_info=True)
        else:
            self._answered_at = now
        if generation == self._generation:  # else: invalidated while asking, what was read may be too old
            self._asked_at = now
        return self._held[1]
