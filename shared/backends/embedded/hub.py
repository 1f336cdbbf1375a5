"""Embedded event hub: an append-only log in one SQLite file, with partitions and an offset per consumer group."""

import asyncio
import contextvars
import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from shared.backends.embedded.hub_file import (
    PARTITIONS,
    compute_partition_id,
    open_hub_file,
    sequence_from_event_id,
    to_event_id,
)
from shared.backends.embedded.hub_signals import HUB_SIGNALS, HubPartition, HubSignals
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.models import HubEvent, HubMessage
from shared.timestamps import from_unix_microseconds, to_unix_microseconds

_LOGGER = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1
MAX_READ_BYTES = 16 * 1024 * 1024
"""Total size of events in bytes after which a read ends, to limit its memory."""

_BUSY_TIMEOUT_MS = 5_000

type _EventRow = tuple[str, str, bytes]
"""Partition key, properties as JSON text, and body of an event; a tuple, because many are created each second."""


@dataclass(slots=True)
class _Send:
    """Pending call of ``send`` that waits for its commit.

    It contains the messages of the call as rows, grouped by hub and partition.
    """

    rows: Mapping[HubPartition, list[_EventRow]]
    done: "asyncio.Future[None]"


class HubWriter:
    """Implementation of EventSender: appends messages to a SQLite file, which several processes may use.

    Calls of ``send`` that arrive during a commit share the next commit.

    Args:
        path: file of the hub.
        signals: register through which readers in this process learn of appended events.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, signals: HubSignals = HUB_SIGNALS, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._path = path
        self._signals = signals
        self._connection: sqlite3.Connection | None = None
        self._ids: dict[HubPartition, int] = {}
        self._pending: list[_Send] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._runtime = runtime
        self._executor = runtime.open_pool(1, "hub-writer")

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Append messages to a hub, and return when they are on disk. After an error, no message is appended.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE`` if the disk is full, or the file is locked or
                unreadable.
        """
        if not messages:
            return
        rows = _group_by_hub_and_partition(hub, messages)
        if self._closed:
            raise _build_unavailable_error()
        done = asyncio.get_running_loop().create_future()
        self._pending.append(_Send(rows, done))
        if self._task is None or self._task.done():
            # An empty context, because the task serves many senders.
            self._task = asyncio.create_task(self._commit_pending_sends(), context=contextvars.Context())
        await done

    async def close(self) -> None:
        """Commit the waiting messages and close the file; later calls of ``send`` are rejected."""
        self._closed = True
        if self._task is not None and not self._task.done():
            await self._task
        await self._runtime.run_in_thread(self._executor.shutdown)
        self._close_connection()

    async def _commit_pending_sends(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            committed = await asyncio.wrap_future(self._executor.submit(self._try_commit_batch, batch))
            if committed:
                self._signals.notify_subscribers(self._path, {place for send in batch for place in send.rows})
            for send in batch:
                _resolve_future(send.done, committed=committed)

    def _try_commit_batch(self, batch: Sequence[_Send]) -> bool:
        try:
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            self._append_events(connection, batch)
            connection.execute("COMMIT")
        except Exception:  # reported to the senders; the next batch must be committed
            _LOGGER.exception("the event hub %s failed to commit %d sends", self._path, len(batch))
            # Closing rolls back, and a new connection recovers from any failure.
            self._close_connection()
            return False
        return True

    def _append_events(self, connection: sqlite3.Connection, batch: Sequence[_Send]) -> None:
        enqueued = to_unix_microseconds(self._runtime.now())
        for place, rows in _merge_rows_of_sends(batch).items():
            last = self._reserve_and_get_last_sequence_number(connection, place, len(rows))
            first_id = to_event_id(self._ids[place], last - len(rows) + 1)
            connection.executemany(
                "INSERT INTO events (id, enqueued, partition_key, properties, body) VALUES (?, ?, ?, ?, ?)",
                ((first_id + index, enqueued, *row) for index, row in enumerate(rows)),
            )

    def _reserve_and_get_last_sequence_number(
        self, connection: sqlite3.Connection, hub_partition: HubPartition, count: int
    ) -> int:
        """Reserve the next ``count`` sequence numbers of a partition, and return the last reserved number."""
        if hub_partition not in self._ids:
            connection.execute("INSERT OR IGNORE INTO partitions (hub, partition) VALUES (?, ?)", hub_partition)
        partition_row_id, last = connection.execute(
            "UPDATE partitions SET last_sequence = last_sequence + ? WHERE hub = ? AND partition = ? "
            "RETURNING id, last_sequence",
            (count, *hub_partition),
        ).fetchone()
        self._ids[hub_partition] = partition_row_id
        return int(last)

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_hub_file(self._path, self._runtime)
            self._connection.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
        return self._connection

    def _close_connection(self) -> None:
        self._ids.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class StoredEvent(NamedTuple):
    """Event as a row of the hub's file.

    Attributes:
        sequence_number: sequence number in the partition.
        enqueued: time of the append, in microseconds since 1970.
        partition_key: partition key that the sender set.
        properties: application properties as JSON text.
        body: bytes of the event.
    """

    sequence_number: int
    enqueued: int
    partition_key: str
    properties: str
    body: bytes


class HubReader:
    """Reader of the hubs in one SQLite file, and of the consumer groups' offsets. Only one thread may use it at a time.

    Every method can raise ``sqlite3.Error``, for instance if the file is locked for 30 s or the disk is full.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._connection = open_hub_file(path, runtime)
        # No fsync is needed: an offset lost in a power cut repeats events, which all readers handle.
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._ids: dict[HubPartition, int] = {}
        self._version = -1

    def list_partition_ids(self, hub: str) -> tuple[str, ...]:  # noqa: ARG002  every hub has the same number
        """Return the ids of the hub's partitions."""
        return tuple(str(number) for number in range(PARTITIONS))

    def read(self, hub: str, partition_id: str, after_sequence_number: int, limit: int) -> list[HubEvent]:
        """Return the next events of a partition after a sequence number.

        The result has at most ``limit`` events, and ends with the event that brings their size to 16 MiB.
        """
        return [
            _event_from_row(row, partition_id)
            for row in self.read_rows(hub, partition_id, after_sequence_number, limit)
        ]

    def read_rows(self, hub: str, partition_id: str, after_sequence_number: int, limit: int) -> list[StoredEvent]:
        """Return the same events as :meth:`read`, but as the rows that the file stores."""
        partition_row_id = self._find_partition_row_id(hub, partition_id)
        if partition_row_id is None:
            return []
        rows = self._connection.execute(
            "SELECT id, enqueued, partition_key, properties, body FROM events WHERE id > ? AND id < ? "
            "ORDER BY id LIMIT ?",
            (to_event_id(partition_row_id, after_sequence_number), to_event_id(partition_row_id + 1, 0), limit),
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

    def read_last_assigned_sequence_number(self, hub: str, partition_id: str) -> int:
        """Return the highest sequence number that the partition has ever assigned, even if its event is deleted.

        The result is 0 if the partition has assigned none.
        """
        row = self._connection.execute(
            "SELECT last_sequence FROM partitions WHERE hub = ? AND partition = ?", (hub, partition_id)
        ).fetchone()
        return int(row[0]) if row else 0

    def read_offset(self, hub: str, consumer_group: str, partition_id: str) -> int:
        """Return the offset of a consumer group: the last sequence number that the group has read.

        The result is 0 before the group's first read.
        """
        row = self._connection.execute(
            "SELECT sequence FROM offsets WHERE hub = ? AND consumer_group = ? AND partition = ?",
            (hub, consumer_group, partition_id),
        ).fetchone()
        return int(row[0]) if row else 0

    def has_offset(self, hub: str, consumer_group: str) -> bool:
        """Return whether a consumer group has read events of any partition."""
        sql = "SELECT 1 FROM offsets WHERE hub = ? AND consumer_group = ? LIMIT 1"
        return self._connection.execute(sql, (hub, consumer_group)).fetchone() is not None

    def store_offset(self, hub: str, consumer_group: str, partition_id: str, sequence_number: int) -> None:
        """Store the offset of a consumer group; do nothing if a higher offset is already stored."""
        self._connection.execute(
            "INSERT INTO offsets (hub, consumer_group, partition, sequence) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)",
            (hub, consumer_group, partition_id, sequence_number),
        )

    def has_changed_since_last_call(self) -> bool:
        """Return whether another connection has written to the file since the previous call.

        The first call returns True.
        """
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        has_changed: bool = version != self._version
        self._version = version
        return has_changed

    def close(self) -> None:
        """Close the file of the event hub."""
        self._connection.close()

    def _find_partition_row_id(self, hub: str, partition_id: str) -> int | None:
        place = (hub, partition_id)
        if place not in self._ids:
            row = self._connection.execute(
                "SELECT id FROM partitions WHERE hub = ? AND partition = ?", place
            ).fetchone()
            if row is None:
                return None
            self._ids[place] = int(row[0])
        return self._ids[place]


def _group_by_hub_and_partition(hub: str, messages: Sequence[HubMessage]) -> dict[HubPartition, list[_EventRow]]:
    """Group the rows of messages by hub and partition; the rows of each partition keep their order."""
    rows: dict[HubPartition, list[_EventRow]] = {}
    by_key: dict[str, list[_EventRow]] = {}
    for body, key, properties in messages:
        if key not in by_key:
            by_key[key] = rows.setdefault((hub, compute_partition_id(key)), [])
        by_key[key].append((key, _serialise_properties(properties), body))
    return rows


def _serialise_properties(properties: Mapping[str, str]) -> str:
    if not properties:
        return "{}"
    try:
        return orjson.dumps(dict(properties)).decode()
    except TypeError:  # an unpaired surrogate, which JSON can escape and UTF-8 cannot encode
        return json.dumps(dict(properties))


def _merge_rows_of_sends(batch: Iterable[_Send]) -> dict[HubPartition, list[_EventRow]]:
    merged: dict[HubPartition, list[_EventRow]] = {}
    for send in batch:
        for place, rows in send.rows.items():
            merged.setdefault(place, []).extend(rows)
    return merged


def _resolve_future(future: "asyncio.Future[None]", *, committed: bool) -> None:
    if future.done():
        return  # the sender was cancelled
    if committed:
        future.set_result(None)
    else:
        future.set_exception(_build_unavailable_error())


def _event_from_row(stored_event: StoredEvent, partition_id: str) -> HubEvent:
    return HubEvent(
        body=stored_event.body,
        partition=partition_id,
        sequence_number=stored_event.sequence_number,
        enqueued_at=from_unix_microseconds(stored_event.enqueued),
        properties=json.loads(stored_event.properties),
        partition_key=stored_event.partition_key,
    )


def _build_unavailable_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE,
        "TELEMETRY_HUB_UNAVAILABLE",
        "The event hub cannot accept events; retry later.",
        retryAfter=RETRY_AFTER_SECONDS,
    )
