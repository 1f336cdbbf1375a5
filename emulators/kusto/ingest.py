"""Ingestion: copies telemetry events (impulses) from the local event hub into the table ``Telemetry``.

The hub is an SQLite file. The table ``partitions`` numbers the partitions of every hub. The id of an event is the
number of its partition, shifted left by 48 bits, plus its sequence number; so the events of a partition are adjacent in
the table ``events``. ``offsets`` contains the sequence number up to which each consumer group has read a partition.
"""

import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from emulators.kusto.sandbox import abort_process
from emulators.kusto.store import (
    MAX_DELETED_ROWS,
    Offset,
    RejectedEvent,
    TelemetryRow,
    TelemetryStore,
    row_from_impulse_if_routed,
)

HUB = "impulses"
GROUP = "adx"
"""Consumer group for which this module reads the event hub."""

_BUSY_SECONDS = 30.0
MAX_READ_BYTES = 16 * 1024 * 1024
"""Number of bytes after which a read of events stops, so that a batch of large events does not fill the memory."""
_SEQUENCE_BITS = 48
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  DuckDB stores instants in UTC without their zone

_SCHEMA = """
CREATE TABLE IF NOT EXISTS partitions (
    id INTEGER PRIMARY KEY, hub TEXT NOT NULL, partition TEXT NOT NULL, last_sequence INTEGER NOT NULL DEFAULT 0,
    UNIQUE (hub, partition)
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, enqueued INTEGER NOT NULL, partition_key TEXT NOT NULL, properties TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS offsets (
    hub TEXT NOT NULL, consumer_group TEXT NOT NULL, partition TEXT NOT NULL, sequence INTEGER NOT NULL,
    PRIMARY KEY (hub, consumer_group, partition)
) WITHOUT ROWID;
"""
BATCH_EVENTS = 20_000
POLL_SECONDS = 0.05
WOKEN_POLL_SECONDS = 1.0
"""Seconds between two checks of the hub by a consumer that is woken for new events; a crash can prevent a wake-up."""

RETRY_SECONDS = 1.0
_LACK_SECONDS = 30.0
"""Time after which the process ends if each attempt to store events lacked memory that ended queries occupy."""
_LONGEST_LACK_SECONDS = 300.0
"""Time after which the process ends if each attempt lacked memory for any reason, so that ingestion gets its turn."""
TRIM_SECONDS = 600.0
SMALL_BATCH = 1000
DUTY = 4.0
"""Pause after a small batch, as a multiple of its duration. The search for duplicates costs the same for one row as for
a thousand; without the pause a slow stream of events would occupy a core."""

_NO_OFFSET = Offset(0, datetime.min)  # noqa: DTZ901  before every naive instant
_LOGGER = logging.getLogger(__name__)


class QueuedEvent(NamedTuple):
    """Event that the event hub stores.

    Attributes:
        sequence: sequence number of the event within its partition.
        enqueued: time at which the hub stored the event, a naive datetime in UTC.
        body: content of the event as bytes.
    """

    sequence: int
    enqueued: datetime
    body: bytes


