"""Progress of the telemetry archive: whether all messages of the embedded event hub are archived.

This module is separate from ``hub`` because it implements a port of downloads, which the hub does not depend on.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shared.backends.embedded.hub import HubReader
from shared.observability.logs import get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB

PATH_TO_ARCHIVE = ((TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive"))
"""Hubs that a message passes before it is archived, in order, and the consumer group of each."""
POLL_SECONDS = 0.1
_LOGGER = get_logger("hub_arrivals")


class HubArchiveProgress:
    """Implementation of ArchiveProgress: reads the archive's offset from the hub's file; any process may archive.

    Args:
        path: file of the embedded event hub.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._path = path
        self._runtime = runtime

    async def wait_until_archived(self, seconds: float) -> bool:
        ends = self._runtime.monotonic() + seconds
        try:
            for hub, group in PATH_TO_ARCHIVE:
                # A hub contains all messages of the previous hub only after the previous hub was read completely.
                target = await self._read_in_thread(partial(_read_last_numbers, hub))
                while not await self._read_in_thread(partial(_has_read, hub, group, target)):
                    if self._runtime.monotonic() >= ends:
                        _LOGGER.warning("a download stops waiting for messages that are not yet archived")
                        return False
                    await self._runtime.sleep(POLL_SECONDS)
        except sqlite3.Error:
            _LOGGER.warning("cannot read from the hub which messages are not yet archived", exc_info=True)
            return False
        return True

    async def _read_in_thread[T](self, read: Callable[[HubReader], T]) -> T:
        return await self._runtime.run_in_thread(self._call_with_reader, read)

    def _call_with_reader[T](self, read: Callable[[HubReader], T]) -> T:
        reader = HubReader(self._path, runtime=self._runtime)
        try:
            return read(reader)
        finally:
            reader.close()


def _read_last_numbers(hub: str, reader: HubReader) -> dict[str, int]:
    return {partition: reader.find_last_sequence_number(hub, partition) for partition in reader.list_partitions(hub)}


def _has_read(hub: str, group: str, target: dict[str, int], reader: HubReader) -> bool:
    return all(reader.read_offset(hub, group, partition) >= last for partition, last in target.items())
