"""Tests of ingesting batches of hub events, and of the fast conversion of events that the service accepted."""

import asyncio
import base64
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.runtime import Runtime
from shared.telemetry import ingest as module
from shared.telemetry.acceptance import hub_messages_from_body
from shared.telemetry.impulses import decode_impulse, encode_impulse
from shared.telemetry.ingest import TelemetryIngestor, try_encode_accepted_event_as_impulse
from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json
from shared.telemetry.models import HubEvent, Impulse
from shared.telemetry.normalisation import to_impulse
from shared.telemetry.properties import HTTP, build_application_properties
from shared.telemetry.routing import ConnectionRouter
from shared.text_formats.large_json import LongInteger
from tests.unit.shared.telemetry.fakes import (
    CountingPool,
    Hub,
    States,
    build_catalog,
    build_catalog_getter,
    build_connection,
    build_event,
)
from tests.unit.shared.telemetry.json_values import JSON
from tests.virtual_time import VirtualTime

CATALOG = build_catalog(
    build_connection("rig", source={"devices": ["rig-*"], "timestampPointer": "/ts", "messageIdPointer": "/meta/id"}),
    build_connection("press", source={"eventHub": "press"}),
    build_connection("epoch", source={"devices": ["epoch-*"], "timestampFormat": "epochSeconds"}),
    build_connection("off", enabled=False),
    surfaces={"cooling": ["rig"]},
)


class IngestEnvironment:
    """Ingestion with a fake hub and a fake state store."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.states = States()
        self.ingestor = TelemetryIngestor(build_catalog_getter(CATALOG), self.hub, self.states)

    async def ingest(self, *events: HubEvent, source: str = "telemetry") -> list[Impulse]:
        """Ingest a batch and return the impulses that it sent."""
        before = len(self.hub.messages)
        await self.ingestor.run(source, events)
        return [decode_impulse(message.body) for message in self.hub.messages[before:]]


async def test_an_event_becomes_an_impulse() -> None:
    """Pointers select time and ids of an event; the other properties are the payload, and properties become headers."""
    body = b'{"ts":"2026-01-05T07:00:00Z","deviceId":"rig-1","meta":{"id":"m-1","line":3},"Pressure":1.50}'
    (impulse,) = await IngestEnvironment().ingest(build_event(body, line="3", connectionLookup="rig"))
    assert impulse == Impulse(
        message_id="m-1",
        timestamp=datetime(2026, 1, 5, 7, tzinfo=UTC),
        connection="rig",
        surfaces=("cooling",),
        device_id="rig-1",
        headers={"line": "3"},
        payload={"meta": {"line": 3}, "Pressure": 1.5},
    )


async def test_missing_values_come_from_the_hub() -> None:
    """A value that a message lacks is read from the metadata that the hub adds."""
    (impulse,) = await IngestEnvironment().ingest(build_event(b'{"a":1}', 7, device="rig-5"))
    assert (impulse.message_id, impulse.device_id, impulse.payload) == ("0-7", "rig-5", {"a": 1})
    assert impulse.timestamp == build_event(b"", 7).enqueued_at
    (impulse,) = await IngestEnvironment().ingest(build_event(b'{"a":1}', 7), source="press/$Default")
    assert (impulse.connection, impulse.message_id, impulse.device_id) == ("press", "press-0-7", "press")


async def test_event_properties_have_priority_over_message_properties() -> None:
    """An event property has priority over the message's property at a pointer, which then stays in the payload."""
    body = b'{"ts":"2026-01-05T07:00:00Z","deviceId":"rig-1"}'
    (impulse,) = await IngestEnvironment().ingest(
        build_event(body, connectionLookup="rig", timestamp="2020-01-01T00:00:00Z", messageId="p", deviceId="d")
    )
    assert (impulse.timestamp.year, impulse.message_id, impulse.device_id) == (2020, "p", "d")
    assert impulse.payload == orjson.loads(body)


