"""The consumer that feeds the table from the hub ``impulses``: a thread beside the queries, in their process."""

import hashlib
import logging
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from emulators.kusto.sandbox import abandon
from emulators.kusto.store import Offset, Row, SetAside, TelemetryStore
from shared.backends.embedded.hub import HubReader
from shared.telemetry.impulses import decode
from shared.telemetry.json_text import serialise
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubEvent, Impulse

GROUP = "adx"
BATCH_EVENTS = 20_000
POLL_SECONDS = 0.05
RETRY_SECONDS = 1.0
TRIM_SECONDS = 600.0
SMALL_BATCH = 1000
DUTY = 4.0
"""After a small batch rest this many times as long as it took: looking for copies costs the same for one row as for
a thousand, and a slow trickle shall not keep a core busy."""

_NOTHING = Offset(0, datetime.min)  # noqa: DTZ901  before every naive instant
_KEY = struct.Struct(">QQ")
_LOGGER = logging.getLogger(__name__)


class Ingest:
    """Moves impulses from the hub into the table until it is stopped.

    Args:
        connection: of the query database; the consumer takes a cursor of its own.
        hub: the hub's file.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, hub: Path) -> None:
        self._cursor = connection.cursor()
        self._store = TelemetryStore(self._cursor)
        self._hub = hub
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)
        self._trimmed = time.monotonic()
        self.added = 0
        self.copies = 0
        self.unrouted = 0
        self.malformed = 0
        self.failures = 0
        self.last_error = ""
        self._behind_since: dict[str, datetime] = {}

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch at hand and end the thread."""
        self._stop.set()
        self._thread.join()
        self._cursor.close()

    def lag_seconds(self) -> float:
        """Return the age of the oldest event known to wait in the hub, 0 when the table is up to date."""
        waiting = list(self._behind_since.values())
        return max(0.0, (datetime.now(UTC) - min(waiting)).total_seconds()) if waiting else 0.0

    def alive(self) -> bool:
        """Return whether the consumer runs."""
        return self._thread.is_alive()

    def figures(self) -> Mapping[str, Any]:
        """Return the counters since the process began."""
        return {
            "added": self.added,
            "copies": self.copies,
            "unrouted": self.unrouted,
            "malformed": self.malformed,
            "failures": self.failures,
            "lagSeconds": round(self.lag_seconds(), 3),
        }

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._consume()
            except duckdb.FatalException as error:
                abandon(error)
            except Exception as error:  # the file is locked, the disk is full, memory ran out: all of them may pass
                self.failures += 1
                self.last_error = f"{type(error).__name__}: {error}"[:300]
                _LOGGER.exception("ingestion failed; it is tried again")
                self._stop.wait(RETRY_SECONDS)

    def _consume(self) -> None:
        reader = HubReader(self._hub)
        try:
            offsets = dict(self._store.offsets())
            for partition, offset in offsets.items():
                # The table is ahead of the hub when a crash fell between the two commits.
                reader.commit(IMPULSES_HUB, GROUP, partition, offset.sequence)
            while not self._stop.is_set():
                self._trim()
                self._round(reader, offsets)
        finally:
            reader.close()

    def _round(self, reader: HubReader, offsets: dict[str, Offset]) -> None:
        if not reader.has_changed() and not self._behind_since:
            self._stop.wait(POLL_SECONDS)
            return
        began = time.monotonic()
        moved = max(self._advance(reader, partition, offsets) for partition in reader.partitions(IMPULSES_HUB))
        self.last_error = ""
        if moved < SMALL_BATCH:
            self._stop.wait(max(POLL_SECONDS, DUTY * (time.monotonic() - began)))

    def _advance(self, reader: HubReader, partition: str, offsets: dict[str, Offset]) -> int:
        """Move one batch of a partition and return how many events it had."""
        before = offsets.get(partition, _NOTHING)
        events = reader.read(IMPULSES_HUB, partition, before.sequence, BATCH_EVENTS)
        if not events:
            self._behind_since.pop(partition, None)
            if _replaced(reader, partition, before):
                _LOGGER.warning("the hub begins anew; partition %s is read from its start", partition)
                offsets[partition] = Offset(0, before.newest)
                self._behind_since[partition] = datetime.now(UTC)
            return 0
        self._behind_since[partition] = events[0].enqueued_at
        newest = max(before.newest, *(_naive(event.enqueued_at) for event in events))
        offset = Offset(events[-1].sequence_number, newest)
        self._apply(partition, offset, events)
        self._behind_since[partition] = events[-1].enqueued_at
        offsets[partition] = offset
        reader.commit(IMPULSES_HUB, GROUP, partition, offset.sequence)
        return len(events)

    def _apply(self, partition: str, offset: Offset, events: Sequence[HubEvent]) -> None:
        rows: dict[tuple[int, int], Row] = {}
        aside: list[SetAside] = []
        unrouted = 0
        for event in events:
            try:
                row = _row(event)
            except (ValueError, RecursionError) as error:
                aside.append(SetAside(event.sequence_number, str(error), event.body))
                continue
            if row is None:
                unrouted += 1
            else:
                rows.setdefault(row.key, row)
        added = self._store.append(partition, offset, list(rows.values()), aside, _now())
        self.added += added
        self.unrouted += unrouted
        self.malformed += len(aside)
        self.copies += len(events) - len(aside) - unrouted - added
        for bad in aside:
            _LOGGER.warning("event %s of partition %s set aside: %s", bad.sequence, partition, bad.reason)

    def _trim(self) -> None:
        if time.monotonic() - self._trimmed > TRIM_SECONDS:
            self._trimmed = time.monotonic()
            self._store.trim(_now())


def _replaced(reader: HubReader, partition: str, offset: Offset) -> bool:
    """Return whether the hub is another one than the offset is of: its first event is newer, yet numbered lower."""
    first = reader.read(IMPULSES_HUB, partition, 0, 1) if offset.sequence else []
    return bool(first) and first[0].sequence_number <= offset.sequence and _naive(first[0].enqueued_at) > offset.newest


def _row(event: HubEvent) -> Row | None:
    """Return the row of an event, None for one that no connection claims.

    Raises:
        ValueError: the event is no impulse.
    """
    impulse = decode(event.body)
    if impulse.connection == UNROUTED:
        return None
    return Row(
        key=_key(impulse),
        values=(
            _naive(impulse.timestamp),
            impulse.connection,
            serialise(list(impulse.surfaces)).decode(),
            impulse.device_id,
            impulse.message_id,
            serialise(dict(impulse.payload)).decode(),
        ),
    )


def _key(impulse: Impulse) -> tuple[int, int]:
    named = f"{len(impulse.connection)}:{impulse.connection}{impulse.message_id}".encode()
    high, low = _KEY.unpack(hashlib.blake2b(named, digest_size=_KEY.size).digest())
    return high, low


def _now() -> datetime:
    return _naive(datetime.now(UTC))


def _naive(instant: datetime) -> datetime:
    """Return an instant in UTC without its zone, as DuckDB keeps it."""
    return instant.replace(tzinfo=None)
