"""Benchmark: CPU time of the Kusto emulator's search for duplicate messages, with few and with many stored messages."""

import random
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import duckdb

from bench.figures import Figure
from emulators.kusto.schema import create_or_upgrade_tables
from emulators.kusto.store import Offset, TelemetryRow, TelemetryStore

STORED: tuple[int, int] = (0, 5_000_000)
BATCH = 1_000
ROUNDS = 15
_NOW = datetime(2026, 1, 5, 12)  # noqa: DTZ001  the emulator stores naive times in UTC


def measure_deduplication() -> Iterator[Figure]:
    """Compare the CPU times to store 1,000 new rows in a table with few recent rows and in a table with many."""
    none, many = (_measure_cpu_milliseconds_of_batches(stored) for stored in STORED)
    detail = {
        "storedRows": STORED[1],
        "batch": BATCH,
        "emptyMilliseconds": round(median(none), 2),
        "fullMilliseconds": round(median(many), 2),
        "minimum": round(min(many), 2),
        "maximum": round(max(many), 2),
    }
    yield Figure("duplicates_growth", median(many) / median(none), "ratio", at_most=2.5, detail=detail)


def _measure_cpu_milliseconds_of_batches(stored_rows: int) -> list[float]:
    """Store batches of new rows in a table with ``stored_rows`` rows; return the CPU milliseconds of each batch."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        connection = duckdb.connect(str(Path(folder) / "telemetry.duckdb"), config={"threads": 2})
        create_or_upgrade_tables(connection, _NOW)
        connection.execute(
            "INSERT INTO ingest.seen SELECT hash(i), hash(-i), ? + to_seconds(i * 80000 // greatest(?, 1)) "
            "FROM range(1, ? + 1) numbers(i)",
            [_NOW - timedelta(hours=23), stored_rows, stored_rows],
        )
        connection.execute("CHECKPOINT")
        store = TelemetryStore(connection)
        store.append_events_and_count_new_rows("0", Offset(1, _NOW), _build_random_rows(0), [], _NOW)
        times = [_measure_cpu_milliseconds_of_batch(store, number) for number in range(1, ROUNDS + 1)]
        connection.close()
    return times


def _measure_cpu_milliseconds_of_batch(store: TelemetryStore, batch_number: int) -> float:
    rows = _build_random_rows(batch_number)
    started = time.process_time()
    store.append_events_and_count_new_rows("0", Offset(batch_number + 1, _NOW), rows, [], _NOW)
    return (time.process_time() - started) * 1000


def _build_random_rows(seed: int) -> list[TelemetryRow]:
    source = random.Random(seed)  # noqa: S311  no secret
    return [
        TelemetryRow(
            (source.getrandbits(64), source.getrandbits(64)),
            (_NOW, "line", "[]", "d", f"m-{number}", '{"a":1}'),
            _NOW,
        )
        for number in range(BATCH)
    ]
