"""Access to the embedded event hub: one thread reads events, commits offsets and notifies waiting tasks."""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.hub import HubReader
from shared.backends.embedded.hub_retention import HubTrimmer
from shared.backends.embedded.hub_signals import HUB_SIGNALS, HubPartition
from shared.observability.logs import get_logger
from shared.timestamps import now

_LOGGER = get_logger("local.hub")
_POLL_SECONDS = 0.5
"""Seconds between two checks of the file for events of other processes; this process announces its own events."""

_RETRY_SECONDS = 1.0


class HubAccess:
    """Reader of the embedded event hub's file, in a separate thread; any process may write the file.

    Args:
        path: file of the hub.
        retention: time for which events are stored; older events are deleted once all consumer groups have read them.
    """

    def __init__(self, path: Path, retention: timedelta) -> None:
        self._path = path
        self._retention = retention
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hub-reader")
        self._reader: HubReader | None = None
        self._arrivals: dict[HubPartition, asyncio.Event] = {}
        self._ended = asyncio.Event()

    async def run_with_reader[T](self, function: Callable[[HubReader], T]) -> T:
        """Call a function with the hub reader, in the reader's thread, and return its result.

        Raises:
            sqlite3.Error: the file is locked for over 30 seconds, or cannot be read.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(self._open_reader()))

    def get_new_events_signal(self, hub: str, partition: str) -> asyncio.Event:
        """Return an asyncio event that is set as soon as a partition possibly has new events, or the host stops.

        Call this method before reading the partition, so that no new event is missed.
        """
        return self._ended if self._ended.is_set() else self._arrivals.setdefault((hub, partition), asyncio.Event())

    async def watch_file(self, stopping: ShutdownSignal) -> None:
        """Watch the hub file until the host stops.

        Wake the tasks that wait for new events after this or another process has written to the file.
        """
        loop = asyncio.get_running_loop()

        def wake_from_any_thread(hub_partitions: Collection[HubPartition]) -> None:
            loop.call_soon_threadsafe(self._wake_waiters, hub_partitions)

        unsubscribe = HUB_SIGNALS.subscribe(self._path, wake_from_any_thread)
        try:
            await self._poll_file(stopping)
        finally:
            unsubscribe()
            self._ended.set()
            self._wake_waiters(tuple(self._arrivals))

    async def _poll_file(self, stopping: ShutdownSignal) -> None:
        while not await stopping.wait_until_set(_POLL_SECONDS):
            try:
                changed = await self.run_with_reader(HubReader.has_changed_since_last_call)
            except sqlite3.Error:
                _LOGGER.exception("the event hub cannot be read")
                await stopping.wait_until_set(_RETRY_SECONDS)
                continue
            if changed:
                self._wake_waiters(tuple(self._arrivals))

    def _wake_waiters(self, hub_partitions: Collection[HubPartition]) -> None:
        for place in hub_partitions:
            arrival = self._arrivals.pop(place, None)
            if arrival is not None:
                arrival.set()

    async def delete_old_events_and_count(self, groups_by_hub: Mapping[str, Collection[str]]) -> int:
        """Delete events that are older than the retention and that all consumer groups have read; return their number.

        Args:
            groups_by_hub: consumer groups of each event hub.

        Raises:
            sqlite3.Error: the file is locked for over 30 seconds, or cannot be written.
        """
        return await asyncio.to_thread(self._delete_old_events_and_count, groups_by_hub)

    async def close(self) -> None:
        """Close the hub file."""
        if self._reader is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.close)
        self._thread.shutdown(wait=False)

    def _open_reader(self) -> HubReader:
        if self._reader is None:
            self._reader = HubReader(self._path)
        return self._reader

    def _delete_old_events_and_count(self, groups_by_hub: Mapping[str, Collection[str]]) -> int:
        trimmer = HubTrimmer(self._path)
        try:
            return trimmer.delete_and_count_old_events(now() - self._retention, groups_by_hub)
        finally:
            trimmer.close()
