"""Access to the embedded hub: one thread reads events, commits offsets and notifies waiting tasks."""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.hub import HubReader
from shared.observability.logs import fields, get_logger
from shared.timestamps import now

_LOGGER = get_logger("local.hub")
_POLL_SECONDS = 0.02
_RETENTION = timedelta(hours=24)
_TRIM_SECONDS = 3600.0
_RETRY_SECONDS = 1.0


class HubAccess:
    """Reader of the hub file in a thread; any process may write the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hub-reader")
        self._reader: HubReader | None = None
        self._arrival = asyncio.Event()

    async def run[T](self, work: Callable[[HubReader], T]) -> T:
        """Run a function with the reader.

        Raises:
            sqlite3.Error: the file is locked for over 30 seconds, or cannot be read.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._open()))

    def next_arrival(self) -> asyncio.Event:
        """Return an event for the next change or shutdown; call this before reading, to miss no change."""
        return self._arrival

    async def watch(self, stopping: ShutdownSignal) -> None:
        """Check for changes until the host stops."""
        while not await stopping.wait_for(_POLL_SECONDS):
            try:
                changed = await self.run(HubReader.has_changed)
            except sqlite3.Error:
                _LOGGER.exception("the event hub cannot be read")
                await stopping.wait_for(_RETRY_SECONDS)
                continue
            if changed:
                self._arrival.set()
                self._arrival = asyncio.Event()
        self._arrival.set()

    async def trim_hourly(self, groups: Mapping[str, Collection[str]], stopping: ShutdownSignal) -> None:
        """Delete events older than a day that all groups have read, now and hourly until the host stops."""
        while not stopping.is_set():
            try:
                deleted = await asyncio.to_thread(self._trim, groups)
            except sqlite3.Error:
                _LOGGER.exception("the event hub cannot be trimmed")
            else:
                if deleted:
                    _LOGGER.info("the event hub is trimmed", extra=fields(deleted=deleted))
            await stopping.wait_for(_TRIM_SECONDS)

    async def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.close)
        self._thread.shutdown(wait=False)

    def _open(self) -> HubReader:
        if self._reader is None:
            self._reader = HubReader(self._path)
        return self._reader

    def _trim(self, groups: Mapping[str, Collection[str]]) -> int:
        reader = HubReader(self._path)
        try:
            return reader.trim(now() - _RETENTION, groups)
        finally:
            reader.close()
