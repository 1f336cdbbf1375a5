"""Tests of converting a hub event to an impulse."""

from typing import Any

import pytest

from shared.catalog.models import Source
from shared.telemetry.layout import layout_from_source
from shared.telemetry.normalisation import build_message_id_from_position, derive_message_id, to_impulse
from shared.telemetry.routing import Route
from tests.unit.shared.telemetry.fakes import MOMENT, build_event

SOURCE = Source.model_validate({"timestampPointer": "/ts", "messageIdPointer": "/id", "deviceIdPointer": "/device"})
ROUTE = Route("rig", ("cooling",), enabled=True, layout=layout_from_source(SOURCE))


def test_extracted_values_leave_the_payload() -> None:
    """Values at the pointers are moved out of the payload; other properties stay in it."""
    message = {"ts": "2026-01-05T08:00:00Z", "id": "m1", "device": "d1", "value": 1}
    impulse = to_impulse("telemetry", build_event(b""), ROUTE, message)
    assert (impulse.timestamp, impulse.message_id, impulse.device_id) == (MOMENT, "m1", "d1")
    assert (impulse.payload, impulse.connection, impulse.surfaces) == ({"value": 1}, "rig", ("cooling",))


def test_event_properties_have_priority_over_the_message() -> None:
    """An event property has priority over the message's property at a pointer, which then stays in the payload."""
    sent = build_event(b"", messageId="p1", deviceId="p2", timestamp="2026-01-05T08:00:00Z")
    impulse = to_impulse("telemetry", sent, ROUTE, {"id": "m1", "device": "d1", "ts": "not a time"})
    assert (impulse.message_id, impulse.device_id, impulse.timestamp) == ("p1", "p2", MOMENT)
    assert impulse.payload == {"id": "m1", "device": "d1", "ts": "not a time"}


def test_missing_message_values_are_read_from_the_event() -> None:
    """A missing time, message id or device id is replaced with the hub's time, the event's position or the lookup."""
    without, with_device = build_event(b"", 3), build_event(b"", 3, device="iot-1")
    impulse = to_impulse("telemetry", without, ROUTE, {})
    assert (impulse.timestamp, impulse.message_id, impulse.device_id) == (without.enqueued_at, "0-3", "rig")
    assert to_impulse("telemetry", with_device, ROUTE, {}).device_id == "iot-1"
    too_long = build_event(b"", 3, device="d" * 257)
    assert to_impulse("telemetry", too_long, ROUTE, {}).device_id == "rig"


@pytest.mark.parametrize(
    ("message", "reason"),
    [({"id": 7}, "messageId: must be a string"), ({"device": ""}, "deviceId"), ({"ts": "yesterday"}, "timestamp")],
)
def test_a_message_with_an_invalid_value_is_stored_completely(message: dict[str, Any], reason: str) -> None:
    """If a value at a pointer is invalid, the error names it, and the message is stored completely."""
    before = {"ts": "2026-01-05T08:00:00Z", **message}
    sent = dict(before)
    with pytest.raises(ValueError, match=reason):
        to_impulse("telemetry", build_event(b""), ROUTE, sent)
    assert sent == before


@pytest.mark.parametrize(("hub", "message_id"), [("telemetry", "0-7"), ("press", "press-0-7"), ("a/b", "a-0-7")])
def test_derived_ids_of_different_hubs_differ(hub: str, message_id: str) -> None:
    """A message id that is derived from an event's position also contains the hub, because positions repeat."""
    assert build_message_id_from_position(hub, build_event(b"", 7)) == message_id


def test_a_derived_id_depends_on_the_content() -> None:
    """A derived message id depends on connection, device, time and all values, but not on the order of properties."""
    content: tuple[Any, ...] = ("rig", "d1", MOMENT, {"a": 1, "b": [2]})
    same = derive_message_id("rig", "d1", MOMENT, {"b": [2], "a": 1})
    others = {
        derive_message_id("rig2", *content[1:]),
        derive_message_id("rig", "d2", *content[2:]),
        derive_message_id("rig", "d1", build_event(b"").enqueued_at, content[3]),
        derive_message_id("rig", "d1", MOMENT, {"a": 1, "b": [3]}),
    }
    assert derive_message_id(*content) == same
    assert len(others | {same}) == 5
