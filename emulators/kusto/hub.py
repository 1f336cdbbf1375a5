"""Reader of the SQLite file that holds the event hub ``impulses``.

The table ``partitions`` numbers the partitions of every hub. The id of a row of ``events`` is the number of its
partition, shifted by 48 bits, plus its sequence number, so that the events of a partition are adjacent. ``offsets``
holds the sequence number up to which each consumer group has read a partition.
"""

import random
import sqlite3
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

HUB = "impulses"
GROUP = "adx"
"""The consumer group of this reader."""

_BUSY_SECONDS = 30.0
_MAX_READ_BYTES = 16 * 1024 * 1024
"""A read stops after this many bytes, so that a batch of large events does not fill the memory."""
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


class QueuedEvent(NamedTuple):
    """An event of the hub.

    Attributes:
        sequence: its number within its partition.
        enqueued: the time when the hub stored it, in UTC without a zone.
        body: its content.
    """

    sequence: int
    enqueued: datetime
    body: bytes


class HubFile:
    """Reads the events and stores the offsets of the consumer group ``adx``. Not thread-safe.

    Every method may raise ``sqlite3.Error``: the file is locked for more than 30 s, or the disk is full.

    Args:
        path: the file; created with its tables if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, autocommit=True)
        try:
            _use_wal(self._connection)
            # A lost offset only causes events to be delivered again, which the table recognises; no fsync is needed.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)
        except BaseException:
            self._connection.close()
            raise
        self._version = -1

    def read_partitions(self) -> list[str]:
        """Return the names of the hub's partitions."""
        rows = self._connection.execute("SELECT partition FROM partitions WHERE hub = ? ORDER BY id", (HUB,))
        return [row[0] for row in rows]

    def read(self, partition: str, after: int, limit: int) -> list[QueuedEvent]:
        """Return up to ``limit`` events with a sequence number above ``after``, in ascending order."""
        row = self._connection.execute(
            "SELECT id FROM partitions WHERE hub = ? AND partition = ?", (HUB, partition)
        ).fetchone()
        if row is None:
            return []
        first = row[0] << _SEQUENCE_BITS
        rows = self._connection.execute(
            "SELECT id, enqueued, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
            (first + after, first + (1 << _SEQUENCE_BITS), limit),
        )
        events: list[QueuedEvent] = []
        size = 0
        for identifier, enqueued, body in rows:
            events.append(QueuedEvent(identifier - first, _EPOCH + timedelta(microseconds=enqueued), body))
            size += len(body)
            if size >= _MAX_READ_BYTES:
                break
        rows.close()
        return events

    def commit(self, partition: str, sequence: int) -> None:
        """Store that the group has read a partition up to and including ``sequence``; an offset never decreases."""
        self._connection.execute(
            "INSERT INTO offsets (hub, consumer_group, partition, sequence) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)",
            (HUB, GROUP, partition, sequence),
        )

    def has_changed(self) -> bool:
        """Return whether another connection has written since the last call; true for the first call."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        changed: bool = version != self._version
        self._version = version
        return changed

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite's busy timeout does not apply when several processes open a new file at once."""
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
