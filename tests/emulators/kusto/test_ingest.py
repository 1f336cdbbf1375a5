"""Tests of the ingestion from the Event Hub into the table."""

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from emulators.kusto.ingest import GROUP
from shared.backends.embedded.hub import HubReader, HubWriter
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubMessage, Impulse
from tests.emulators.kusto.endpoints import Endpoint, end_process, start_emulator

START = datetime(2026, 1, 1, tzinfo=UTC)


def build_message(number: int, connection: str = "press", identifier: str | None = None) -> HubMessage:
    """Return a telemetry message whose content depends on its number."""
    impulse = Impulse(
        message_id=identifier or f"m-{number}",
        timestamp=START + timedelta(seconds=number),
        connection=connection,
        surfaces=("line-1", "plant"),
        device_id=f"dev-{number % 7}",
        headers={},
        payload={"n": number, "big": 10**25, "text": 'ä"'},
    )
    return HubMessage(encode_impulse(impulse), connection, {})


class Installation:
    """Event Hub, data folder and emulator that a test starts, stops and kills."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hub = root / "hub.sqlite"
        self.endpoint: Endpoint | None = None

    def send_messages(self, *messages: HubMessage) -> None:
        """Append messages to the event hub that the emulator reads."""
        asyncio.run(self._send(messages))

    async def _send(self, messages: tuple[HubMessage, ...]) -> None:
        log = HubWriter(self.hub)
        await log.send(IMPULSES_HUB, messages)
        await log.close()

    def start_emulator(self, *arguments: str, **options: Any) -> Endpoint:
        """Start the emulator."""
        data = ("--data", str(self.root / "kusto"), "--hub", str(self.hub), "--memory-limit", "300MB")
        self.endpoint = start_emulator(self.root / "stderr", *data, *arguments, **options)
        return self.endpoint

    def shut_down_emulator(self) -> None:
        """Shut the emulator down."""
        assert self.endpoint is not None
        assert end_process(self.endpoint.process) == 0, self.endpoint.read_log()

    def kill_emulator(self) -> None:
        """Kill the emulator's process without a shutdown."""
        assert self.endpoint is not None
        self.endpoint.process.send_signal(signal.SIGKILL)
        end_process(self.endpoint.process)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Return an installation; its emulator ends with the test."""
    installation = Installation(tmp_path)
    yield installation
    if installation.endpoint is not None and installation.endpoint.process.poll() is None:
        end_process(installation.endpoint.process)


def build_processed_condition(count: int) -> Any:
    """Return a condition that is true after the emulator has processed this number of events."""
    return lambda stats: sum(stats["ingest"][key] for key in ("added", "copies", "unrouted", "malformed")) == count


def test_a_telemetry_impulse_becomes_a_table_row(installation: Installation) -> None:
    """Each property of an impulse (telemetry message) is stored in its column with its Kusto type."""
    installation.send_messages(build_message(3))
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(build_processed_condition(1))
    table = endpoint.query_table("Telemetry")
    assert [(column.column_name, column.column_type) for column in table.columns] == [
        ("Timestamp", "datetime"),
        ("ConnectionLookup", "string"),
        ("SurfaceLookups", "dynamic"),
        ("DeviceId", "string"),
        ("MessageId", "string"),
        ("Payload", "dynamic"),
    ]
    payload = {"n": 3, "big": 10**25, "text": 'ä"'}
    assert table.raw_rows == [
        ["2026-01-01T00:00:03.000000Z", "press", ["line-1", "plant"], "dev-3", "m-3", payload],
    ]


def test_new_events_are_ingested_and_their_offset_is_committed(installation: Installation) -> None:
    """New events are stored, and the consumer group's offset is committed to the hub."""
    endpoint = installation.start_emulator()
    for number in range(5):
        installation.send_messages(build_message(number, f"c{number}"))
        endpoint.wait_for_statistics(build_processed_condition(number + 1))
    assert endpoint.query_rows("Telemetry | summarize count(), dcount(ConnectionLookup)") == [[5, 5]]
    reader = HubReader(installation.hub)
    partitions = reader.list_partition_ids(IMPULSES_HUB)
    endpoint.wait_for_statistics(
        lambda _: sum(reader.read_offset(IMPULSES_HUB, GROUP, each) for each in partitions) == 5
    )
    reader.close()
    assert httpx.get(f"{endpoint.url}/healthz").json()["status"] == "ok"