async def test_the_timestamp_format_applies_to_messages_only() -> None:
    """The connection's timestamp format applies to properties of messages; times in event properties are RFC 3339."""
    environment = IngestEnvironment()
    (impulse,) = await environment.ingest(build_event(b'{"timestamp":1767600000.123456,"a":1}', device="epoch-1"))
    assert (impulse.timestamp, impulse.payload) == (datetime(2026, 1, 5, 8, 0, 0, 123456, UTC), {"a": 1})
    (impulse,) = await environment.ingest(build_event(b"{}", device="epoch-1", timestamp="2020-01-01T00:00:00Z"))
    assert impulse.timestamp == datetime(2020, 1, 1, tzinfo=UTC)
    for body in (b'{"timestamp":"2026-01-05T07:00:00Z"}', b'{"timestamp":true}', b'{"timestamp":1767600000123}'):
        (impulse,) = await environment.ingest(build_event(body, device="epoch-1"))
        assert impulse.connection == "_unrouted"
        assert impulse.headers["x-unrouted-reason"].startswith("timestamp: ")


@given(
    st.fixed_dictionaries({}, optional={"ts": st.just("2026-01-05T07:00:00Z"), "deviceId": st.just("d")}),
    st.sampled_from([None, {}, {"id": "m"}, {"id": "m", "line": 1}]),
)
async def test_http_and_hub_messages_give_the_same_time_ids_and_payload(
    message: dict[str, Any], meta: dict[str, Any] | None
) -> None:
    """The same message has the same time, ids and payload over HTTP and as a hub event."""
    message = message if meta is None else message | {"meta": meta}
    source = CATALOG.connections["rig"].value
    body = serialise_lossless_json(message)
    (sent,) = hub_messages_from_body(source, orjson.loads(body), build_event(b"").enqueued_at)
    (over_http,) = await IngestEnvironment().ingest(build_event(sent.body, 1, device="", **sent.properties))
    (as_event,) = await IngestEnvironment().ingest(build_event(body, connectionLookup="rig"))
    assert over_http._replace(message_id=as_event.message_id) == as_event
    if meta and "id" in meta:
        assert over_http.message_id == as_event.message_id


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
async def test_the_payload_is_unchanged(payload: dict[str, Any]) -> None:
    """The payload of any accepted message is unchanged."""
    body = serialise_lossless_json(payload)
    (impulse,) = await IngestEnvironment().ingest(
        build_event(
            body,
            acceptedBy="http",
            connectionLookup="off",
            timestamp="2026-01-05T07:00:00Z",
            messageId="m",
            deviceId="d",
        )
    )
    assert impulse.connection == "off"
    assert repr(impulse.payload) == repr(payload)
    assert impulse.headers == {}


@pytest.mark.parametrize(
    ("body", "reason", "payload"),
    [
        (b'{"deviceId":"x","ts":5}', "no connection matches the event", {"deviceId": "x", "ts": 5}),
        (b'{"deviceId":"rig-1","ts":5}', "timestamp: ", {"deviceId": "rig-1", "ts": 5}),
        (b'{"deviceId":"rig-1","meta":{"id":""}}', "messageId: ", {"deviceId": "rig-1", "meta": {"id": ""}}),
        (b'{"deviceId":"rig-1","ts":"2026-01-05T07:00:00"}', "timestamp: ", None),
        (b"[1]", "the body is not a JSON object", {"raw": "[1]"}),
        (b"1;2;3", "the body is not JSON: ", {"raw": "1;2;3"}),
        (b"", "the body is not JSON: ", {"raw": ""}),
        (b"\xff\x00", "the body is not JSON: ", {"raw": base64.b64encode(b"\xff\x00").decode()}),
    ],
)
async def test_unrouted_events_are_stored_completely(body: bytes, reason: str, payload: dict[str, Any] | None) -> None:
    """An event that is invalid or belongs to no connection is stored completely as ``_unrouted``, with a reason."""
    (impulse,) = await IngestEnvironment().ingest(build_event(body, 3, line="7"))
    assert (impulse.connection, impulse.message_id, impulse.surfaces) == ("_unrouted", "0-3", ())
    assert impulse.headers["x-unrouted-reason"].startswith(reason)
    assert impulse.headers["line"] == "7"
    assert impulse.payload == (orjson.loads(body) if payload is None else payload)


