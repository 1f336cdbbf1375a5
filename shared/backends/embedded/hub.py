"""Embedded event hub: an append-only log in one SQLite file, with partitions and an offset per consumer group."""

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from shared.backends.embedded.hub_file import (
    PARTITIONS,
    instant_from_microseconds,
    open_hub,
    partition_for_key,
    sequence_from_event_id,
    to_event_id,
    to_microseconds,
)
from shared.errors import Kind, WorkspaceError
from shared.telemetry.models import HubEvent, HubMessage
from shared.timestamps import now

_LOGGER = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1
MAX_READ_BYTES = 16 * 1024 * 1024
"""Total size of events in bytes after which a read ends, to limit its memory."""

_BUSY_TIMEOUT_MS = 5_000
_TRIM_CHUNK = 5_000


@dataclass(slots=True)
class _Send:
    """Call of ``send`` that waits for its commit; its rows are grouped by hub and partition."""

    rows: Mapping[tuple[str, str], list[tuple[str, str, bytes]]]
    done: "asyncio.Future[None]"


class HubWriter:
    """The EventSender port over one SQLite file, to which several processes may append.

    Sends that arrive during a commit share the next commit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._ids: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self._pending: list[_Send] = []
        self._writing = False
        self._closed = False
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hub-writer")

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Append messages to a hub, all or none; return when they are on disk.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE`` if the disk is full, or the file is locked or
                unreadable.
        """
        if not messages:
            return
        rows: dict[tuple[str, str], list[tuple[str, str, bytes]]] = {}
        for message in messages:
            row = (message.partition_key, json.dumps(dict(message.properties)), message.body)
            rows.setdefault((hub, partition_for_key(message.partition_key)), []).append(row)
        done = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise _unavailable_error()
            self._pending.append(_Send(rows, done))
            if not self._writing:
                self._writing = True
                self._writer.submit(self._drain)
        await done

    async def close(self) -> None:
        """Commit waiting sends and close the file; later sends are rejected."""
        with self._lock:
            self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._writer.shutdown)
        self._disconnect()

    def _drain(self) -> None:
        while True:
            with self._lock:
                batch, self._pending = self._pending, []
                if not batch:
                    self._writing = False
                    return
            _complete_sends(batch, committed=self._commit(batch))

    def _commit(self, batch: Sequence[_Send]) -> bool:
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            self._append(connection, batch)
            connection.execute("COMMIT")
        except Exception:  # reported to the senders; the thread must continue
            _LOGGER.exception("the event hub %s failed to commit %d sends", self._path, len(batch))
            # Closing rolls back, and a new connection recovers from any failure.
            self._disconnect()
            return False
        return True

    def _append(self, connection: sqlite3.Connection, batch: Sequence[_Send]) -> None:
        enqueued = to_microseconds(now())
        for place, rows in _group_by_partition(batch).items():
            last = self._reserve(connection, place, len(rows))
            first_id = to_event_id(self._ids[place], last - len(rows) + 1)
            connection.executemany(
                "INSERT INTO events (id, enqueued, partition_key, properties, body) VALUES (?, ?, ?, ?, ?)",
                ((first_id + index, enqueued, *row) for index, row in enumerate(rows)),
            )

    def _reserve(self, connection: sqlite3.Connection, place: tuple[str, str], count: int) -> int:
        """Reserve the next ``count`` sequence numbers of a partition, and return the last of them."""
        if place not in self._ids:
            connection.execute("INSERT OR IGNORE INTO partitions (hub, partition) VALUES (?, ?)", place)
        partition_id, last = connection.execute(
            "UPDATE partitions SET last_sequence = last_sequence + ? WHERE hub = ? AND partition = ? "
            "RETURNING id, last_sequence",
            (count, *place),
        ).fetchone()
        self._ids[place] = partition_id
        return int(last)

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_hub(self._path)
            self._connection.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
        return self._connection

    def _disconnect(self) -> None:
        self._ids.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class StoredEvent(NamedTuple):
    """Event as a row of the hub's file.

    Attributes:
        sequence_number: sequence number in the partition.
        enqueued: time of the append, in microseconds since 1970.
        partition_key: partition key that the sender chose.
        properties: application properties as JSON text.
        body: bytes of the event.
    """

    sequence_number: int
    enqueued: int
    partition_key: str
    properties: str
    body: bytes


