"""The file behind the embedded event hub: its tables, and how an event's place becomes one integer."""

import sqlite3
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shared.backends.embedded.sqlite import connect

PARTITIONS = 2
"""Partitions of every hub; fixed, since a key must keep its partition for as long as the file lives."""

_SEQUENCE_BITS = 48
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# An event's id is its partition's id and its sequence number in one integer: events of a partition lie side by side,
# an append goes to the end of a range, and no second index is needed. last_sequence outlives trimmed events.
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


def open_hub(path: Path) -> sqlite3.Connection:
    """Open the file, with its folder and its tables where they do not exist yet; the caller closes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(path)
    try:
        connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def partition_for_key(partition_key: str) -> str:
    """Return the id of the partition that a key belongs to, the same in every process and release."""
    return str(zlib.crc32(partition_key.encode()) % PARTITIONS)


def event_id(partition_id: int, sequence_number: int) -> int:
    """Return the id of an event in the file."""
    return (partition_id << _SEQUENCE_BITS) + sequence_number


def sequence_of(identifier: int) -> int:
    """Return the sequence number that an event's id holds."""
    return identifier & ((1 << _SEQUENCE_BITS) - 1)


def microseconds(instant: datetime) -> int:
    """Return an aware instant as microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def instant_from_microseconds(number: int) -> datetime:
    """Return the instant, in UTC, that a number of microseconds since 1970 names."""
    return _EPOCH + number * _MICROSECOND