async def test_unrouted_event_contains_its_connection() -> None:
    """If an invalid event belongs to a known connection, its stored form names this connection."""
    (impulse,) = await IngestEnvironment().ingest(build_event(b"{", device="rig-1"))
    assert impulse.headers["x-unrouted-connection"] == "rig"
    assert impulse.device_id == "rig-1"


async def test_invalid_events_do_not_block_a_batch() -> None:
    """If a batch has valid and invalid events, all are sent together and in order."""
    environment = IngestEnvironment()
    good = b'{"deviceId":"rig-1"}'
    impulses = await environment.ingest(build_event(good, 1), build_event(b"\xff", 2), build_event(good, 3))
    assert [impulse.message_id for impulse in impulses] == ["0-1", "0-2", "0-3"]
    assert [name for name, _ in environment.hub.sends] == ["impulses"]
    assert [message.partition_key for message in environment.hub.messages] == ["rig", "_unrouted", "rig"]
    assert environment.states.counts == {"rig": 2, "_unrouted": 1}


@pytest.mark.parametrize("body", [b'{"deviceId":"rig-1","a":"' + b"\\u0001" * 174_000 + b'"}', bytes(1_048_576)])
async def test_large_events_are_split(body: bytes) -> None:
    """An event that is too large for one impulse is divided into parts, from which it can be restored."""
    environment = IngestEnvironment()
    impulses = await environment.ingest(build_event(body, 9))
    assert b"".join(base64.b64decode(impulse.payload["raw"]) for impulse in impulses) == body
    assert [impulse.message_id for impulse in impulses] == [f"0-9.{n + 1}" for n in range(len(impulses))]
    assert [impulse.headers["x-raw-part"] for impulse in impulses][-1] == f"{len(impulses)}/{len(impulses)}"
    assert max(len(message.body) for message in environment.hub.messages) < module.MAX_IMPULSE_BYTES
    assert environment.states.counts == {"_unrouted": 1}


@pytest.mark.parametrize(
    ("body", "properties"),
    [
        (b'{"a":1}', {"note": "\x01" * 200_000}),
        (b'{"a":1}', {"note": "x" * 1_000_000}),
        (b'{"deviceId":"rig-1"}', {"note": "\x01" * 1_000_000}),
        (b'{"deviceId":"rig-1"}', {"x" * 1_000_000: ""}),
        (b"", {"note": "ü" * 500_000}),
        (bytes(300_000), {"note": "x" * 700_000}),
        (bytes(700_000), {"note": "\x01" * 40_000, "deviceId": "\x01" * 256}),
        (b"", {"deviceId": "\x01" * 1_000_000}),
        (b"{}", {"connectionLookup": "\x01" * 500_000, "messageId": "\x01" * 500_000}),
    ],
    ids=range(9),
)
async def test_every_event_fits_into_the_hub(body: bytes, properties: dict[str, str]) -> None:
    """However large the body and the properties of an event are, every message is small enough for the hub."""
    environment = IngestEnvironment()
    await environment.ingest(build_event(body, 9, **properties))
    assert environment.states.counts == {"_unrouted": 1}
    assert max(len(message.body) for message in environment.hub.messages) <= module.MAX_IMPULSE_BYTES


async def test_accepted_events_of_connections_with_many_surfaces_fit_into_the_hub() -> None:
    """If an accepted event is too large for the hub because of its connection's surfaces, it is stored as unrouted."""
    environment = IngestEnvironment()
    surfaces = {f"{number:064}": ["rig"] for number in range(14_000)}
    catalog = build_catalog(build_connection("rig"), surfaces=surfaces)
    environment.ingestor = TelemetryIngestor(build_catalog_getter(catalog), environment.hub, environment.states)
    (impulse,) = await environment.ingest(build_accepted_event(b'{"text":"%b"}' % (b"x" * 200_000)))
    assert (impulse.connection, impulse.headers["x-unrouted-connection"]) == ("_unrouted", "rig")


