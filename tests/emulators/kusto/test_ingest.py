"""From the hub into the table: each message once, whatever happens in between."""

import asyncio
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
from shared.telemetry.impulses import encode
from shared.telemetry.models import IMPULSES_HUB, UNROUTED, HubMessage, Impulse
from tests.emulators.kusto.endpoints import Endpoint, end, start

START = datetime(2026, 1, 1, tzinfo=UTC)


def message(number: int, connection: str = "press", identifier: str | None = None) -> HubMessage:
    """Return a message whose content follows from its number."""
    impulse = Impulse(
        message_id=identifier or f"m-{number}",
        timestamp=START + timedelta(seconds=number),
        connection=connection,
        surfaces=("line-1", "plant"),
        device_id=f"dev-{number % 7}",
        headers={},
        payload={"n": number, "big": 10**25, "text": 'ä"'},
    )
    return HubMessage(encode(impulse), connection, {})


class Plant:
    """A hub, a data folder, and the endpoint that joins them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hub = root / "hub.sqlite"
        self.endpoint: Endpoint | None = None

    def send(self, *messages: HubMessage) -> None:
        """Append messages to the hub."""
        asyncio.run(self._send(messages))

    async def _send(self, messages: tuple[HubMessage, ...]) -> None:
        log = HubWriter(self.hub)
        await log.send(IMPULSES_HUB, messages)
        await log.close()

    def start(self, *arguments: str, **options: Any) -> Endpoint:
        """Start the endpoint."""
        data = ("--data", str(self.root / "kusto"), "--hub", str(self.hub), "--memory-limit", "300MB")
        self.endpoint = start(self.root / "stderr", *data, *arguments, **options)
        return self.endpoint

    def end(self) -> None:
        """End the endpoint in good order."""
        assert self.endpoint is not None
        assert end(self.endpoint.process) == 0, self.endpoint.log()

    def kill(self) -> None:
        """End the endpoint without a warning, as a power cut would."""
        assert self.endpoint is not None
        self.endpoint.process.send_signal(signal.SIGKILL)
        end(self.endpoint.process)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    """A plant whose endpoint is ended with the test."""
    made = Plant(tmp_path)
    yield made
    if made.endpoint is not None and made.endpoint.process.poll() is None:
        end(made.endpoint.process)


def handled(count: int) -> Any:
    """Return a condition: so many events were read from the hub since the endpoint started."""
    return lambda stats: sum(stats["ingest"][key] for key in ("added", "copies", "unrouted", "malformed")) == count


def test_an_impulse_becomes_a_row(plant: Plant) -> None:
    """Every member of an impulse stands in its column, with Kusto's types."""
    plant.send(message(3))
    endpoint = plant.start()
    endpoint.until(handled(1))
    table = endpoint.table("Telemetry")
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


def test_what_comes_later_is_seen_and_the_hub_is_told(plant: Plant) -> None:
    """Events sent to a running endpoint appear, and the consumer group's offset lets the hub trim them."""
    endpoint = plant.start()
    for number in range(5):
        plant.send(message(number, f"c{number}"))
        endpoint.until(handled(number + 1))
    assert endpoint.rows("Telemetry | summarize count(), dcount(ConnectionLookup)") == [[5, 5]]
    reader = HubReader(plant.hub)
    partitions = reader.partitions(IMPULSES_HUB)
    endpoint.until(lambda _: sum(reader.read_offset(IMPULSES_HUB, GROUP, each) for each in partitions) == 5)
    reader.close()
    assert httpx.get(f"{endpoint.url}/healthz").json()["status"] == "ok"


def test_copies_are_dropped_within_and_between_batches(plant: Plant) -> None:
    """The same connection and message id give one row; the same id of another connection is another message."""
    plant.send(message(1), message(1), message(2), message(9, identifier="m-1"), message(1, "other"))
    endpoint = plant.start()
    endpoint.until(handled(5))
    plant.send(message(1), message(2, "other"), message(2))
    stats = endpoint.until(handled(8))
    assert stats["ingest"]["copies"] == 4
    query = "Telemetry | project ConnectionLookup, MessageId, n = tolong(Payload.n) | order by ConnectionLookup, n asc"
    assert sorted(endpoint.rows(query)) == [
        ["other", "m-1", 1],
        ["other", "m-2", 2],
        ["press", "m-1", 1],
        ["press", "m-2", 2],
    ]


def test_an_id_may_come_again_after_a_day(plant: Plant) -> None:
    """What was seen more than 24 hours ago is no copy any more."""
    plant.send(message(1))
    plant.start().until(handled(1))
    plant.end()
    with duckdb.connect(str(plant.root / "kusto" / "telemetry.duckdb")) as database:
        database.execute("UPDATE ingest.seen SET first_seen = first_seen - INTERVAL '24 hours 1 second'")
    plant.send(message(1))
    endpoint = plant.start()
    endpoint.until(handled(1))
    assert endpoint.rows("Telemetry | count") == [[2]]


