"""Sources of time, randomness and threads; the code receives them as arguments, so that a test can control them."""

import asyncio
import contextvars
import os
import random
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Final
from uuid import UUID

from shared import timestamps
from shared.fair_use.acting_member import acting_member
from shared.fair_use.fair_scheduler import FairScheduler

LARGE: Final = 16_384
"""Minimum size, in characters or bytes, of a text whose processing runs in a worker thread.

For a smaller text, the thread would cost more than the processing.
"""

_THREADS: Final = min(32, (os.process_cpu_count() or 1) + 4)
"""Number of worker threads for short blocking work, as in the default executor of an event loop."""

_LARGE_TEXT_THREADS: Final = 2
"""Number of worker threads for large texts; it is small, because each busy thread delays the event loop.

One principal gets half of them, so that the large texts of one never delay those of another for long.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Runtime:
    """Sources of time, randomness and threads. By default, these are the real clock, random numbers and threads.

    Other modules must use these sources instead of ``time``, ``random``, ``asyncio.sleep`` and the like.

    Attributes:
        now: returns the current time as an aware datetime in UTC.
        monotonic: returns the seconds of a clock that never goes back, for durations and timeouts.
        sleep: suspends a coroutine for a number of seconds.
        block: blocks a worker thread for a number of seconds.
        random_bytes: returns random bytes that are suitable for secrets.
        uniform: returns a random number between two limits, for pauses between retries; unsuitable for secrets.
        open_pool: creates a thread pool; the arguments are the number of threads and a name for them.
        threads: executor for short blocking work; None for a pool of this runtime.
    """

    now: Callable[[], datetime] = timestamps.now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    block: Callable[[float], None] = time.sleep
    random_bytes: Callable[[int], bytes] = os.urandom
    uniform: Callable[[float, float], float] = random.uniform
    open_pool: Callable[[int, str], Executor] = ThreadPoolExecutor
    threads: Executor | None = None

    def new_id(self) -> str:
        """Return a new random UUID as 32 hexadecimal digits."""
        return self.new_uuid().hex

    def new_uuid(self) -> UUID:
        """Return a new random UUID as an object."""
        return UUID(bytes=self.random_bytes(16), version=4)

    def new_token(self, byte_count: int) -> str:
        """Return random bytes as text that is safe in URLs.

        Args:
            byte_count: number of random bytes.
        """
        return urlsafe_b64encode(self.random_bytes(byte_count)).rstrip(b"=").decode()

    async def run_in_thread[**P, T](self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a blocking function in a worker thread, and return its result.

        Args:
            function: function to call; it must not use objects of the event loop.
            args: positional arguments of the function.
            kwargs: named arguments of the function.
        """
        return await _run_in_executor(self._thread_pool, partial(function, *args, **kwargs))

    async def run_in_thread_if_large[**P, T](
        self, text_size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function that processes a text, in a worker thread if the text is large; return its result.

        Work for the acting member takes turns with that for other members and with work that no member has requested.

        Args:
            text_size: size of the text, in characters or bytes.
            function: function to call; it must not use objects of the event loop.
            args: positional arguments of the function.
            kwargs: named arguments of the function.
        """
        if text_size < LARGE:
            return function(*args, **kwargs)
        turns, pool = self._large_text_turns, self._large_text_pool
        return await run_in_turn(turns, acting_member.get(), pool, function, *args, **kwargs)

    @asynccontextmanager
    async def open_scratch_folder(self, parent: Path | None, prefix: str) -> AsyncIterator[Path]:
        """Context manager: yield a new temporary folder. Worker threads create it, and delete it with its files.

        The deletion of large files would block the event loop.

        Args:
            parent: folder in which the new folder is created; None for the system's temporary folder. A missing parent
                is created.
            prefix: first characters of the new folder's name.
        """
        creation = _ScratchFolderCreation(parent, prefix)
        try:
            folder = await self.run_in_thread(creation.create_folder)
        except asyncio.CancelledError:
            creation.abandon()
            raise
        try:
            yield Path(folder.name)
        finally:
            try:
                await self.run_in_thread(folder.cleanup)
            except asyncio.CancelledError:
                # The cancelled deletion may not have begun.
                asyncio.get_running_loop().run_in_executor(self._thread_pool, folder.cleanup)
                raise

    @cached_property
    def _thread_pool(self) -> Executor:
        # HTTP clients look up host names and read .netrc in the event loop's default executor. If work occupied its
        # threads, every request to another service would wait.
        return self.threads or self.open_pool(_THREADS, "blocking work")

    @cached_property
    def _large_text_pool(self) -> Executor:
        return self.open_pool(_LARGE_TEXT_THREADS, "large texts")

    @cached_property
    def _large_text_turns(self) -> FairScheduler:
        return FairScheduler(_LARGE_TEXT_THREADS, leaves_slots_free=True)


class _ScratchFolderCreation:
    """Creation of a temporary folder in a worker thread, whose caller may be cancelled before the thread has finished.

    Args:
        parent: see :meth:`Runtime.open_scratch_folder`.
        prefix: see :meth:`Runtime.open_scratch_folder`.
    """

    def __init__(self, parent: Path | None, prefix: str) -> None:
        self._parent = parent
        self._prefix = prefix
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._is_abandoned = False

    def create_folder(self) -> tempfile.TemporaryDirectory[str]:
        """Create the folder and return it; delete it at once if its caller was cancelled."""
        self._folder = _create_scratch_folder(self._parent, self._prefix)
        if self._is_abandoned:
            self._folder.cleanup()
        return self._folder

    def abandon(self) -> None:
        """Delete the folder now, or as soon as it exists, because the caller of :meth:`create_folder` was cancelled."""
        self._is_abandoned = True
        if self._folder is not None:
            self._folder.cleanup()


def _create_scratch_folder(parent: Path | None, prefix: str) -> tempfile.TemporaryDirectory[str]:
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=parent, prefix=prefix, ignore_cleanup_errors=True)


async def run_in_pool[**P, T](pool: Executor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread of a pool, and return its result.

    Args:
        pool: result of :meth:`Runtime.open_pool`.
        function: function to call; it must not use objects of the event loop.
        args: positional arguments of the function.
        kwargs: named arguments of the function.
    """
    return await _run_in_executor(pool, partial(function, *args, **kwargs))


async def run_in_turn[**P, T](
    turns: FairScheduler, principal_id: str, pool: Executor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Wait for a turn of a principal, call a function in a thread of a pool, and return its result.

    If the caller is cancelled, the principal occupies its slot until the thread has finished.

    Args:
        turns: scheduler of the principals' turns, with one slot for each thread of the pool.
        principal_id: member id of the principal.
        pool: result of :meth:`Runtime.open_pool`.
        function: function to call; it must not use objects of the event loop.
        args: positional arguments of the function.
        kwargs: named arguments of the function.
    """
    await turns.acquire_slot(principal_id)
    try:
        work = pool.submit(contextvars.copy_context().run, partial(function, *args, **kwargs))
    except BaseException:
        turns.release_slot(principal_id)
        raise
    loop = asyncio.get_running_loop()
    work.add_done_callback(lambda _: _call_in_loop(loop, partial(turns.release_slot, principal_id)))
    return await asyncio.wrap_future(work)


def _call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the thread of an event loop; at once if the loop is closed, because nothing else runs then."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        function()


async def _run_in_executor[T](executor: Executor, function: Callable[[], T]) -> T:
    """Call a function in an executor, with the caller's context variables, such as the current trace span."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(executor, context.run, function)


SYSTEM_RUNTIME: Final = Runtime()
"""Runtime with the real clock, randomness and threads of this process."""
