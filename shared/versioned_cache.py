"""In-memory copy of a stored value, reloaded when its version in the store changes."""

import asyncio
from collections.abc import Awaitable, Callable

from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

_LOG = logs.get_logger("snapshots")


type Versioned[T] = tuple[int, T]
"""Version in the store, and the stored value."""


class VersionedCache[T]:
    """Cache of one value; it reads the version from the store at most once per ``max_age`` seconds.

    Args:
        version: function that reads the current version from the store; it must be cheap.
        load: reads the version and the value from the store; called again if the version has changed.
        max_age: seconds for which the cached value is returned without reading the version again.
        max_stale: seconds for which the cached value is returned while the store does not respond.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        version: Callable[[], Awaitable[int]],
        load: Callable[[], Awaitable[Versioned[T]]],
        *,
        max_age: float,
        max_stale: float,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._version = version
        self._load = load
        self._max_age = max_age
        self._max_stale = max_stale
        self._cached: Versioned[T] | None = None
        self._error: Exception | None = None
        self._checked_at = float("-inf")
        self._succeeded_at = float("-inf")
        self._generation = 0
        self._finished_reads = 0
        self._generation_of_last_read = 0
        self._lock = asyncio.Lock()
        self._runtime = runtime

    async def load_current_value(self) -> T:
        """Return the stored or cached value, which is at most ``max_age`` seconds old while the store responds.

        Callers that wait for the same read of the store share its result.

        Raises:
            WorkspaceError: the store fails, and no value is cached or the cached value is older than ``max_stale``.
        """
        if self._cached is not None and self._runtime.monotonic() - self._checked_at < self._max_age:
            return self._cached[1]
        return await self._read_shared(accepts_cached=True)

    async def load_stored_value(self) -> T:
        """Return the value as it is stored now; callers that wait for the same read of the store share its result.

        Raises:
            WorkspaceError: the store fails, even if the cached value is recent.
        """
        self.invalidate()
        return await self._read_shared(accepts_cached=False)

    def invalidate(self) -> None:
        """Make the next call of :meth:`load_current_value` check the store; call this after changing the value."""
        self._generation += 1
        self._checked_at = float("-inf")

    async def _read_shared(self, *, accepts_cached: bool) -> T:
        """Read the store, or share a read for which other callers wait; return the value.

        If the read fails, return a recent cached value if the caller accepts it; otherwise raise the error.
        """
        finished_reads, generation = self._finished_reads, self._generation
        async with self._lock:
            # A read that began before an invalidation can have an older value than the caller of ``invalidate`` stored.
            if self._finished_reads == finished_reads or self._generation_of_last_read < generation:
                await self._refresh_from_store()
            if self._error is not None and not (accepts_cached and self._has_recent_value()):
                raise self._error
        assert self._cached is not None  # noqa: S101  a read that succeeds stores a value
        return self._cached[1]

    async def _refresh_from_store(self) -> None:
        """Replace the cached value if its version has changed; if the store fails, keep it and record the error."""
        began_at = self._runtime.monotonic()
        generation = self._generation
        try:
            if self._cached is None or await self._version() != self._cached[0]:
                self._cached = await self._load()
        except Exception as error:  # noqa: BLE001  the callers get the error
            self._error = error
            if self._has_recent_value():
                _LOG.warning("the store does not respond; the cached value stays in use", exc_info=True)
            # The next read is due before the value is too old, although reads fail.
            latest = self._succeeded_at + self._max_stale - self._max_age
            checked_at = min(self._runtime.monotonic(), latest)
        else:
            self._error = None
            checked_at = self._succeeded_at = began_at
        self._finished_reads += 1
        self._generation_of_last_read = generation
        if generation == self._generation:  # otherwise the value was invalidated during the read
            self._checked_at = checked_at

    def _has_recent_value(self) -> bool:
        """Return whether a value is cached that may be used while the store fails."""
        return self._cached is not None and self._runtime.monotonic() - self._succeeded_at <= self._max_stale