async def test_unavailable_hub_fails_the_batch() -> None:
    """If the hub is unavailable, the batch fails and its messages are not counted; the next delivery succeeds."""
    environment = IngestEnvironment()
    environment.hub.down = True
    with pytest.raises(WorkspaceError):
        await environment.ingest(build_event(b"{}", device="rig-1"))
    assert environment.states.counts == {}
    environment.hub.down = False
    assert len(await environment.ingest(build_event(b"{}", device="rig-1"))) == 1
    assert environment.states.counts == {"rig": 1}


async def test_a_connection_is_connected_at_its_first_events() -> None:
    """At its first events a connection becomes CONNECTED, unless it is disabled or the events are unrouted."""
    environment = IngestEnvironment()
    for number in range(3):
        await environment.ingest(
            build_event(b"{}", number, device="rig-1"),
            build_event(b"x", number),
            build_event(b"{}", number, connectionLookup="off", acceptedBy="http"),
        )
    assert environment.states.statuses == [("rig", "CONNECTED")]


async def test_the_connections_of_a_batch_become_connected_together() -> None:
    """The connections whose first events are in one batch become CONNECTED by one change, which is reported once."""
    environment, reports = IngestEnvironment(), Counter[str]()
    environment.ingestor = TelemetryIngestor(
        build_catalog_getter(CATALOG),
        environment.hub,
        environment.states,
        on_status=lambda: reports.update(["status"]),
    )
    await environment.ingest(build_event(b"{}", 1, device="rig-1"), build_event(b"{}", 2, device="epoch-1"))
    assert environment.states.statuses == [("epoch", "CONNECTED"), ("rig", "CONNECTED")]
    assert (environment.states.status_changes, reports.total()) == (1, 1)


async def test_one_read_of_statuses_serves_all_batches_for_a_while() -> None:
    """Stored statuses are read at most every 30 seconds, and after a change of the catalog, which can reset them."""
    time, states, catalogs = VirtualTime(), States(), [CATALOG]

    async def get_catalog() -> Catalog:
        return catalogs[-1]

    ingestor = TelemetryIngestor(get_catalog, Hub(), states, runtime=time.runtime)
    for number, device in enumerate(["rig-1", "epoch-1", "rig-1"]):
        await ingestor.run("telemetry", [build_event(b"{}", number, device=device)])
    assert (states.status_reads, states.status_changes) == (1, 2)
    time.advance(module.CONNECTED_REPEAT_SECONDS)
    await ingestor.run("telemetry", [build_event(b"{}", 3, device="rig-1")])
    assert (states.status_reads, states.status_changes) == (2, 2)
    await states.set_status(["rig"], "CONNECTING")
    catalogs.append(replace(CATALOG, version=2))
    await ingestor.run("telemetry", [build_event(b"{}", 4, device="rig-1")])
    assert (states.status_reads, states.statuses[-1]) == (3, ("rig", "CONNECTED"))


async def test_an_empty_batch_sends_nothing() -> None:
    """Ingesting an empty batch sends nothing to the hub."""
    environment = IngestEnvironment()
    assert await environment.ingest() == []
    assert environment.hub.sends == []


STREAM = [
    build_event(body, number, device=device)
    for number, (body, device) in enumerate(
        [(b'{"n":1}', "rig-1"), (b"x", ""), (b'{"meta":{"id":"same"}}', "rig-2"), (b"{}", "lost"), (b"[]", "rig-1")] * 4
    )
]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), max_size=8))
async def test_redelivery_changes_no_impulses_and_counts(rewinds: list[tuple[int, int]]) -> None:
    """However events are divided into batches and delivered again, impulses and counts are the same."""
    environment, reference = IngestEnvironment(), IngestEnvironment()
    expected = await reference.ingest(*STREAM)
    seen: list[Impulse] = []
    reached = 0
    for back_to, size in [*rewinds, (len(STREAM), len(STREAM)), (0, len(STREAM))]:
        start = min(back_to, reached)
        batch = STREAM[start : start + size]
        seen += await environment.ingest(*batch)
        reached = max(reached, start + len(batch))
    unique = {(impulse.connection, impulse.message_id): impulse for impulse in seen}
    assert unique == {(impulse.connection, impulse.message_id): impulse for impulse in expected}
    assert all(impulse in expected for impulse in seen)
    assert environment.states.counts == reference.states.counts
    assert Counter(reference.states.counts) == {"rig": 8, "_unrouted": 12}


