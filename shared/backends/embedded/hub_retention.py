"""Retention of events in the embedded event hub: progress of their archiving, and deletion of old events.

The deletion does not block senders for long, and returns the space of deleted events to the file system.

Separate from ``hub`` because the hub only sends and reads; this module implements a port of downloads.
"""

import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from shared.backends.embedded.disk import convert_small_file_to_incremental_vacuum, release_free_pages
from shared.backends.embedded.hub import HubReader
from shared.backends.embedded.hub_file import PARTITIONS, open_hub_file, to_event_id
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB
from shared.timestamps import to_unix_microseconds

PATH_TO_ARCHIVE = ((TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive"))
"""Hubs that a message passes before it is archived, in order, and the consumer group of each."""
POLL_SECONDS = 0.1
_LOGGER = get_logger("hub_arrivals")


class HubArchiveProgress:
    """Implementation of ArchiveProgress: reads from the hubs which messages are already in the archive.

    Args:
        path: file of the embedded event hub.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._path = path
        self._runtime = runtime

    async def wait_until_archived(self, timeout_seconds: float) -> bool:
        ends = self._runtime.monotonic() + timeout_seconds
        try:
            for hub, group in PATH_TO_ARCHIVE:
                # A hub contains all messages of the previous hub only after the previous hub was read completely.
                target = await self._read_in_thread(partial(_map_last_sequence_numbers_by_partition, hub))
                while not await self._read_in_thread(partial(_has_group_read_up_to, hub, group, target)):
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


def _map_last_sequence_numbers_by_partition(hub: str, reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.read_last_assigned_sequence_number(hub, partition)
        for partition in reader.list_partition_ids(hub)
    }


def _has_group_read_up_to(
    hub: str, consumer_group: str, last_sequence_numbers: dict[str, int], reader: HubReader
) -> bool:
    return all(
        reader.read_offset(hub, consumer_group, partition) >= last for partition, last in last_sequence_numbers.items()
    )


_CHUNK_EVENTS = 5_000
_CHUNK_BYTES = 8 * 1024 * 1024
"""Size in bytes at which a transaction deletes no further event, because senders wait until it ends."""


class HubTrimmer:
    """Deletes old events from the file of an embedded event hub. Only one thread may use this object at a time.

    Several processes may trim one file at the same time.

    Args:
        path: file of the hub.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._connection = open_hub_file(path, runtime)
        try:
            # No fsync is needed: the next run repeats a deletion that a power cut undoes.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            # Some builds of SQLite overwrite deleted data with zeros, which writes as many bytes as are deleted.
            self._connection.execute("PRAGMA secure_delete=OFF")
            self._offsets = HubReader(path, runtime=runtime)
        except BaseException:
            self._connection.close()
            raise
        self._runtime = runtime

    def delete_and_count_old_events(self, older_than: datetime, groups_by_hub: Mapping[str, Collection[str]]) -> int:
        """Delete old events that the given consumer groups have read; return the number of deleted events.

        Afterwards, free space beyond a quarter of the file is returned to the file system. A warning is logged for each
        consumer group that has not read old events, because these events are not deleted.

        Args:
            older_than: only events enqueued before this time are deleted.
            groups_by_hub: name of each hub, and the consumer groups that must have read an event before it is deleted.
                Events of hubs that are not listed are never deleted.

        Raises:
            sqlite3.Error: the file is locked for over 30 seconds, or cannot be written.
        """
        deleted = sum(
            self._delete_and_count_old_events_of_partition(hub, str(partition), older_than, names)
            for hub, names in groups_by_hub.items()
            for partition in range(PARTITIONS)
        )
        convert_small_file_to_incremental_vacuum(self._connection)
        release_free_pages(self._connection, self._write_and_pause)
        for hub, names in groups_by_hub.items():
            self._warn_of_slow_groups(hub, names, older_than)
        return deleted

    def close(self) -> None:
        """Close the file of the event hub."""
        self._offsets.close()
        self._connection.close()

    def _delete_and_count_old_events_of_partition(
        self, hub: str, partition_id: str, older_than: datetime, consumer_groups: Collection[str]
    ) -> int:
        row = self._connection.execute(
            "SELECT id FROM partitions WHERE hub = ? AND partition = ?", (hub, partition_id)
        ).fetchone()
        if row is None:
            return 0
        first, last = to_event_id(row[0], 0), to_event_id(row[0] + 1, 0) - 1
        if consumer_groups:
            last = to_event_id(
                row[0], min(self._offsets.read_offset(hub, group, partition_id) for group in consumer_groups)
            )
        newer = self._connection.execute(
            "SELECT id FROM events WHERE id BETWEEN ? AND ? AND enqueued >= ? ORDER BY id LIMIT 1",
            (first, last, to_unix_microseconds(older_than)),
        ).fetchone()
        return self._delete_and_count_events_of_id_range(first, newer[0] - 1 if newer else last)

    def _warn_of_slow_groups(self, hub: str, consumer_groups: Collection[str], older_than: datetime) -> None:
        for group in consumer_groups:
            if any(
                event.enqueued_at < older_than
                for partition in map(str, range(PARTITIONS))
                for event in self._offsets.read(hub, partition, self._offsets.read_offset(hub, group, partition), 1)
            ):
                _LOGGER.warning(
                    "old events of the hub stay, because a consumer group has not read them",
                    extra=fields(hub=hub, group=group),
                )

    def _delete_and_count_events_of_id_range(self, first_id: int, last_id: int) -> int:
        """Delete the events of a range of ids in small parts, so that senders do not wait long for the file."""
        deleted = 0
        while (end := self._find_last_id_of_chunk(first_id, last_id)) is not None:
            deleted += self._write_and_pause(partial(self._delete_and_count_chunk, first_id, end))
            first_id = end + 1
        return deleted

    def _find_last_id_of_chunk(self, first_id: int, last_id: int) -> int | None:
        """Return the last event id of the next part to delete, which begins at ``first_id``; None if no event is left.

        The part is small enough for one transaction.
        """
        rows = self._connection.execute(
            "SELECT id, length(properties) + length(body) FROM events WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
            (first_id, last_id, _CHUNK_EVENTS),
        ).fetchall()
        total = 0
        for identifier, size in rows:
            total += size
            if total >= _CHUNK_BYTES:
                return int(identifier)
        return int(rows[-1][0]) if rows else None

    def _delete_and_count_chunk(self, first_id: int, last_id: int) -> int:
        return self._connection.execute("DELETE FROM events WHERE id BETWEEN ? AND ?", (first_id, last_id)).rowcount

    def _write_and_pause[T](self, write: Callable[[], T]) -> T:
        """Call a function that writes, then pause as long as the call took, so that other writers can lock the file.

        SQLite's lock is not fair: without the pause, a sender could wait until its timeout.
        """
        began = self._runtime.monotonic()
        result = write()
        self._runtime.block(self._runtime.monotonic() - began)
        return result
