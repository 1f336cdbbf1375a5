"""Writes to the DuckDB file: table ``Telemetry``, event hub offsets, keys of recent messages, and rejected events.

The table contains one row for each telemetry event (impulse). A key is a hash by which repeated messages are
recognised. Rows, offset and keys are stored in one transaction, so that each event of the hub is in the table exactly
once, even after a crash.

A message is a duplicate if the table ``ingest.seen`` contains its key with an arrival within 24 hours. In-memory Bloom
filters, one for each period, recognise almost all new messages, so that their keys need not be searched in the table.
For the other messages, only the time from the oldest to the newest matching filter is searched. A filter may report a
new key as possibly stored, but never a stored key as new.
"""

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn

import duckdb
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from emulators.kusto.sandbox import abort_process
from emulators.kusto.schema import COLUMN_LIST, COLUMNS, RAW_TABLE
from shared.timestamps import parse_rfc3339

type MessageKey = tuple[int, int]
"""Hash of a message's connection and message id: its higher and lower 64 bits."""

type Keys = npt.NDArray[np.uint64]
"""Array with a row for each key: the higher and the lower 64 bits of the hash."""

FILTER_BITS = 1 << 25
"""Bits of the Bloom filter of one period, which are 4 MB; a power of two."""

_BITS_PER_KEY = 24
_BITS_SET_PER_KEY = 12
"""Bits that each key sets. A full filter reports one of 70,000 new keys as possibly stored."""

_CHUNK_KEYS = 20_000
"""Keys whose bits are computed at a time, to limit the memory of intermediate results."""


class TimeRange(NamedTuple):
    """Times when the first and the last message of a group arrived in the event hub, as naive datetimes in UTC.

    The search for duplicates of a message is limited to such a range.
    """

    oldest: datetime
    newest: datetime


@dataclass(slots=True)
class _PeriodFilter:
    """Bloom filter of the keys that were stored in one period, which ends when the filter is full.

    Attributes:
        bits: bits of the filter.
        count: number of keys.
        arrivals: time range in which the messages of the keys arrived.
    """

    bits: npt.NDArray[np.uint8]
    count: int
    arrivals: TimeRange


class FilterMatches(NamedTuple):
    """Message keys that Bloom filters cannot exclude.

    Attributes:
        are_possibly_stored: flag for each examined key; False if the key is certainly new.
        time_range: times in which the messages of the possibly stored keys arrived; None if all keys are new.
    """

    are_possibly_stored: npt.NDArray[np.bool_]
    time_range: TimeRange | None