def test_what_no_connection_claims_stays_out(plant: Plant) -> None:
    """Impulses of the reserved connection are counted and not put into the table."""
    plant.send(message(1, UNROUTED), message(2))
    endpoint = plant.start()
    assert endpoint.until(handled(2))["ingest"]["unrouted"] == 1
    assert endpoint.rows("Telemetry | project ConnectionLookup") == [["press"]]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"ID": 5}', b"[" * 100_000, message(1).body.replace(b"2026", b"20x6")],
    ids=range(8),
)
def test_a_malformed_impulse_is_set_aside_and_blocks_nothing(plant: Plant, body: bytes) -> None:
    """A bad event is kept with its reason; the events around it are in the table."""
    plant.send(message(1), HubMessage(body, "press", {}), message(2))
    endpoint = plant.start()
    assert endpoint.until(handled(3))["ingest"]["malformed"] == 1
    assert endpoint.rows("Telemetry | count") == [[2]]
    end(endpoint.process)
    with duckdb.connect(str(plant.root / "kusto" / "telemetry.duckdb"), read_only=True) as database:
        ((kept, reason),) = database.execute("SELECT body, reason FROM ingest.set_aside").fetchall()
    assert kept == body
    assert reason


def test_each_message_once_after_kills_at_any_point(plant: Plant) -> None:
    """Killing the endpoint again and again while it ingests neither loses a message nor doubles one."""
    total, connections = 60_000, 5
    for first in range(0, total, 5000):
        plant.send(*(message(number, f"c{number % connections}") for number in range(first, first + 5000)))
    moments = random.Random(7)
    for _ in range(8):
        plant.start()
        time.sleep(moments.uniform(0, 0.4))  # chooses where in its work the process dies
        plant.kill()
    endpoint = plant.start()
    endpoint.until(lambda stats: stats["rows"]["Telemetry"] >= total)
    query = "Telemetry | summarize rows = count(), ids = dcount(MessageId), total = sum(tolong(Payload.n))"
    assert endpoint.rows(query) == [[total, total, sum(range(total))]]


def test_the_offset_in_the_table_counts_and_not_the_hubs(plant: Plant) -> None:
    """When the hub has lost the group's offset nothing is read twice, since the table knows how far it is."""
    plant.send(*(message(number) for number in range(10)))
    plant.start().until(handled(10))
    plant.end()
    with sqlite3.connect(plant.hub) as hub:
        hub.execute("DELETE FROM offsets")
    hub.close()
    plant.send(message(10))
    endpoint = plant.start()
    stats = endpoint.until(handled(1))
    assert stats["ingest"] | {"lagSeconds": 0} == {
        "added": 1,
        "copies": 0,
        "unrouted": 0,
        "malformed": 0,
        "failures": 0,
        "lagSeconds": 0,
    }


def test_a_hub_that_begins_anew_is_read_from_its_start(plant: Plant) -> None:
    """When the hub's file was deleted its sequence numbers begin again; nothing of the new hub is skipped."""
    plant.send(*(message(number) for number in range(10)))
    plant.start().until(handled(10))
    plant.end()
    for file in plant.root.glob("hub.sqlite*"):
        file.unlink()
    endpoint = plant.start()
    plant.send(message(10), message(11), message(3))
    stats = endpoint.until(handled(3))
    assert stats["ingest"]["copies"] == 1
    assert endpoint.rows("Telemetry | count") == [[12]]


def test_queries_see_no_half_of_a_batch_and_no_internal_table(plant: Plant) -> None:
    """The bookkeeping tables are out of a query's reach."""
    plant.send(message(1))
    endpoint = plant.start()
    endpoint.until(handled(1))
    for name in ("seen", "offsets", "['ingest.seen']", "['ingest'].seen"):
        assert endpoint.code(name).startswith(("General_BadRequest", "BadRequest_"))


def test_the_endpoint_ends_with_its_parent(plant: Plant) -> None:
    """When standard input ends, the process ends and lets go of the database, though a query runs."""
    plant.send(*(message(number) for number in range(3000)))
    endpoint = plant.start("--exit-with-parent", stdin=subprocess.PIPE)
    endpoint.until(handled(3000))
    endless = "Telemetry | extend k = 1 | join kind=inner (Telemetry | extend k = 1) on k | join kind=inner (Telemetry "
    endless += "| extend k = 1) on k | summarize count()"
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{endpoint.url}/v2/rest/query", json={"csl": endless}, timeout=httpx.Timeout(5, read=0.3))
    assert endpoint.process.stdin is not None
    endpoint.process.stdin.close()
    assert endpoint.process.wait(20) in (0, 1)
    end(endpoint.process)
    again = plant.start()
    assert again.rows("Telemetry | count") == [[3000]]


def test_a_successor_waits_for_the_file(plant: Plant) -> None:
    """An endpoint that starts while its predecessor still holds the file waits for it."""
    plant.send(message(1))
    first = plant.start()
    first.until(handled(1))
    os.kill(first.process.pid, signal.SIGTERM)
    second = plant.start()
    assert second.rows("Telemetry | count") == [[1]]
    assert end(first.process) == 0
