"""Tests that ingestion survives a lack of memory: it retries, and after a while a new process continues."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from emulators.kusto import ingest
from emulators.kusto.ingest import HubConsumer, QueuedEvent
from emulators.kusto.schema import create_or_upgrade_tables
from emulators.kusto.store import Offset
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import Impulse

NOW = datetime(2026, 1, 5, tzinfo=UTC)
LACK = duckdb.OutOfMemoryException("Out of Memory Error")
EXPORT = duckdb.InvalidInputException("exporting a stream failed: MemoryError")


class _FailingConsumer(HubConsumer):
    """Consumer that raises the given errors instead of reading the hub, one at each attempt, and then stops.

    At an attempt without an error, it stores a batch.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, path: Path, errors: Sequence[Exception | None], *, has_leaked: bool
    ) -> None:
        super().__init__(connection, path, has_leaked_memory=lambda _: has_leaked)
        self._errors = iter(errors)
        self.done = threading.Event()

    def _open_and_ingest_hub(self) -> None:
        try:
            error = next(self._errors)
        except StopIteration:
            self.done.set()
            self._stop.set()
            return
        if error is not None:
            raise error
        body = encode_impulse(Impulse("m-1", NOW, "press", ("line",), "d", {}, {}))
        self._store_batch("0", Offset(1, datetime.min), [QueuedEvent(1, datetime.min, body)])  # noqa: DTZ901  as stored
        raise OSError("after a stored batch")


@pytest.mark.parametrize(
    ("errors", "has_leaked", "count"),
    [
        ([LACK] * 3, True, 1),
        ([MemoryError(), EXPORT, MemoryError()], True, 1),
        ([LACK] * 3, False, 0),
        ([LACK] * 17, False, 1),
        ([LACK, LACK, OSError("disk"), LACK, LACK], True, 0),
        ([LACK, LACK, None, LACK, LACK], True, 0),
    ],
)
def test_a_lasting_lack_of_memory_ends_the_process(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    errors: list[Exception | None],
    *,
    has_leaked: bool,
    count: int,
) -> None:
    """The process ends after 30 s without memory that ended queries occupy, or after 300 s without any memory.

    The time begins again after another error or a stored batch.
    """
    ended: list[object] = []
    times = iter(range(0, 1000, 20))
    connection = duckdb.connect()
    create_or_upgrade_tables(connection, NOW.replace(tzinfo=None))
    consumer = _FailingConsumer(connection, tmp_path / "hub.sqlite", errors, has_leaked=has_leaked)
    monkeypatch.setattr(ingest, "abort_process", ended.append)
    monkeypatch.setattr(ingest, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(ingest, "time", SimpleNamespace(monotonic=lambda: float(next(times))))
    consumer.start()
    assert consumer.done.wait(30)
    consumer.stop()
    connection.close()
    assert len(ended) == count
    assert consumer.failures == len(errors)


def test_a_transaction_of_the_consumer_uses_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the consumer stores a batch or deletes expired rows, its memory counts as in use, and afterwards not."""
    connection = duckdb.connect()
    create_or_upgrade_tables(connection, NOW.replace(tzinfo=None))
    consumer = HubConsumer(connection, tmp_path / "hub.sqlite")
    seen: list[bool] = []

    def record_use(*_: object) -> int:
        seen.append(consumer.is_using_memory)
        return 0

    monkeypatch.setattr(consumer._store, "append_events_and_count_new_rows", record_use)
    monkeypatch.setattr(consumer._store, "trim_keys_and_rejected_events", record_use)
    consumer._store_batch("0", Offset(1, datetime.min), [])  # noqa: DTZ901  as stored
    consumer._delete_expired_rows_if_due()
    connection.close()
    assert seen == [True, True]
    assert not consumer.is_using_memory