class RecentKeys:
    """Bloom filters of the message keys in ``ingest.seen``, one filter for each period; not thread-safe.

    Args:
        filter_bits: number of bits of each filter; a power of two.
    """

    def __init__(self, filter_bits: int = FILTER_BITS) -> None:
        self._filter_bits = filter_bits
        self._capacity = filter_bits // _BITS_PER_KEY
        self._period_filters: list[_PeriodFilter] = []

    def add(self, keys: Keys, time_range: TimeRange) -> None:
        """Add keys of messages that arrived in a time range."""
        while len(keys):
            period_filter = self._get_or_create_period_filter(time_range)
            chunk = keys[: self._capacity - period_filter.count]
            self._set_bits(period_filter.bits, chunk)
            period_filter.count += len(chunk)
            oldest, newest = period_filter.arrivals
            period_filter.arrivals = TimeRange(min(oldest, time_range.oldest), max(newest, time_range.newest))
            keys = keys[len(chunk) :]

    def flag_possibly_stored_keys(self, keys: Keys) -> FilterMatches:
        """Return which keys are possibly stored, and the time range of arrivals in which they must be searched."""
        found = np.zeros(len(keys), dtype=bool)
        ranges: list[TimeRange] = []
        places = self._compute_bit_positions(keys)
        positions, masks = places >> np.uint64(3), _to_bit_masks(places)
        for period_filter in self._period_filters:
            hits = ((period_filter.bits[positions] & masks) != 0).all(axis=1)
            if hits.any():
                found |= hits
                ranges.append(period_filter.arrivals)
        if not ranges:
            return FilterMatches(found, None)
        return FilterMatches(found, TimeRange(min(each.oldest for each in ranges), max(each.newest for each in ranges)))

    def remove_keys_before(self, instant: datetime) -> None:
        """Remove the filters of periods that ended before the given time."""
        self._period_filters = [each for each in self._period_filters if each.arrivals.newest >= instant]

    def _get_or_create_period_filter(self, time_range: TimeRange) -> _PeriodFilter:
        if not self._period_filters or self._period_filters[-1].count >= self._capacity:
            self._period_filters.append(_PeriodFilter(np.zeros(self._filter_bits // 8, dtype=np.uint8), 0, time_range))
        return self._period_filters[-1]

    def _set_bits(self, bits: npt.NDArray[np.uint8], keys: Keys) -> None:
        if len(keys) < _CHUNK_KEYS:
            places = self._compute_bit_positions(keys)
            np.bitwise_or.at(bits, places >> np.uint64(3), _to_bit_masks(places))
            return
        # Setting a byte for each bit first takes a fifth of the time, but only for many keys.
        flags = np.zeros(self._filter_bits, dtype=bool)
        for start in range(0, len(keys), _CHUNK_KEYS):
            flags[self._compute_bit_positions(keys[start : start + _CHUNK_KEYS])] = True
        bits |= np.packbits(flags, bitorder="little")

    def _compute_bit_positions(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """Return the bit positions of each key in the filter, computed from the two halves of the key's hash."""
        steps = np.arange(_BITS_SET_PER_KEY, dtype=np.uint64)
        odd = keys[:, 1:2] | np.uint64(1)
        return (keys[:, 0:1] + steps * odd) & np.uint64(self._filter_bits - 1)


def to_numpy_keys(keys: Iterable[MessageKey]) -> Keys:
    """Convert message keys to a NumPy array."""
    return np.array(list(keys), dtype=np.uint64).reshape(-1, 2)


def _to_bit_masks(bit_positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (bit_positions & np.uint64(7)).astype(np.uint8))


SEEN_FOR = timedelta(hours=24)
"""A message that is repeated within this time after its first arrival in the event hub is a duplicate.

The time of ingestion does not matter, because after an outage this process ingests the events of days in minutes.
"""
MAX_REJECTED_EVENTS = 10_000
MAX_DELETED_ROWS = 500_000
"""Maximum number of rows that one transaction deletes, so that ingestion waits only for a fraction of a second."""

_SOURCE = "DataConnection"
_UNROUTED = "_unrouted"
"""Name of the connection in telemetry events that belong to no data connection; the table omits these events."""
_KEY = struct.Struct(">QQ")
_BEYOND_64_BIT = re.compile(rb"-\d{19}|\d{20}")
"""Matches every integer of more than 64 bits, which orjson would silently parse as a double."""

_LOADED_KEYS = 1_000_000
"""Keys that are loaded at a time after the start."""

_KEYS = pa.schema([("high", pa.uint64()), ("low", pa.uint64())])
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
        ("arrived", pa.timestamp("us")),
    ]
)


@dataclass(frozen=True, slots=True)
class TelemetryRow:
    """Row of the table ``Telemetry``: one telemetry event (impulse).

    Attributes:
        key: hash of connection and message id, which detects duplicates.
        values: cells in the order of ``COLUMNS``; times are naive UTC datetimes, dynamic values are JSON text.
        arrived: time at which the event hub stored the event, a naive UTC datetime.
    """

    key: MessageKey
    values: tuple[datetime, str, str, str, str, str]
    arrived: datetime


@dataclass(frozen=True, slots=True)
class Offset:
    """Progress of ingestion in one partition of the event hub.

    Attributes:
        sequence: sequence number of the last event that was processed.
        newest: latest time at which the hub stored one of the processed events, a naive UTC datetime.
    """

    sequence: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """Event of the hub that is not a valid telemetry event (impulse), with the reason for its rejection."""

    sequence: int
    reason: str
    body: bytes


class TelemetryStore:
    """Writes the table ``Telemetry``, event hub offsets, message keys, and rejected events; not thread-safe.

    Args:
        connection: connection to the database that queries read; no other object may use this connection.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._recent: RecentKeys | None = None

    def read_offsets(self) -> Mapping[str, Offset]:
        """Return the stored offset of each partition of the event hub, by partition name."""
        rows = self._connection.execute("SELECT hub_partition, sequence, newest FROM ingest.offsets").fetchall()
        return {partition: Offset(sequence, newest) for partition, sequence, newest in rows}

    def append_events_and_count_new_rows(
        self,
        partition: str,
        offset: Offset,
        rows: Sequence[TelemetryRow],
        rejected: Sequence[RejectedEvent],
        now: datetime,
    ) -> int:
        """Insert rows that are not duplicates, and store the offset of their partition, in one transaction.

        Args:
            partition: name of the partition of the event hub.
            offset: new offset of the partition, after these events.
            rows: rows to insert, in the order of their arrival; duplicates among them are left out.
            rejected: events that are not valid telemetry events.
            now: the current time, a naive UTC datetime.

        Returns:
            The number of inserted rows.
        """
        self._connection.begin()
        try:
            added = self._insert_and_count_new_rows(rows, now) if rows else 0
            self._insert_rejected_events(partition, rejected, now)
            self._connection.execute(
                "INSERT OR REPLACE INTO ingest.offsets VALUES (?, ?, ?)", [partition, offset.sequence, offset.newest]
            )
            self._connection.commit()
        except BaseException:
            self._roll_back()
            raise
        return added

    def try_ingest_file_rows(self, tag: str, rows: pa.RecordBatchReader, now: datetime) -> bool:
        """Insert the rows of a file in one transaction, unless rows with the same tag were inserted before.

        Args:
            tag: text that identifies the rows.
            rows: rows of the file, with the columns ``COLUMNS``.
            now: the current time, a naive UTC datetime.

        Returns:
            False if rows with this tag were inserted before.
        """
        self._connection.begin()
        try:
            found = self._connection.execute("SELECT 1 FROM ingest.tags WHERE tag = ?", [tag]).fetchone()
            if found is None:
                self._connection.register("ingested", rows)
                names = ", ".join(
                    "(\"Timestamp\" AT TIME ZONE 'UTC')" if name == "Timestamp" else f'"{name}"' for name in COLUMNS
                )
                insertion = f'INSERT INTO "{RAW_TABLE}" ({COLUMN_LIST}, "IngestedAt") SELECT {names}, ? FROM ingested'  # noqa: S608  constants
                self._connection.execute(insertion, [now])
                self._connection.execute("INSERT INTO ingest.tags VALUES (?, ?)", [tag, now])
                self._connection.unregister("ingested")
            self._connection.commit()
        except BaseException:
            self._roll_back()
            raise
        return found is None

    def _roll_back(self) -> None:
        """Roll the transaction back; if that fails, end the process, because every later transaction would fail too."""
        try:
            self._connection.rollback()
        except (duckdb.Error, MemoryError) as error:
            # A failed commit has usually ended the transaction.
            if "no transaction is active" not in str(error):
                abort_process(f"a transaction could not be rolled back: {error}")

    def trim_keys_and_rejected_events(self, next_arrival: datetime) -> None:
        """Delete expired message keys, and the oldest rejected events if there are too many.

        Args:
            next_arrival: time at which the oldest event that is not yet in the table arrived in the event hub, or the
                current time if there is no such event; a naive UTC datetime.
        """
        self._connection.execute("DELETE FROM ingest.seen WHERE first_seen < ?", [next_arrival - SEEN_FOR])
        if self._recent is not None:
            self._recent.remove_keys_before(next_arrival - SEEN_FOR)
        self._connection.execute(
            "DELETE FROM ingest.set_aside WHERE rowid NOT IN "
            "(SELECT rowid FROM ingest.set_aside ORDER BY noticed DESC LIMIT ?)",
            [MAX_REJECTED_EVENTS],
        )

    def delete_and_count_rows_ingested_before(self, ingested_before: datetime) -> int:
        """Delete up to ``MAX_DELETED_ROWS`` rows that were ingested before a time; return the number of deleted rows.

        If no such row remains, delete the tags of the files that were ingested before the time, too.

        Args:
            ingested_before: a naive UTC datetime.
        """
        deleted = self._connection.execute(
            f'DELETE FROM "{RAW_TABLE}" WHERE rowid IN '  # noqa: S608  constants
            f'(SELECT rowid FROM "{RAW_TABLE}" WHERE "IngestedAt" < ? LIMIT {MAX_DELETED_ROWS})',
            [ingested_before],
        ).fetchone()
        count = int(deleted[0]) if deleted else 0
        if count < MAX_DELETED_ROWS:
            # In Data Explorer, a tag belongs to an extent, and expires with the rows of the extent.
            self._connection.execute("DELETE FROM ingest.tags WHERE ingested < ?", [ingested_before])
        return count

    def _insert_and_count_new_rows(self, rows: Sequence[TelemetryRow], now: datetime) -> int:
        recent = self._recent = self._recent or self._load_recent_keys()
        rows = _remove_duplicates(rows, self._find_stored_keys(recent, rows))
        if rows:
            # Before the commit: after a rollback, a key that is not stored only costs a search.
            recent.add(to_numpy_keys(row.key for row in rows), _compute_time_range_of_arrivals(rows))
        self._connection.register("new_rows", _to_arrow_table(rows))
        insertion = f'INSERT INTO "{RAW_TABLE}" ({COLUMN_LIST}, "IngestedAt") SELECT {COLUMN_LIST}, ? FROM new_rows'  # noqa: S608  constants
        self._connection.execute(insertion, [now])
        self._connection.execute("INSERT INTO ingest.seen SELECT high, low, arrived FROM new_rows")
        # Not after a failure: the call would fail, too, and hide the first error. The next registration replaces this.
        self._connection.unregister("new_rows")
        return len(rows)

    def _find_stored_keys(
        self, recent: RecentKeys, rows: Sequence[TelemetryRow]
    ) -> Sequence[tuple[MessageKey, datetime]]:
        """Return the stored keys of rows with their times of arrival.

        Omit arrivals more than 24 hours before the first row or after the last one. Search only the keys that the
        filter cannot exclude.
        """
        found, stored = recent.flag_possibly_stored_keys(to_numpy_keys(row.key for row in rows))
        if stored is None:
            return ()
        keys = {row.key for row, is_possible in zip(rows, found, strict=True) if is_possible}
        arrivals = _compute_time_range_of_arrivals(rows)
        self._connection.register("possible", pa.table([*zip(*keys, strict=True)], _KEYS))
        copies = self._connection.execute(
            "SELECT s.high, s.low, s.first_seen FROM ingest.seen s SEMI JOIN possible p "
            "ON p.high = s.high AND p.low = s.low WHERE s.first_seen BETWEEN ? AND ?",
            [max(arrivals.oldest - SEEN_FOR, stored.oldest), min(arrivals.newest + SEEN_FOR, stored.newest)],
        ).fetchall()
        self._connection.unregister("possible")  # not after a failure, as above
        return [((high, low), arrived) for high, low, arrived in copies]

    def _load_recent_keys(self) -> RecentKeys:
        recent = RecentKeys()
        query = "SELECT high, low, first_seen FROM ingest.seen"
        for batch in self._connection.sql(query).to_arrow_reader(_LOADED_KEYS):
            times = batch.column("first_seen")
            stored = TimeRange(pc.min(times).as_py(), pc.max(times).as_py())
            keys = np.column_stack([batch.column(name).to_numpy() for name in ("high", "low")])
            recent.add(keys, stored)
        return recent

    def _insert_rejected_events(self, partition: str, events: Sequence[RejectedEvent], now: datetime) -> None:
        for event in events:
            self._connection.execute(
                "INSERT INTO ingest.set_aside VALUES (?, ?, ?, ?, ?)",
                [partition, event.sequence, event.reason[:500], event.body, now],
            )


def _remove_duplicates(
    rows: Iterable[TelemetryRow], stored: Iterable[tuple[MessageKey, datetime]]
) -> list[TelemetryRow]:
    """Return the rows that are not duplicates of earlier ones or of stored keys with the times of their arrival."""
    arrivals: dict[MessageKey, list[datetime]] = {}
    for key, arrived in stored:
        arrivals.setdefault(key, []).append(arrived)
    new = []
    for row in rows:
        known = arrivals.setdefault(row.key, [])
        # Clocks can be set back, so a repeat can seem to be earlier.
        if all(abs(row.arrived - arrived) > SEEN_FOR for arrived in known):
            known.append(row.arrived)
            new.append(row)
    return new


def _compute_time_range_of_arrivals(rows: Sequence[TelemetryRow]) -> TimeRange:
    return TimeRange(min(row.arrived for row in rows), max(row.arrived for row in rows))


def _to_arrow_table(rows: Sequence[TelemetryRow]) -> pa.Table:
    columns = [*zip(*(row.values for row in rows), strict=True)] or [()] * len(COLUMNS)
    keys = [*zip(*(row.key for row in rows), strict=True)] or [()] * 2
    cells = [*columns, *keys, [row.arrived for row in rows]]
    arrays = [pa.array(values, field.type) for values, field in zip(cells, _ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ROWS)


def row_from_impulse_if_routed(body: bytes, arrived: datetime) -> TelemetryRow | None:
    """Convert the JSON text of a telemetry event (impulse) to a row; return None if it belongs to no data connection.

    Args:
        body: content of the event.
        arrived: time at which the event hub stored the event, a naive UTC datetime.

    Raises:
        ValueError: the text is not a JSON object with the properties of a telemetry event.
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
    return TelemetryRow(_hash_message_key(connection, message_id), values, arrived)


def _hash_message_key(connection: str, message_id: str) -> MessageKey:
    text = f"{len(connection)}:{connection}{message_id}".encode()
    high, low = _KEY.unpack(hashlib.blake2b(text, digest_size=_KEY.size).digest())
    return high, low


def _parse_json(text: bytes) -> Any:
    """Parse JSON text; large integers keep all their digits."""
    if _BEYOND_64_BIT.search(text) is None:
        return orjson.loads(text)
    try:
        value = json.loads(text, parse_constant=_reject_json_constant)
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


def _reject_json_constant(constant: str) -> NoReturn:
    """Reject NaN and Infinity, which Python's JSON parser accepts by default, with a ValueError."""
    raise ValueError(f"the constant {constant} is not valid JSON")


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{name} must be an object")


def _require_text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name} must be a string")
