"""Tests that another thread can wake the consumer of the hub while it waits for events."""

import operator
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import pytest

from emulators.kusto import ingest
from emulators.kusto.ingest import HubConsumer
from emulators.kusto.schema import create_or_upgrade_tables
from shared.backends.embedded.hub import HubWriter
from shared.runtime import Runtime
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import IMPULSES_HUB, HubMessage, Impulse

NOW = datetime(2026, 1, 5, tzinfo=UTC)


class ReportingConsumer(HubConsumer):
    """Event hub consumer that reports when it waits for events and when it has stored events."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        super().__init__(connection, path, is_woken=True)
        self.stored = threading.Event()

    def _store_batch(self, *arguments: object) -> None:
        super()._store_batch(*arguments)  # type: ignore[arg-type]
        self.stored.set()


async def test_repeats_that_waited_during_an_outage_count_from_their_arrival(tmp_path: Path) -> None:
    """After an outage of days, only messages that arrived up to 24 hours after the first one are duplicates."""
    connection = duckdb.connect(str(tmp_path / "telemetry.duckdb"))
    create_or_upgrade_tables(connection, NOW.replace(tzinfo=None))
    for hour, copies in ((0, 0), (1, 1), (25, 0)):
        impulse = Impulse("repeated", NOW, "press", ("line",), "d", {}, {"n": hour})
        log = HubWriter(tmp_path / "hub.sqlite", runtime=Runtime(now=partial(operator.add, NOW, timedelta(hours=hour))))
        await log.send(IMPULSES_HUB, [HubMessage(encode_impulse(impulse), "press", {})])
        await log.close()
        consumer = ReportingConsumer(connection, tmp_path / "hub.sqlite")
        consumer.start()
        assert consumer.stored.wait(30)
        consumer.stop()
        assert consumer.copies == copies
    assert connection.execute('SELECT "Payload" FROM "TelemetryRaw"').fetchall() == [('{"n":0}',), ('{"n":25}',)]
    connection.close()


async def test_a_wake_up_ingests_events_before_the_next_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a wake-up the consumer ingests new events at once, and a stop does not wait for the next poll."""
    monkeypatch.setattr(ingest, "WOKEN_POLL_SECONDS", 3600.0)
    connection = duckdb.connect(str(tmp_path / "telemetry.duckdb"))
    create_or_upgrade_tables(connection, NOW.replace(tzinfo=None))
    consumer = ReportingConsumer(connection, tmp_path / "hub.sqlite")
    consumer.start()
    impulse = Impulse("woken-1", NOW, "press", ("line",), "d", {}, {"n": 1})
    log = HubWriter(tmp_path / "hub.sqlite")
    await log.send(IMPULSES_HUB, [HubMessage(encode_impulse(impulse), "press", {})])
    await log.close()
    consumer.wake()
    assert consumer.stored.wait(30)
    consumer.stop()
    assert connection.execute('SELECT count(*) FROM "TelemetryRaw"').fetchall() == [(1,)]
    connection.close()
