"""Tests of the stored form of events that are invalid or belong to no connection."""

import json
from base64 import b64decode
from typing import Any

import pytest

from shared.telemetry.models import HubEvent, Impulse
from shared.telemetry.unrouted import (
    CLAIMED_BY,
    ENCODING,
    PART,
    PART_BYTES,
    PROPERTIES_PART,
    REASON,
    build_unrouted_impulse,
    parse_json_or_none,
    split_into_unrouted_impulses,
)
from tests.unit.shared.telemetry.fakes import build_event


def test_an_unrouted_object_is_stored_unchanged() -> None:
    """An unrouted JSON object is stored unchanged; headers contain the reason and the connection in the event."""
    impulse = build_unrouted_impulse("telemetry", build_event(b"", line="3"), {"a": 1}, "no device", "rig")
    assert (impulse.connection, impulse.payload) == ("_unrouted", {"a": 1})
    assert impulse.headers == {"line": "3", REASON: "no device", CLAIMED_BY: "rig"}


@pytest.mark.parametrize(
    ("body", "encoding", "raw"),
    [(b"plain", "utf-8", "plain"), (b"[1]", "utf-8", "[1]"), (b"\xff\x00", "base64", "/wA="), (b"", "utf-8", "")],
)
def test_a_body_that_is_not_json_is_stored_as_text(body: bytes, encoding: str, raw: str) -> None:
    """A body that is not JSON is stored without loss, as text or, if it is not UTF-8, as base64."""
    impulse = build_unrouted_impulse("telemetry", build_event(body), parse_json_or_none(body), "not an object", "")
    assert (impulse.payload, impulse.headers[ENCODING]) == ({"raw": raw}, encoding)
    assert CLAIMED_BY not in impulse.headers


@pytest.mark.parametrize(
    ("properties", "device", "expected"),
    [
        ({}, "", "_unrouted"),
        ({"deviceId": "p"}, "", "p"),
        ({"deviceId": "p"}, "iot", "iot"),
        ({"deviceId": "p" * 257}, "", "_unrouted"),
        ({"deviceId": "p"}, "i" * 257, "p"),
    ],
)
def test_the_device_id_of_iot_hub_has_priority(properties: dict[str, str], device: str, expected: str) -> None:
    """The id from IoT Hub, which cannot be forged, has priority over the property; longer ids are not used."""
    impulse = build_unrouted_impulse("telemetry", build_event(b"", 1, device=device, **properties), {}, "x", "")
    assert impulse.device_id == expected


def test_a_large_unrouted_event_is_stored_in_parts() -> None:
    """A large event is stored in numbered parts with an id each; the parts together contain the event."""
    body = bytes(range(256)) * (2 * PART_BYTES // 256) + b"end"
    parts = list(split_into_unrouted_impulses("telemetry", build_event(body, 9), "too large", ""))
    assert [part.headers[PART] for part in parts] == ["1/3", "2/3", "3/3"]
    assert [part.message_id for part in parts] == ["0-9.1", "0-9.2", "0-9.3"]
    assert b"".join(b64decode(str(part.payload["raw"])) for part in parts) == body


def test_small_properties_are_headers_of_each_part() -> None:
    """Each part of a large event has the event's application properties as headers if they are small."""
    event = build_event(bytes(PART_BYTES + 1), line="x" * (PART_BYTES - 20))
    assert [part.headers["line"] for part in split(event)] == [event.properties["line"]] * 2


@pytest.mark.parametrize("body", [b"", b"x", bytes(PART_BYTES + 1)])
def test_large_properties_are_stored_in_parts(body: bytes) -> None:
    """Large application properties are stored in parts of their own, from which they can be restored."""
    event = build_event(body, 9, line="\x01ü" * 50_000, deviceId="p")
    parts = split(event)
    bodies = [part for part in parts if PART in part.headers]
    properties = [part for part in parts if PROPERTIES_PART in part.headers]
    assert bodies + properties == parts
    assert b"".join(map(decode, bodies)) == body
    assert json.loads(b"".join(map(decode, properties))) == event.properties
    assert [part.headers[PROPERTIES_PART] for part in properties] == ["1/3", "2/3", "3/3"]
    assert [part.message_id for part in properties] == ["0-9.p1", "0-9.p2", "0-9.p3"]
    for part in parts:
        assert (part.device_id, part.headers[REASON], part.headers[CLAIMED_BY]) == ("p", "too large", "rig")
        assert "line" not in part.headers


def split(event: HubEvent) -> list[Impulse]:
    """Return the parts of a large event."""
    return list(split_into_unrouted_impulses("telemetry", event, "too large", "rig"))


def decode(part: Impulse) -> bytes:
    """Return the bytes that a part contains."""
    return b64decode(str(part.payload["raw"]))


@pytest.mark.parametrize(("body", "value"), [(b'{"a":1}', {"a": 1}), (b"7", 7), (b"{", None), (b"\xff", None)])
def test_a_body_that_is_not_json_is_parsed_to_none(body: bytes, value: Any) -> None:
    """A body that is not JSON is parsed to None, and its bytes are stored."""
    assert parse_json_or_none(body) == value
