"""Tests that ingestion survives a lack of memory: it retries, and after a while a new process continues."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from emulators.kusto import ingest
from emulators.kusto.ingest import HubConsumer
from emulators.kusto.schema import create_tables


class _FailingConsumer(HubConsumer):
    """Consumer that raises the given errors instead of reading the hub, one at each attempt, and then stops."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, errors: Iterator[Exception]) -> None:
        super().__init__(connection, path)
        self._errors = errors
        self.done = threading.Event()

    def _open_and_ingest_hub(self) -> None:
        error = next(self._errors, None)
        if error is None:
            self.done.set()
            self._stop.set()
            return
        raise error


LACK = duckdb.OutOfMemoryException("Out of Memory Error")


@pytest.mark.parametrize(
    ("errors", "count"),
    [([LACK, LACK, LACK], 1), ([LACK, OSError("disk"), LACK], 0), ([MemoryError(), LACK, MemoryError()], 1)],
)
def test_a_lasting_lack_of_memory_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], count: int
) -> None:
    """The process ends if each attempt to ingest events for a while lacked memory; another error is only retried."""
    ended: list[object] = []
    times = iter(range(0, 1000, 20))
    monkeypatch.setattr(ingest, "abort_process", ended.append)
    monkeypatch.setattr(ingest, "RETRY_SECONDS", 0.0)
    connection = duckdb.connect()
    create_tables(connection, datetime(2026, 1, 5, tzinfo=UTC).replace(tzinfo=None))
    consumer = _FailingConsumer(connection, tmp_path / "hub.sqlite", iter(errors))
    monkeypatch.setattr("emulators.kusto.ingest.time.monotonic", lambda: float(next(times)))
    consumer.start()
    assert consumer.done.wait(30)
    consumer.stop()
    connection.close()
    assert len(ended) == count
    assert consumer.failures == len(errors)