class HubFile:
    """Reads events from the file of the event hub, and stores how far the consumer group ``adx`` has read.

    The class is not thread-safe.

    Every method can raise ``sqlite3.Error``, for example if the file is locked for more than 30 s or the disk is full.

    Args:
        path: SQLite file of the hub; created with its tables if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, autocommit=True)
        try:
            # The owner of the file deletes events, and then returns their space to the file system.
            self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            _enable_write_ahead_log(self._connection)
            # A lost offset only causes events to be delivered again, which the table recognises; no fsync is needed.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)
        except BaseException:
            self._connection.close()
            raise
        self._version = -1

    def read_partition_names(self) -> list[str]:
        """Return the names of the partitions of the hub."""
        rows = self._connection.execute("SELECT partition FROM partitions WHERE hub = ? ORDER BY id", (HUB,))
        return [row[0] for row in rows]

    def read_events(self, partition: str, after_sequence: int, limit: int) -> list[QueuedEvent]:
        """Return up to ``limit`` events of a partition after sequence number ``after_sequence``, oldest first."""
        row = self._connection.execute(
            "SELECT id FROM partitions WHERE hub = ? AND partition = ?", (HUB, partition)
        ).fetchone()
        if row is None:
            return []
        first = row[0] << _SEQUENCE_BITS
        rows = self._connection.execute(
            "SELECT id, enqueued, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
            (first + after_sequence, first + (1 << _SEQUENCE_BITS), limit),
        )
        events: list[QueuedEvent] = []
        size = 0
        for identifier, enqueued, body in rows:
            events.append(QueuedEvent(identifier - first, _EPOCH + timedelta(microseconds=enqueued), body))
            size += len(body)
            if size >= MAX_READ_BYTES:
                break
        rows.close()
        return events

    def read_last_sequence_number(self, partition: str) -> int:
        """Return the highest sequence number that the hub has assigned in a partition; 0 if it has assigned none."""
        row = self._connection.execute(
            "SELECT last_sequence FROM partitions WHERE hub = ? AND partition = ?", (HUB, partition)
        ).fetchone()
        return int(row[0]) if row else 0

    def commit_sequence_number(self, partition: str, sequence: int) -> None:
        """Store that the consumer group has read a partition up to and including ``sequence``.

        A sequence number below the stored number has no effect.
        """
        self._connection.execute(
            "INSERT INTO offsets (hub, consumer_group, partition, sequence) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)",
            (HUB, GROUP, partition, sequence),
        )

    def has_changed_since_last_call(self) -> bool:
        """Return whether another connection has written to the file since the last call.

        Always True at the first call.
        """
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        changed: bool = version != self._version
        self._version = version
        return changed

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging; retry if another process does the same at this moment.

    SQLite's busy timeout does not apply when several processes open a new file at the same time.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))  # noqa: S311  spreads retries, no secret
        else:
            return


class HubConsumer:
    """Thread that copies telemetry events (impulses) from the event hub into the table ``Telemetry``.

    Args:
        connection: connection to the database that queries read; the consumer opens its own cursor.
        path: SQLite file of the hub.
        retention: time after ingestion at which rows are deleted; None to delete no rows.
        is_woken: True if another thread calls :meth:`wake` when new events arrive; False to poll the hub.
        has_leaked_memory: receives a database connection, and returns whether ended queries still occupy the memory.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        *,
        retention: timedelta | None = None,
        is_woken: bool = False,
        has_leaked_memory: Callable[[duckdb.DuckDBPyConnection], bool] = lambda _: False,
    ) -> None:
        self._cursor = connection.cursor()
        self._store = TelemetryStore(self._cursor)
        self._path = path
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._idle_seconds = WOKEN_POLL_SECONDS if is_woken else POLL_SECONDS
        self._thread = threading.Thread(target=self._ingest_until_stopped, name="ingest", daemon=True)
        self._retention = retention
        self._next_trim = time.monotonic()
        self.added = 0
        self.expired = 0
        self.copies = 0
        self.unrouted = 0
        self.malformed = 0
        self.failures = 0
        self.last_error = ""
        self.is_using_memory = False
        self._lacks_memory_since: float | None = None
        self._has_leaked_memory = partial(has_leaked_memory, self._cursor)
        self._behind_since: dict[str, datetime] = {}

    def start(self) -> None:
        """Start the ingestion thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the ingestion thread after its current batch."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        self._cursor.close()

    def wake(self) -> None:
        """Notify the ingestion thread that the hub possibly has new events; can be called from any thread."""
        self._wake.set()

    @property
    def lag_seconds(self) -> float:
        """Age in seconds of the oldest event that is not yet in the table; 0 if the table is up to date."""
        waiting = list(self._behind_since.values())
        return max(0.0, (_get_naive_utc_now() - min(waiting)).total_seconds()) if waiting else 0.0

    def is_alive(self) -> bool:
        """Return whether the ingestion thread is running."""
        return self._thread.is_alive()

    def read_counters(self) -> Mapping[str, Any]:
        """Return the number of events by outcome since the process started, and the current value of `lag_seconds`."""
        return {
            "added": self.added,
            "copies": self.copies,
            "unrouted": self.unrouted,
            "malformed": self.malformed,
            "expired": self.expired,
            "failures": self.failures,
            "lagSeconds": round(self.lag_seconds, 3),
        }

    def _ingest_until_stopped(self) -> None:
        while not self._stop.is_set():
            try:
                self._open_and_ingest_hub()
            except duckdb.FatalException as error:
                abort_process(error)
            except Exception as error:  # a locked file, a full disk and a lack of memory can all be temporary
                self._abort_process_if_lack_of_memory_lasts(error)
                self.failures += 1
                self.last_error = f"{type(error).__name__}: {error}"[:300]
                _LOGGER.exception("ingestion failed and will be retried")
                self._stop.wait(RETRY_SECONDS)

    def _abort_process_if_lack_of_memory_lasts(self, error: Exception) -> None:
        """End the process if ingestion has lacked memory for long: queries use all memory, or DuckDB has leaked it."""
        is_lack = isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "MemoryError" in str(error)
        if not is_lack:
            self._lacks_memory_since = None
        elif self._lacks_memory_since is None:
            self._lacks_memory_since = time.monotonic()
        else:
            lack = time.monotonic() - self._lacks_memory_since
            if lack > _LONGEST_LACK_SECONDS or (lack > _LACK_SECONDS and self._has_leaked_memory()):
                abort_process(f"ingestion has lacked memory for {lack:.0f} s: {error}")

    def _open_and_ingest_hub(self) -> None:
        hub = HubFile(self._path)
        try:
            offsets = {
                partition: _get_valid_offset(hub, partition, offset)
                for partition, offset in self._store.read_offsets().items()
            }
            for partition, offset in offsets.items():
                # After a crash between the two commits the offset in the table is higher than the one in the hub.
                hub.commit_sequence_number(partition, offset.sequence)
            self._behind_since = _map_partitions_to_oldest_waiting_events(hub, offsets)
            while not self._stop.is_set():
                self._delete_expired_rows_if_due()
                self._ingest_new_events(hub, offsets)
        finally:
            hub.close()

    def _ingest_new_events(self, hub: HubFile, offsets: dict[str, Offset]) -> None:
        # Cleared before the hub is checked, so that no announcement is lost.
        self._wake.clear()
        if not hub.has_changed_since_last_call() and not self._behind_since:
            if not self._stop.is_set():
                self._wake.wait(self._idle_seconds)
            return
        began = time.monotonic()
        are_large = [
            self._ingest_batch_and_test_if_large(hub, partition, offsets) for partition in hub.read_partition_names()
        ]
        self.last_error = ""
        if not any(are_large):
            self._stop.wait(max(POLL_SECONDS, DUTY * (time.monotonic() - began)))

    def _ingest_batch_and_test_if_large(self, hub: HubFile, partition: str, offsets: dict[str, Offset]) -> bool:
        """Copy one batch of a partition's events into the table; return True if the batch was large.

        A batch is large if it has at least ``SMALL_BATCH`` events or ``MAX_READ_BYTES`` bytes. After a large batch,
        more events are probably waiting.
        """
        before = offsets.get(partition, _NO_OFFSET)
        events = hub.read_events(partition, before.sequence, BATCH_EVENTS)
        if not events:
            self._behind_since.pop(partition, None)
            return False
        self._behind_since[partition] = events[0].enqueued
        newest = max(before.newest, *(event.enqueued for event in events))
        offset = Offset(events[-1].sequence, newest)
        self._store_batch(partition, offset, events)
        self._behind_since[partition] = events[-1].enqueued
        offsets[partition] = offset
        hub.commit_sequence_number(partition, offset.sequence)
        return len(events) >= SMALL_BATCH or sum(len(event.body) for event in events) >= MAX_READ_BYTES

    def _store_batch(self, partition: str, offset: Offset, events: Sequence[QueuedEvent]) -> None:
        rows: list[TelemetryRow] = []
        rejected: list[RejectedEvent] = []
        unrouted = 0
        for event in events:
            try:
                row = row_from_impulse_if_routed(event.body, event.enqueued)
            except (ValueError, RecursionError) as error:
                rejected.append(RejectedEvent(event.sequence, str(error), event.body))
                continue
            if row is None:
                unrouted += 1
            else:
                rows.append(row)
        with self._mark_memory_use():
            added = self._store.append_events_and_count_new_rows(
                partition, offset, rows, rejected, _get_naive_utc_now()
            )
        self._lacks_memory_since = None
        self.added += added
        self.unrouted += unrouted
        self.malformed += len(rejected)
        self.copies += len(events) - len(rejected) - unrouted - added
        for event_error in rejected:
            _LOGGER.warning(
                "event %s of partition %s is not a valid impulse: %s",
                event_error.sequence,
                partition,
                event_error.reason,
            )

    @contextmanager
    def _mark_memory_use(self) -> Iterator[None]:
        """Context manager: set ``is_using_memory`` during a transaction of this thread."""
        self.is_using_memory = True
        try:
            yield
        finally:
            self.is_using_memory = False

    def _delete_expired_rows_if_due(self) -> None:
        """Delete expired rows and message keys if ``TRIM_SECONDS`` have passed since the last deletion.

        If more than ``MAX_DELETED_ROWS`` rows have expired, the next call deletes the others.
        """
        if time.monotonic() < self._next_trim:
            return
        now = _get_naive_utc_now()
        deleted = 0
        with self._mark_memory_use():
            # Events that wait can repeat messages that arrived up to 24 hours before them.
            self._store.trim_keys_and_rejected_events(min([now, *self._behind_since.values()]))
            if self._retention is not None:
                deleted = self._store.delete_and_count_rows_ingested_before(now - self._retention)
        self.expired += deleted
        if deleted:
            _LOGGER.info("%d rows of the table Telemetry have expired and are deleted", deleted)
        self._next_trim = time.monotonic() + (0 if deleted == MAX_DELETED_ROWS else TRIM_SECONDS)


def _get_valid_offset(hub: HubFile, partition: str, stored_offset: Offset) -> Offset:
    """Return the offset after which to read a partition: the stored offset, or a lower one if the file was replaced.

    Sequence numbers start again in a new file of the event hub. Therefore the file was replaced in two cases: its last
    sequence number is lower than the stored number; or its first event is newer than the last event that was read,
    although the sequence number of the first event is not higher.
    """
    # Read before the first event, because events can arrive between the two reads.
    last = hub.read_last_sequence_number(partition)
    first = hub.read_events(partition, 0, 1)
    is_replaced = (
        bool(first) and first[0].sequence <= stored_offset.sequence and first[0].enqueued > stored_offset.newest
    )
    sequence = 0 if is_replaced else min(stored_offset.sequence, last)
    if sequence < stored_offset.sequence:
        _LOGGER.warning("the hub's file was replaced; partition %s is read after event %d", partition, sequence)
    return Offset(sequence, stored_offset.newest)


def _map_partitions_to_oldest_waiting_events(hub: HubFile, offsets: Mapping[str, Offset]) -> dict[str, datetime]:
    """Return for each partition with events after its offset the time at which the hub stored the first of them."""
    waiting = {
        partition: hub.read_events(partition, offsets.get(partition, _NO_OFFSET).sequence, 1)
        for partition in hub.read_partition_names()
    }
    return {partition: events[0].enqueued for partition, events in waiting.items() if events}


def _get_naive_utc_now() -> datetime:
    """Return the current time as a naive datetime in UTC, as DuckDB stores it."""
    return datetime.now(UTC).replace(tzinfo=None)
