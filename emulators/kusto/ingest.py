"""Ingestion: a thread that copies impulses from the hub's file into the table ``Telemetry``."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from emulators.kusto.hub import HubFile, QueuedEvent
from emulators.kusto.sandbox import abort_process
from emulators.kusto.store import Offset, RejectedEvent, TelemetryRow, TelemetryStore, row_from_impulse

BATCH_EVENTS = 20_000
POLL_SECONDS = 0.05
RETRY_SECONDS = 1.0
TRIM_SECONDS = 600.0
SMALL_BATCH = 1000
DUTY = 4.0
"""Pause after a small batch, as a multiple of its duration. The search for duplicates costs the same for one row as for
a thousand; without the pause a slow stream of events would occupy a core."""

_NO_OFFSET = Offset(0, datetime.min)  # noqa: DTZ901  before every naive instant
_LOGGER = logging.getLogger(__name__)


class HubConsumer:
    """Copies impulses from the hub into the table until it is stopped.

    Args:
        connection: a connection of the query database; the consumer opens its own cursor.
        path: the file of the hub.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._cursor = connection.cursor()
        self._store = TelemetryStore(self._cursor)
        self._path = path
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
        """Complete the current batch and end the thread."""
        self._stop.set()
        self._thread.join()
        self._cursor.close()

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest event known to wait in the hub, 0 if the table is up to date."""
        waiting = list(self._behind_since.values())
        return max(0.0, (_now() - min(waiting)).total_seconds()) if waiting else 0.0

    def is_alive(self) -> bool:
        """Return whether the thread runs."""
        return self._thread.is_alive()

    def read_counters(self) -> Mapping[str, Any]:
        """Return the counters since the process started."""
        return {
            "added": self.added,
            "copies": self.copies,
            "unrouted": self.unrouted,
            "malformed": self.malformed,
            "failures": self.failures,
            "lagSeconds": round(self.lag_seconds, 3),
        }

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._consume()
            except duckdb.FatalException as error:
                abort_process(error)
            except Exception as error:  # a locked file, a full disk and a lack of memory may all be temporary
                self.failures += 1
                self.last_error = f"{type(error).__name__}: {error}"[:300]
                _LOGGER.exception("ingestion failed and will be retried")
                self._stop.wait(RETRY_SECONDS)

    def _consume(self) -> None:
        hub = HubFile(self._path)
        try:
            offsets = dict(self._store.read_offsets())
            for partition, offset in offsets.items():
                # After a crash between the two commits the offset in the table is higher than the one in the hub.
                hub.commit(partition, offset.sequence)
            while not self._stop.is_set():
                self._trim()
                self._ingest_round(hub, offsets)
        finally:
            hub.close()

    def _ingest_round(self, hub: HubFile, offsets: dict[str, Offset]) -> None:
        if not hub.has_changed() and not self._behind_since:
            self._stop.wait(POLL_SECONDS)
            return
        began = time.monotonic()
        counts = [self._ingest_batch(hub, partition, offsets) for partition in hub.read_partitions()]
        self.last_error = ""
        if max(counts, default=0) < SMALL_BATCH:
            self._stop.wait(max(POLL_SECONDS, DUTY * (time.monotonic() - began)))

    def _ingest_batch(self, hub: HubFile, partition: str, offsets: dict[str, Offset]) -> int:
        """Ingest one batch of a partition and return the number of its events."""
        before = offsets.get(partition, _NO_OFFSET)
        events = hub.read(partition, before.sequence, BATCH_EVENTS)
        if not events:
            self._behind_since.pop(partition, None)
            if _is_replaced(hub, partition, before):
                _LOGGER.warning("the hub's file was replaced; partition %s is read from its start", partition)
                offsets[partition] = Offset(0, before.newest)
                self._behind_since[partition] = _now()
            return 0
        self._behind_since[partition] = events[0].enqueued
        newest = max(before.newest, *(event.enqueued for event in events))
        offset = Offset(events[-1].sequence, newest)
        self._store_batch(partition, offset, events)
        self._behind_since[partition] = events[-1].enqueued
        offsets[partition] = offset
        hub.commit(partition, offset.sequence)
        return len(events)

    def _store_batch(self, partition: str, offset: Offset, events: Sequence[QueuedEvent]) -> None:
        rows: dict[tuple[int, int], TelemetryRow] = {}
        rejected: list[RejectedEvent] = []
        unrouted = 0
        for event in events:
            try:
                row = row_from_impulse(event.body)
            except (ValueError, RecursionError) as error:
                rejected.append(RejectedEvent(event.sequence, str(error), event.body))
                continue
            if row is None:
                unrouted += 1
            else:
                rows.setdefault(row.key, row)
        added = self._store.append(partition, offset, list(rows.values()), rejected, _now())
        self.added += added
        self.unrouted += unrouted
        self.malformed += len(rejected)
        self.copies += len(events) - len(rejected) - unrouted - added
        for event_error in rejected:
            _LOGGER.warning(
                "event %s of partition %s is no valid impulse: %s", event_error.sequence, partition, event_error.reason
            )

    def _trim(self) -> None:
        if time.monotonic() - self._trimmed > TRIM_SECONDS:
            self._trimmed = time.monotonic()
            self._store.trim(_now())


def _is_replaced(hub: HubFile, partition: str, offset: Offset) -> bool:
    """Return whether the offset belongs to an earlier file: the first event is newer but has a lower number."""
    first = hub.read(partition, 0, 1) if offset.sequence else []
    return bool(first) and first[0].sequence <= offset.sequence and first[0].enqueued > offset.newest


def _now() -> datetime:
    """Return the current instant in UTC without its zone, as DuckDB stores it."""
    return datetime.now(UTC).replace(tzinfo=None)
