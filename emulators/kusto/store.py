"""Table ``Telemetry``, the offsets of the hub, the keys of recent messages, and the rejected events.

The table contains one row for each normalised telemetry message (impulse). One transaction changes the row, the offset
and the key, so that after a crash at any point each message of the hub is in the table exactly once.
"""

import hashlib
import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

import duckdb
import orjson
import pyarrow as pa

from shared.timestamps import parse_rfc3339

TABLE = "Telemetry"
COLUMNS = ("Timestamp", "ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
SEEN_FOR = timedelta(hours=24)
"""A message that is repeated within this time after its first arrival is a duplicate."""
MAX_REJECTED_EVENTS = 10_000

_SOURCE = "DataConnection"
_UNROUTED = "_unrouted"
"""Connection of impulses that belong to no data connection; the table does not contain them."""
_KEY = struct.Struct(">QQ")
_BEYOND_64_BIT = re.compile(rb"-\d{19}|\d{20}")
"""Matches every integer outside 64 bits; orjson would silently read it as a double."""

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
class TelemetryRow:
    """Row of the table ``Telemetry``: one normalised message (impulse).

    Attributes:
        key: 128-bit hash of connection and message id, as two integers of 64 bits.
        values: cells in the order of ``COLUMNS``; times are naive UTC datetimes, dynamic values are JSON text.
    """

    key: tuple[int, int]
    values: tuple[datetime, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Offset:
    """Progress of ingestion in one partition of the hub.

    Attributes:
        sequence: sequence number of the last event that was processed.
        newest: latest enqueued time of the processed events, a naive UTC datetime.
    """

    sequence: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """Event of the hub that is not a valid impulse, with the reason."""

    sequence: int
    reason: str
    body: bytes


class TelemetryStore:
    """Writes the table ``Telemetry``, offsets, keys and rejected events. Not thread-safe.

    Args:
        connection: connection to the database that queries read; no other object may use this connection.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @staticmethod
    def create(connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables if they do not exist."""
        connection.execute(_SCHEMA)

    def read_offsets(self) -> Mapping[str, Offset]:
        """Return the stored offset of each partition of the hub, by name."""
        rows = self._connection.execute("SELECT hub_partition, sequence, newest FROM ingest.offsets").fetchall()
        return {partition: Offset(sequence, newest) for partition, sequence, newest in rows}

    def append(
        self,
        partition: str,
        offset: Offset,
        rows: Sequence[TelemetryRow],
        rejected: Sequence[RejectedEvent],
        now: datetime,
    ) -> int:
        """Insert the rows that are not duplicates and store the partition's offset, in one transaction.

        Args:
            partition: the partition of the hub.
            offset: the offset after these events.
            rows: rows to insert; their keys must differ.
            rejected: events that are not valid impulses.
            now: the current time, a naive UTC datetime.

        Returns:
            The number of inserted rows.
        """
        self._connection.begin()
        try:
            added = self._insert_rows(rows, now) if rows else 0
            self._insert_rejected(partition, rejected, now)
            self._connection.execute(
                "INSERT OR REPLACE INTO ingest.offsets VALUES (?, ?, ?)", [partition, offset.sequence, offset.newest]
            )
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return added

    def trim(self, now: datetime) -> None:
        """Delete expired keys of messages, and the oldest rejected events beyond ``MAX_REJECTED_EVENTS``."""
        self._connection.execute("DELETE FROM ingest.seen WHERE first_seen < ?", [now - SEEN_FOR])
        self._connection.execute(
            "DELETE FROM ingest.set_aside WHERE rowid NOT IN "
            "(SELECT rowid FROM ingest.set_aside ORDER BY noticed DESC LIMIT ?)",
            [MAX_REJECTED_EVENTS],
        )

    def _insert_rows(self, rows: Sequence[TelemetryRow], now: datetime) -> int:
        self._connection.register("arrived", _to_arrow(rows))
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
                self._connection.register("arrived", _to_arrow(rows))
            names = ", ".join(f'"{name}"' for name in COLUMNS)
            self._connection.execute(f'INSERT INTO "{TABLE}" SELECT {names} FROM arrived')  # noqa: S608  constants
            self._connection.execute("INSERT INTO ingest.seen SELECT high, low, ? FROM arrived", [now])
        finally:
            self._connection.unregister("arrived")
        return len(rows)

    def _insert_rejected(self, partition: str, events: Sequence[RejectedEvent], now: datetime) -> None:
        for event in events:
            self._connection.execute(
                "INSERT INTO ingest.set_aside VALUES (?, ?, ?, ?, ?)",
                [partition, event.sequence, event.reason[:500], event.body, now],
            )


def _to_arrow(rows: Sequence[TelemetryRow]) -> pa.Table:
    columns = [*zip(*(row.values for row in rows), strict=True)] or [()] * len(COLUMNS)
    keys = [*zip(*(row.key for row in rows), strict=True)] or [()] * 2
    arrays = [pa.array(values, field.type) for values, field in zip([*columns, *keys], _ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ROWS)


def row_from_impulse(body: bytes) -> TelemetryRow | None:
    """Convert the JSON text of an impulse to a row; return None if the impulse belongs to no data connection.

    Raises:
        ValueError: the text is not a JSON document with the members of an impulse.
    """
    impulse = _require_object(_parse_json(body), "impulse")
    metadata = _require_object(impulse.get("Metadata"), "Metadata")
    if impulse.get("Source") != _SOURCE:
        raise ValueError(f"Source must be {_SOURCE}")
    timestamp = parse_rfc3339(_require_text(impulse, "Timestamp")).replace(tzinfo=None)
    connection = _require_text(metadata, "ConnectionLookup")
    surfaces = metadata.get("SurfaceLookups")
    if not isinstance(surfaces, list) or not all(isinstance(each, str) for each in surfaces):
        raise ValueError("SurfaceLookups must be a list of strings")
    message_id, device_id = _require_text(impulse, "ID"), _require_text(impulse, "Subject")
    headers = _require_object(impulse.get("Headers"), "Headers")
    if not all(isinstance(value, str) for value in headers.values()):
        raise ValueError("Headers must be an object of strings")
    payload = _require_object(impulse.get("Payload"), "Payload")
    if connection == _UNROUTED:
        return None
    values = (timestamp, connection, _to_json(surfaces), device_id, message_id, _to_json(payload))
    return TelemetryRow(_hash_key(connection, message_id), values)


def _hash_key(connection: str, message_id: str) -> tuple[int, int]:
    text = f"{len(connection)}:{connection}{message_id}".encode()
    high, low = _KEY.unpack(hashlib.blake2b(text, digest_size=_KEY.size).digest())
    return high, low


def _parse_json(text: bytes) -> Any:
    """Parse JSON text; integers of any size retain all digits."""
    if _BEYOND_64_BIT.search(text) is None:
        return orjson.loads(text)
    try:
        value = json.loads(text, parse_constant=_reject_constant)
        _to_json(value)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    return value


def _to_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer beyond 64 bits, or more than 254 levels
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    text.encode()  # raises a ValueError for a lone surrogate, which UTF-8 cannot encode
    return text


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{name} must be an object")


def _require_text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name} must be a string")
