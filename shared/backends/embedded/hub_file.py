"""SQLite file of the embedded event hub: its tables, and the row ids of its events.

A partition has two ids: its name in its hub (``"0"`` or ``"1"``), and its row id, which is unique in the file.
"""

import sqlite3
import zlib
from pathlib import Path

from shared.backends.embedded.sqlite import connect
from shared.runtime import SYSTEM_RUNTIME, Runtime

PARTITIONS = 2
"""Number of partitions of every hub. It must not change: the events of a key would move to another partition."""

_SEQUENCE_BITS = 48

# The id of an event combines the id of its partition and its sequence number. Events of a partition are adjacent,
# appends are at the end of a range, and no second index is needed. last_sequence remains after events are trimmed.
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


def open_hub_file(path: Path, runtime: Runtime = SYSTEM_RUNTIME) -> sqlite3.Connection:
    """Open the file of an event hub, and create missing folders and tables; the caller closes the connection."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(path, runtime, incremental_vacuum=True)
    try:
        connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def compute_partition_id(partition_key: str) -> str:
    """Return the id of a key's partition, ``"0"`` or ``"1"``; it is the same in all hubs, processes and releases."""
    return str(zlib.crc32(partition_key.encode()) % PARTITIONS)


def to_event_id(partition_row_id: int, sequence_number: int) -> int:
    """Combine the row id of a partition and a sequence number into the row id of an event."""
    return (partition_row_id << _SEQUENCE_BITS) + sequence_number


def sequence_from_event_id(event_id: int) -> int:
    """Extract the sequence number in the partition from the row id of an event."""
    return event_id & ((1 << _SEQUENCE_BITS) - 1)