def test_duplicate_messages_are_removed_within_and_between_batches(installation: Installation) -> None:
    """Messages of a connection with the same id are stored once; other connections may use the id."""
    installation.send_messages(
        build_message(1),
        build_message(1),
        build_message(2),
        build_message(9, identifier="m-1"),
        build_message(1, "other"),
    )
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(build_processed_condition(5))
    installation.send_messages(build_message(1), build_message(2, "other"), build_message(2))
    stats = endpoint.wait_for_statistics(build_processed_condition(8))
    assert stats["ingest"]["copies"] == 4
    query = "Telemetry | project ConnectionLookup, MessageId, n = tolong(Payload.n) | order by ConnectionLookup, n asc"
    assert sorted(endpoint.query_rows(query)) == [
        ["other", "m-1", 1],
        ["other", "m-2", 2],
        ["press", "m-1", 1],
        ["press", "m-2", 2],
    ]


def test_a_message_id_can_be_used_again_after_a_day(installation: Installation) -> None:
    """A message is not a duplicate if the earlier message with the same id is more than 24 hours older."""
    installation.send_messages(build_message(1))
    installation.start_emulator().wait_for_statistics(build_processed_condition(1))
    installation.shut_down_emulator()
    with duckdb.connect(str(installation.root / "kusto" / "telemetry.duckdb")) as database:
        database.execute("UPDATE ingest.seen SET first_seen = first_seen - INTERVAL '24 hours 1 second'")
    installation.send_messages(build_message(1))
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(build_processed_condition(1))
    assert endpoint.query_rows("Telemetry | count") == [[2]]


def test_unrouted_impulses_are_not_stored(installation: Installation) -> None:
    """Impulses of the reserved connection for unrouted events are counted but not stored."""
    installation.send_messages(build_message(1, UNROUTED), build_message(2))
    endpoint = installation.start_emulator()
    assert endpoint.wait_for_statistics(build_processed_condition(2))["ingest"]["unrouted"] == 1
    assert endpoint.query_rows("Telemetry | project ConnectionLookup") == [["press"]]


MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b'{"ID": 5}',
    b"[" * 100_000,
    build_message(1).body.replace(b"2026", b"20x6"),
]


def test_malformed_impulses_do_not_block_others(installation: Installation) -> None:
    """A malformed event is stored separately with the reason; all valid events are stored in the table."""
    installation.send_messages(build_message(0))
    for number, body in enumerate(MALFORMED):
        installation.send_messages(HubMessage(body, "press", {}), build_message(number + 1))
    endpoint = installation.start_emulator()
    assert endpoint.wait_for_statistics(build_processed_condition(2 * len(MALFORMED) + 1))["ingest"][
        "malformed"
    ] == len(MALFORMED)
    assert endpoint.query_rows("Telemetry | count") == [[len(MALFORMED) + 1]]
    end_process(endpoint.process)
    with duckdb.connect(str(installation.root / "kusto" / "telemetry.duckdb"), read_only=True) as database:
        stored = database.execute("SELECT body, reason FROM ingest.set_aside").fetchall()
    assert sorted(body for body, _ in stored) == sorted(MALFORMED)
    assert all(reason for _, reason in stored)


@pytest.mark.parametrize(("total", "kills"), [(20_000, 4), pytest.param(100_000, 16, marks=pytest.mark.soak)])
def test_messages_are_stored_once_despite_kills(installation: Installation, total: int, kills: int) -> None:
    """If the emulator is killed repeatedly during ingestion, each message is stored exactly once."""
    connections = 5
    for first in range(0, total, 5000):
        installation.send_messages(
            *(build_message(number, f"c{number % connections}") for number in range(first, first + 5000))
        )
    moments = random.Random(7)
    for _ in range(kills):
        installation.start_emulator()
        time.sleep(moments.uniform(0, 0.4))  # varies the moment of the kill
        installation.kill_emulator()
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(lambda stats: stats["rows"]["Telemetry"] >= total)
    query = "Telemetry | summarize rows = count(), ids = dcount(MessageId), total = sum(tolong(Payload.n))"
    assert endpoint.query_rows(query) == [[total, total, sum(range(total))]]