async def test_events_of_a_new_hub_are_counted() -> None:
    """If a new hub begins with sequence number 0 again, its events are counted once."""
    environment = IngestEnvironment()
    await environment.ingest(build_event(b"{}", 1000, device="rig-1"))
    at = build_event(b"{}", 2000).enqueued_at
    batch = [
        build_event(b"{}", number, device="rig-1")._replace(enqueued_at=at + timedelta(seconds=number))
        for number in (0, 1)
    ]
    for _ in range(2):
        await environment.ingest(*batch)
    assert environment.states.counts == {"rig": 3}


SIGNALS = [{"name": "pressure", "pointer": "/p", "type": "real"}, {"name": "at", "pointer": "/ts", "type": "bool"}]


async def test_type_mismatches_are_counted_and_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is stored unchanged even if a value has another type than declared; the mismatch is counted once."""
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(module, "count", lambda name, amount: counted.append((name, amount)))
    environment = IngestEnvironment()
    declared = build_catalog(
        build_connection("rig", source={"devices": ["rig-*"], "timestampPointer": "/ts"}, signals=SIGNALS)
    )
    environment.ingestor = TelemetryIngestor(build_catalog_getter(declared), environment.hub, environment.states)
    bodies = [b'{"p":1.5,"ts":"2026-01-05T07:00:00Z"}', b'{"p":"high"}', b'{"q":1}', b'{"p":true}', b"not JSON"]
    events = [build_event(body, number, device="rig-1") for number, body in enumerate(bodies, 1)]
    impulses = await environment.ingest(*events)
    assert [impulse.payload for impulse in impulses[:4]] == [{"p": 1.5}, {"p": "high"}, {"q": 1}, {"p": True}]
    assert environment.states.mismatches == Counter({"rig": 2, "_unrouted": 0})
    assert counted == [("workspace.telemetry.type_mismatches", 2)]
    await environment.ingest(*events)
    assert environment.states.mismatches["rig"] == 2


async def test_connections_without_signals_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a connection declares no signals, its payloads are not checked."""
    monkeypatch.setattr(module, "has_type_mismatch", None)
    assert len(await IngestEnvironment().ingest(build_event(b'{"p":"high"}', device="rig-1"))) == 1


async def test_large_batches_are_processed_in_a_worker_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 16 KiB and more, with properties, are processed in a worker thread, others in the event loop."""
    threads: list[bool] = []
    process = module._process_event

    def record_thread(*arguments: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return process(*arguments)

    monkeypatch.setattr(module, "_process_event", record_thread)
    body = b'{"deviceId":"rig-1","text":"%b"}' % (b"x" * 9_000)
    await IngestEnvironment().ingest(build_event(body))
    await IngestEnvironment().ingest(build_event(body), build_event(body, 2))
    await IngestEnvironment().ingest(build_event(body, text="x" * 9_000))
    assert threads == [True, False, False, False]


async def test_device_patterns_are_compiled_in_a_worker_thread_once_for_a_catalog() -> None:
    """Simultaneous batches share one compilation of the catalog's device patterns, which runs in a worker thread."""
    with CountingPool(1) as pool:
        hub = Hub()
        ingestor = TelemetryIngestor(build_catalog_getter(CATALOG), hub, States(), runtime=Runtime(threads=pool))
        events = [build_event(b"{}", number, device="rig-1") for number in range(4)]
        await asyncio.gather(*(ingestor.run("telemetry", [event]) for event in events))
    assert (pool.jobs, len(hub.messages)) == (1, 4)