class HubReader:
    """Reader of the hubs of one file, and of the offsets of consumer groups. Only one thread may use it at a time.

    Every method may raise ``sqlite3.Error``, for instance if the file is locked for 30 s or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._connection = open_hub(path)
        # No fsync is needed: an offset lost in a power cut repeats events, which all readers handle.
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._ids: dict[tuple[str, str], int] = {}
        self._version = -1

    def partitions(self, hub: str) -> tuple[str, ...]:  # noqa: ARG002  every hub has the same number
        """Return the ids of the hub's partitions."""
        return tuple(str(number) for number in range(PARTITIONS))

    def read(self, hub: str, partition: str, after: int, limit: int) -> list[HubEvent]:
        """Return the next events of a partition after a sequence number: at most ``limit``, and about 16 MB."""
        return [_event_from_row(row, partition) for row in self.read_rows(hub, partition, after, limit)]

    def read_rows(self, hub: str, partition: str, after: int, limit: int) -> list[StoredEvent]:
        """Return the same events as :meth:`read`, as rows of the file."""
        partition_id = self._find_partition_id(hub, partition)
        if partition_id is None:
            return []
        rows = self._connection.execute(
            "SELECT id, enqueued, partition_key, properties, body FROM events WHERE id > ? AND id < ? "
            "ORDER BY id LIMIT ?",
            (to_event_id(partition_id, after), to_event_id(partition_id + 1, 0), limit),
        )
        events: list[StoredEvent] = []
        size = 0
        for identifier, enqueued, key, properties, body in rows:
            events.append(StoredEvent(sequence_from_event_id(identifier), enqueued, key, properties, body))
            size += len(body)
            if size >= MAX_READ_BYTES:
                break
        rows.close()
        return events

    def last_sequence_number(self, hub: str, partition: str) -> int:
        """Return the sequence number of the newest event that a partition ever had; 0 if it never had one."""
        row = self._connection.execute(
            "SELECT last_sequence FROM partitions WHERE hub = ? AND partition = ?", (hub, partition)
        ).fetchone()
        return int(row[0]) if row else 0

    def read_offset(self, hub: str, group: str, partition: str) -> int:
        """Return the offset of a consumer group: its last read sequence number, or 0."""
        row = self._connection.execute(
            "SELECT sequence FROM offsets WHERE hub = ? AND consumer_group = ? AND partition = ?",
            (hub, group, partition),
        ).fetchone()
        return int(row[0]) if row else 0

    def commit(self, hub: str, group: str, partition: str, sequence_number: int) -> None:
        """Store the offset of a consumer group; it never decreases."""
        self._connection.execute(
            "INSERT INTO offsets (hub, consumer_group, partition, sequence) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)",
            (hub, group, partition, sequence_number),
        )

    def trim(self, older_than: datetime, groups: Mapping[str, Collection[str]]) -> int:
        """Delete old events that all consumer groups have read; return their number.

        Args:
            older_than: only events enqueued before this time are deleted.
            groups: consumer groups by hub that must have read an event; events of other hubs are never deleted.
        """
        return sum(
            self._trim(hub, partition, older_than, names)
            for hub, names in groups.items()
            for partition in self.partitions(hub)
        )

    def has_changed(self) -> bool:
        """Return whether another connection has written since the last call; True at the first call."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        has_changed: bool = version != self._version
        self._version = version
        return has_changed

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _trim(self, hub: str, partition: str, older_than: datetime, groups: Collection[str]) -> int:
        partition_id = self._find_partition_id(hub, partition)
        if partition_id is None:
            return 0
        first, last = to_event_id(partition_id, 0), to_event_id(partition_id + 1, 0) - 1
        if groups:
            last = to_event_id(partition_id, min(self.read_offset(hub, group, partition) for group in groups))
        newer = self._connection.execute(
            "SELECT id FROM events WHERE id BETWEEN ? AND ? AND enqueued >= ? ORDER BY id LIMIT 1",
            (first, last, to_microseconds(older_than)),
        ).fetchone()
        return self._delete(first, newer[0] - 1 if newer else last)

    def _delete(self, first: int, last: int) -> int:
        """Delete the events of a range of ids in chunks, so that senders do not wait long for the file."""
        deleted = 0
        while True:
            count = self._connection.execute(
                "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?)",
                (first, last, _TRIM_CHUNK),
            ).rowcount
            deleted += count
            if count < _TRIM_CHUNK:
                return deleted

    def _find_partition_id(self, hub: str, partition: str) -> int | None:
        place = (hub, partition)
        if place not in self._ids:
            row = self._connection.execute(
                "SELECT id FROM partitions WHERE hub = ? AND partition = ?", place
            ).fetchone()
            if row is None:
                return None
            self._ids[place] = int(row[0])
        return self._ids[place]


def _group_by_partition(batch: Iterable[_Send]) -> dict[tuple[str, str], list[tuple[str, str, bytes]]]:
    merged: dict[tuple[str, str], list[tuple[str, str, bytes]]] = {}
    for send in batch:
        for place, rows in send.rows.items():
            merged.setdefault(place, []).extend(rows)
    return merged


def _complete_sends(batch: Sequence[_Send], *, committed: bool) -> None:
    """Wake the senders of a batch, with one call into each event loop."""
    futures: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for send in batch:
        futures.setdefault(send.done.get_loop(), []).append(send.done)
    for loop, waiting in futures.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, waiting, committed)


def _resolve(futures: Sequence["asyncio.Future[None]"], committed: bool) -> None:  # noqa: FBT001  called by the loop
    for future in futures:
        if future.done():
            continue
        if committed:
            future.set_result(None)
        else:
            future.set_exception(_unavailable_error())


def _event_from_row(stored: StoredEvent, partition: str) -> HubEvent:
    return HubEvent(
        body=stored.body,
        partition=partition,
        sequence_number=stored.sequence_number,
        enqueued_at=instant_from_microseconds(stored.enqueued),
        properties=json.loads(stored.properties),
        partition_key=stored.partition_key,
    )


def _unavailable_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE,
        "TELEMETRY_HUB_UNAVAILABLE",
        "The event hub cannot accept events; retry later.",
        retryAfter=RETRY_AFTER_SECONDS,
    )
