"""Cancellation of queries whose client has disconnected.

Only the local host can detect that a client has disconnected. The Azure Functions host does not tell its workers.
The local host watches the connection of every request, but only queries, exports and verifications of audit chains can
be cancelled. This module is not in ``shared.http``, because the packages of domains import nothing from there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any


class DisconnectWatch:
    """Watch of the client's connection: cancels the request if the client disconnects during a query.

    Other work, such as writing, is never cancelled. Create this object in the task that processes the request.

    Args:
        wait_for_disconnect: function that returns when the client has disconnected.

    Attributes:
        has_cancelled: True if this object cancelled the request, because the client disconnected during a query.
    """

    def __init__(self, wait_for_disconnect: Callable[[], Awaitable[None]]) -> None:
        self.has_cancelled = False
        self._wait_for_disconnect = wait_for_disconnect
        self._request = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._running = 0

    @contextmanager
    def allow_cancellation(self) -> Iterator[None]:
        """Context manager: the request is cancelled if the client disconnects while the block runs."""
        self._running += 1
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._cancel_at_disconnect())
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._watcher.cancel()
                self._watcher = None

    async def _cancel_at_disconnect(self) -> None:
        await self._wait_for_disconnect()
        if self._request is not None:
            self.has_cancelled = True
            self._request.cancel()


_watch: ContextVar[DisconnectWatch | None] = ContextVar("disconnect_watch", default=None)


@contextmanager
def watch_for_disconnect(wait_for_disconnect: Callable[[], Awaitable[None]]) -> Iterator[DisconnectWatch]:
    """Context manager: if the client of the request disconnects, queries that the block executes are cancelled.

    Args:
        wait_for_disconnect: function that returns when the client has disconnected.
    """
    watch = DisconnectWatch(wait_for_disconnect)
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


@contextmanager
def cancel_at_disconnect() -> Iterator[None]:
    """Context manager: the request is cancelled if its client disconnects while the block runs.

    Outside of :func:`watch_for_disconnect`, the request is never cancelled.
    """
    watch = _watch.get()
    if watch is None:
        yield
        return
    with watch.allow_cancellation():
        yield


def is_cancelled_by_client() -> bool:
    """Return whether the current request was cancelled, because its client has disconnected during a query."""
    watch = _watch.get()
    return watch is not None and watch.has_cancelled


def start_task_independent_of_client[T](coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task whose result several requests await; the task continues if the client of one request disconnects."""
    context = copy_context()
    context.run(_watch.set, None)
    return asyncio.create_task(coroutine, context=context)