async def test_long_integers_are_copied_as_text() -> None:
    """Integers with many digits are copied as text, because converting them to ``int`` takes long."""
    digits = "9" * 4_300
    (impulse,) = await IngestEnvironment().ingest(
        build_event(f'{{"deviceId":"rig-1","v":[{digits},-{digits}]}}'.encode())
    )
    assert [type(value) for value in impulse.payload["v"]] == [LongInteger, LongInteger]
    assert serialise_lossless_json(impulse.payload["v"]) == f"[{digits},-{digits}]".encode()


ROUTER = ConnectionRouter(build_catalog(build_connection("rig"), surfaces={"cooling": ["rig"]}))
AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
PAYLOADS = st.dictionaries(st.text(max_size=8), JSON, max_size=5)
TIMES = st.datetimes(timezones=st.just(UTC))
TEXTS = st.text(min_size=1, max_size=300)


def build_accepted_event(body: bytes, **changes: str) -> HubEvent:
    """Return an event that this service has accepted, with changed properties."""
    return HubEvent(body, "0", 7, AT, build_application_properties("rig", AT, "m-1", "d-1", HTTP) | changes, "", "rig")


def encode_with_general_conversion(event: HubEvent) -> bytes:
    """Return the impulse (stored message) that the general conversion makes of an event."""
    route = ROUTER.find_route("telemetry", event, None)
    assert route is not None
    return encode_impulse(to_impulse("telemetry", event, route, parse_lossless_json(event.body)), event.body)


def encode_with_fast_conversion(event: HubEvent) -> bytes | None:
    """Return the impulse that the fast conversion makes of an event, or None if it does not support it."""
    route = ROUTER.find_route("telemetry", event, None)
    assert route is not None
    return try_encode_accepted_event_as_impulse(event, route)


@given(PAYLOADS, TIMES, TEXTS, TEXTS)
def test_the_fast_and_the_general_conversion_agree(
    payload: dict[str, object], at: datetime, message_id: str, device_id: str
) -> None:
    """If the fast conversion supports an event, it gives the same text as the general conversion."""
    properties = build_application_properties("rig", at, message_id, device_id, HTTP)
    event = HubEvent(serialise_lossless_json(payload), "0", 7, AT, properties, "", "rig")
    text = encode_with_fast_conversion(event)
    assert text is None or text == encode_with_general_conversion(event)


def test_usual_event_is_converted_quickly() -> None:
    """The fast conversion supports an ordinary event that this service has accepted."""
    event = build_accepted_event(b'{"Pressure":1.5}')
    assert encode_with_fast_conversion(event) == encode_with_general_conversion(event)


@pytest.mark.parametrize(
    "event",
    [
        build_accepted_event(b"{}", line="3"),
        build_accepted_event(b"{}", acceptedBy="device"),
        build_accepted_event(b"{}", messageId=""),
        build_accepted_event(b"{}", messageId="x" * 257),
        build_accepted_event(b"{}", deviceId="\ud800"),
        build_accepted_event(b"{}", timestamp="2026-01-05T08:00:00Z"),
        build_accepted_event(b"{}", timestamp="2026-02-30T08:00:00.000000Z"),
        build_accepted_event(b"{}", timestamp="2026-01-05T24:00:00.000000Z"),
        build_accepted_event(b'{"a":' + b"[" * 201 + b"]" * 201 + b"}"),
        build_accepted_event(b'{"a":"' + b"x" * 1_000_000 + b'"}'),
        build_accepted_event(b"{}")._replace(device_id="d-2"),
        build_accepted_event(b"{}")._replace(properties={"connectionLookup": "rig"}),
    ],
)
def test_unusual_events_need_the_general_conversion(event: HubEvent) -> None:
    """The fast conversion rejects events that the service has not accepted, invalid values and deep payloads."""
    assert encode_with_fast_conversion(event) is None
