"""The table of ingested telemetry: rows, how far each hub partition was read, what was seen, what was set aside.

All four change in one transaction, so that after a crash at any point each event of the hub is in the table once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa

TABLE = "Telemetry"
COLUMNS = ("Timestamp", "ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
SEEN_FOR = timedelta(hours=24)
"""A message that comes again within this time of its first arrival is a copy."""
SET_ASIDE_KEPT = 10_000

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS "{TABLE}" (
    "Timestamp" TIMESTAMP, "ConnectionLookup" VARCHAR, "SurfaceLookups" JSON, "DeviceId" VARCHAR,
    "MessageId" VARCHAR, "Payload" JSON
);
CREATE SCHEMA IF NOT EXISTS ingest;
CREATE TABLE IF NOT EXISTS ingest.offsets (
    hub_partition VARCHAR PRIMARY KEY, sequence BIGINT NOT NULL, newest TIMESTAMP NOT NULL
);
CREATE TABLE IF NOT EXISTS ingest.seen (high UBIGINT, low UBIGINT, first_seen TIMESTAMP);
CREATE TABLE IF NOT EXISTS ingest.set_aside (
    hub_partition VARCHAR, sequence BIGINT, reason VARCHAR, body BLOB, noticed TIMESTAMP
);
"""

_ROWS = pa.schema(
    [
        ("Timestamp", pa.timestamp("us")),
        ("ConnectionLookup", pa.string()),
        ("SurfaceLookups", pa.string()),
        ("DeviceId", pa.string()),
        ("MessageId", pa.string()),
        ("Payload", pa.string()),
        ("high", pa.uint64()),
        ("low", pa.uint64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Row:
    """One impulse as the table holds it.

    Attributes:
        key: 128 bits, as two halves, that stand for connection and message id.
        values: the cells, in the order of ``COLUMNS``; instants naive in UTC, dynamics as JSON text.
    """

    key: tuple[int, int]
    values: tuple[datetime, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a partition of the hub was read.

    Attributes:
        sequence: of the last event that is in the table.
        newest: the latest enqueued time among these events, naive, UTC.
    """

    sequence: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class SetAside:
    """An event that is no impulse."""

    sequence: int
    reason: str
    body: bytes


class TelemetryStore:
    """Writes the table. One thread at a time.

    Args:
        connection: a connection of its own, of the database that queries read.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @staticmethod
    def create(connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables where they do not exist."""
        connection.execute(_SCHEMA)

    def offsets(self) -> Mapping[str, Offset]:
        """Return how far each partition is in the table."""
        rows = self._connection.execute("SELECT hub_partition, sequence, newest FROM ingest.offsets").fetchall()
        return {partition: Offset(sequence, newest) for partition, sequence, newest in rows}

    def append(
        self, partition: str, offset: Offset, rows: Sequence[Row], set_aside: Sequence[SetAside], now: datetime
    ) -> int:
        """Add what is new among the rows and note how far the partition was read; all or nothing.

        Args:
            partition: of the hub.
            offset: how far it is read with these rows.
            rows: without copies among themselves.
            set_aside: events that are no impulses.
            now: naive, UTC.

        Returns:
            How many rows were new.
        """
        self._connection.begin()
        try:
            added = self._insert(rows, now) if rows else 0
            self._set_aside(partition, set_aside, now)
            self._connection.execute(
                "INSERT OR REPLACE INTO ingest.offsets VALUES (?, ?, ?)", [partition, offset.sequence, offset.newest]
            )
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return added

    def trim(self, now: datetime) -> None:
        """Forget what was seen too long ago and the oldest events beyond those that are kept aside."""
        self._connection.execute("DELETE FROM ingest.seen WHERE first_seen < ?", [now - SEEN_FOR])
        self._connection.execute(
            "DELETE FROM ingest.set_aside WHERE rowid NOT IN "
            "(SELECT rowid FROM ingest.set_aside ORDER BY noticed DESC LIMIT ?)",
            [SET_ASIDE_KEPT],
        )

    def _insert(self, rows: Sequence[Row], now: datetime) -> int:
        self._connection.register("arrived", _arrow(rows))
        try:
            copies = set(
                self._connection.execute(
                    "SELECT a.high, a.low FROM arrived a SEMI JOIN ingest.seen s "
                    "ON a.high = s.high AND a.low = s.low AND s.first_seen >= ?",
                    [now - SEEN_FOR],
                ).fetchall()
            )
            if copies:
                rows = [row for row in rows if row.key not in copies]
                self._connection.register("arrived", _arrow(rows))
            names = ", ".join(f'"{name}"' for name in COLUMNS)
            self._connection.execute(f'INSERT INTO "{TABLE}" SELECT {names} FROM arrived')  # noqa: S608  constants
            self._connection.execute("INSERT INTO ingest.seen SELECT high, low, ? FROM arrived", [now])
        finally:
            self._connection.unregister("arrived")
        return len(rows)

    def _set_aside(self, partition: str, events: Sequence[SetAside], now: datetime) -> None:
        for event in events:
            self._connection.execute(
                "INSERT INTO ingest.set_aside VALUES (?, ?, ?, ?, ?)",
                [partition, event.sequence, event.reason[:500], event.body, now],
            )


def _arrow(rows: Sequence[Row]) -> pa.Table:
    columns = [*zip(*(row.values for row in rows), strict=True)] or [()] * len(COLUMNS)
    keys = [*zip(*(row.key for row in rows), strict=True)] or [()] * 2
    arrays = [pa.array(values, field.type) for values, field in zip([*columns, *keys], _ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ROWS)
