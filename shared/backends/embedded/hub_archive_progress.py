"""Whether the readers of the embedded hub have taken what it held at a moment."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shared.backends.embedded.hub import HubReader
from shared.observability.logs import get_logger
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB

PATH_TO_ARCHIVE = ((TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive"))
"""Hubs on the way to the archive, in the way's order, and who reads them."""
LOOK_SECONDS = 0.1
_LOGGER = get_logger("hub_arrivals")


class HubArchiveProgress:
    """The ArchiveProgress port over a hub's file; any process may be the reader of the hub.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def wait_until_archived(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        try:
            for hub, group in PATH_TO_ARCHIVE:
                # Only when the hub before it was read does a hub hold all that comes from there.
                target = await self._look(partial(_last, hub))
                while not await self._look(partial(_passed, hub, group, target)):
                    if time.monotonic() >= ends:
                        _LOGGER.warning("a download does not wait any longer for what is on its way to the archive")
                        return False
                    await asyncio.sleep(LOOK_SECONDS)
        except sqlite3.Error:
            _LOGGER.warning("the hub does not tell what is on its way to the archive", exc_info=True)
            return False
        return True

    async def _look[T](self, look: Callable[[HubReader], T]) -> T:
        return await asyncio.to_thread(self._with_reader, look)

    def _with_reader[T](self, look: Callable[[HubReader], T]) -> T:
        reader = HubReader(self._path)
        try:
            return look(reader)
        finally:
            reader.close()


def _last(hub: str, reader: HubReader) -> dict[str, int]:
    return {partition: reader.last(hub, partition) for partition in reader.partitions(hub)}


def _passed(hub: str, group: str, target: dict[str, int], reader: HubReader) -> bool:
    return all(reader.committed(hub, group, partition) >= last for partition, last in target.items())