def test_ingestion_continues_at_the_offset_in_the_database(installation: Installation) -> None:
    """If the hub has lost the consumer group's offset, ingestion continues at the offset in the database."""
    installation.send_messages(*(build_message(number) for number in range(10)))
    installation.start_emulator().wait_for_statistics(build_processed_condition(10))
    installation.shut_down_emulator()
    with sqlite3.connect(installation.hub) as hub:
        hub.execute("DELETE FROM offsets")
    hub.close()
    installation.send_messages(build_message(10))
    endpoint = installation.start_emulator()
    stats = endpoint.wait_for_statistics(build_processed_condition(1))
    assert stats["ingest"] | {"lagSeconds": 0} == {
        "added": 1,
        "copies": 0,
        "unrouted": 0,
        "malformed": 0,
        "expired": 0,
        "failures": 0,
        "lagSeconds": 0,
    }


@pytest.mark.parametrize(("old_events", "is_running"), [(10, True), (2, True), (2, False)])
def test_the_events_of_a_replaced_event_hub_file_are_all_ingested(
    installation: Installation, old_events: int, *, is_running: bool
) -> None:
    """If the hub's file is replaced, all events of the new file are ingested, however many the old file had."""
    installation.send_messages(*(build_message(number) for number in range(old_events)))
    installation.start_emulator().wait_for_statistics(build_processed_condition(old_events))
    installation.shut_down_emulator()
    for file in installation.root.glob("hub.sqlite*"):
        file.unlink()
    messages = [build_message(number) for number in (10, 11, 12, 1)]
    if not is_running:
        installation.send_messages(*messages)
    endpoint = installation.start_emulator()
    if is_running:
        installation.send_messages(*messages)
    stats = endpoint.wait_for_statistics(build_processed_condition(4))
    assert stats["ingest"]["copies"] == 1
    assert endpoint.query_rows("Telemetry | count") == [[old_events + 3]]


def test_the_offset_of_an_old_event_hub_file_is_not_committed_to_a_new_file(installation: Installation) -> None:
    """After the hub's file is replaced, the offset that is committed to the new file is one of its events."""
    installation.send_messages(*(build_message(number) for number in range(10)))
    installation.start_emulator().wait_for_statistics(build_processed_condition(10))
    installation.shut_down_emulator()
    for file in installation.root.glob("hub.sqlite*"):
        file.unlink()
    installation.send_messages(build_message(10))
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(build_processed_condition(1))
    installation.shut_down_emulator()
    reader = HubReader(installation.hub)
    offsets = [
        reader.read_offset(IMPULSES_HUB, GROUP, partition) for partition in reader.list_partition_ids(IMPULSES_HUB)
    ]
    reader.close()
    assert sorted(offsets)[-2:] == [0, 1]


def test_queries_cannot_read_internal_tables(installation: Installation) -> None:
    """A query that names a table of the internal schema ``ingest`` is rejected."""
    installation.send_messages(build_message(1))
    endpoint = installation.start_emulator()
    endpoint.wait_for_statistics(build_processed_condition(1))
    for name in ("seen", "offsets", "['ingest.seen']", "['ingest'].seen"):
        assert endpoint.query_error_code(name).startswith(("General_BadRequest", "BadRequest_"))


def test_the_emulator_ends_when_its_standard_input_ends(installation: Installation) -> None:
    """When standard input ends, the emulator ends and releases the database, even during a query.

    The log has no warning, because each normal stop of the local host ends the emulator in this way.
    """
    installation.send_messages(*(build_message(number) for number in range(3000)))
    endpoint = installation.start_emulator("--exit-with-parent", stdin=subprocess.PIPE)
    endpoint.wait_for_statistics(build_processed_condition(3000))
    endless = "Telemetry | extend k = 1 | join kind=inner (Telemetry | extend k = 1) on k | join kind=inner (Telemetry "
    endless += "| extend k = 1) on k | summarize count()"
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{endpoint.url}/v2/rest/query", json={"csl": endless}, timeout=httpx.Timeout(5, read=0.3))
    assert endpoint.process.stdin is not None
    endpoint.process.stdin.close()
    assert endpoint.process.wait(20) in (0, 1)
    end_process(endpoint.process)
    [line] = [line for line in endpoint.read_log().splitlines() if "standard input has ended" in line]
    assert json.loads(line)["level"] == "INFO"
    again = installation.start_emulator()
    assert again.query_rows("Telemetry | count") == [[3000]]


def test_a_new_emulator_waits_for_the_database_file(installation: Installation) -> None:
    """A new emulator waits until the previous emulator has released the database file."""
    installation.send_messages(build_message(1))
    first = installation.start_emulator()
    first.wait_for_statistics(build_processed_condition(1))
    os.kill(first.process.pid, signal.SIGTERM)
    second = installation.start_emulator()
    assert second.query_rows("Telemetry | count") == [[1]]
    assert end_process(first.process) == 0
