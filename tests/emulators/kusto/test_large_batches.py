"""Tests of the pauses between the batches that the consumer reads from the hub."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from emulators.kusto import ingest
from emulators.kusto.ingest import HubConsumer, HubFile
from emulators.kusto.schema import create_or_upgrade_tables
from shared.backends.embedded.hub import HubWriter
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import IMPULSES_HUB, HubMessage, Impulse

NOW = datetime(2026, 1, 5, tzinfo=UTC)


class RecordingEvent(threading.Event):
    """Fake event that records each wait instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Record the timeout of a wait."""
        self.waits.append(timeout)
        return False


@pytest.mark.parametrize(("max_bytes", "expected_pauses"), [(1, 0), (16 * 1024 * 1024, 1)])
async def test_the_consumer_does_not_pause_after_a_batch_at_the_byte_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int, expected_pauses: int
) -> None:
    """The consumer pauses after a small batch, but not if the batch ended at the byte limit."""
    monkeypatch.setattr(ingest, "MAX_READ_BYTES", max_bytes)
    connection = duckdb.connect(str(tmp_path / "telemetry.duckdb"))
    create_or_upgrade_tables(connection, NOW.replace(tzinfo=None))
    log = HubWriter(tmp_path / "hub.sqlite")
    texts = [encode_impulse(Impulse(f"pause-{n}", NOW, "press", ("line",), "d", {}, {"n": n})) for n in (1, 2)]
    await log.send(IMPULSES_HUB, [HubMessage(text, "press", {}) for text in texts])
    await log.close()
    consumer = HubConsumer(connection, tmp_path / "hub.sqlite")
    event = RecordingEvent()
    monkeypatch.setattr(consumer, "_stop", event)
    hub = HubFile(tmp_path / "hub.sqlite")
    consumer._ingest_new_events(hub, {})
    hub.close()
    assert consumer.added == (1 if max_bytes == 1 else 2)
    assert len(event.waits) == expected_pauses
    connection.close()
