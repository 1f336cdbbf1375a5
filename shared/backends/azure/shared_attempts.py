"""Attempts to reach a service that run one at a time; all waiting callers share the failure of an attempt.

This module is separate, because clients of Cosmos DB and of Key Vault use it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.errors import WorkspaceError


class SharedAttempts:
    """Lock for attempts of several callers; the failure of an attempt also fails the callers that waited for it.

    If each waiting caller started an attempt of its own, the last caller would wait for the timeouts of all.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._failures = 0
        self._last_failure: WorkspaceError | None = None

    @asynccontextmanager
    async def hold_lock_or_raise_shared_failure(self) -> AsyncIterator[None]:
        """Context manager: hold the lock for an attempt, unless an attempt failed while the caller waited.

        The body must first check whether an attempt is still necessary.

        Raises:
            WorkspaceError: the error of the attempt that failed while the caller waited.
        """
        failures = self._failures
        async with self._lock:
            if self._last_failure is not None and self._failures != failures:
                raise _copy_error(self._last_failure) from self._last_failure
            try:
                yield
            except WorkspaceError as error:
                self._failures += 1
                self._last_failure = error
                raise


def _copy_error(error: WorkspaceError) -> WorkspaceError:
    """Return an equal error, because each caller adds its own traceback to the error that it gets."""
    return WorkspaceError(error.kind, error.code, error.detail, **error.members)
