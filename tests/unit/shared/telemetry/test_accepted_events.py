"""Tests of the fast conversion of events that this service has accepted, compared with the general conversion."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.accepted_events import encode_accepted_event
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.json_text import parse, serialise
from shared.telemetry.models import HubEvent
from shared.telemetry.normalisation import to_impulse
from shared.telemetry.properties import HTTP, build_properties
from shared.telemetry.routing import ConnectionRouter
from tests.unit.shared.telemetry.fakes import build_catalog, build_connection
from tests.unit.shared.telemetry.json_values import JSON

ROUTER = ConnectionRouter(build_catalog(build_connection("rig"), surfaces={"cooling": ["rig"]}))
AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
PAYLOADS = st.dictionaries(st.text(max_size=8), JSON, max_size=5)
TIMES = st.datetimes(timezones=st.just(UTC))
TEXTS = st.text(min_size=1, max_size=300)


def build_event(body: bytes, **changes: str) -> HubEvent:
    """Return an event that this service has accepted, with changed properties."""
    return HubEvent(body, "0", 7, AT, build_properties("rig", AT, "m-1", "d-1", HTTP) | changes, "", "rig")


def encode_generally(event: HubEvent) -> bytes:
    """Return the impulse to which the general conversion converts an event."""
    route = ROUTER.find_route("telemetry", event, None)
    assert route is not None
    return encode_impulse(to_impulse("telemetry", event, route, parse(event.body)), event.body)


def encode_quickly(event: HubEvent) -> bytes | None:
    """Return the impulse to which the fast conversion converts an event; None if it does not support the event."""
    route = ROUTER.find_route("telemetry", event, None)
    assert route is not None
    return encode_accepted_event(event, route)


@given(PAYLOADS, TIMES, TEXTS, TEXTS)
def test_both_conversions_agree(payload: dict[str, object], at: datetime, message_id: str, device_id: str) -> None:
    """For each event that the fast conversion supports, both conversions return the same text."""
    properties = build_properties("rig", at, message_id, device_id, HTTP)
    event = HubEvent(serialise(payload), "0", 7, AT, properties, "", "rig")
    text = encode_quickly(event)
    assert text is None or text == encode_generally(event)


def test_usual_event_is_converted_quickly() -> None:
    """An ordinary event that this service has accepted is supported by the fast conversion."""
    event = build_event(b'{"Pressure":1.5}')
    assert encode_quickly(event) == encode_generally(event)


@pytest.mark.parametrize(
    "event",
    [
        build_event(b"{}", line="3"),
        build_event(b"{}", acceptedBy="device"),
        build_event(b"{}", messageId=""),
        build_event(b"{}", messageId="x" * 257),
        build_event(b"{}", deviceId="\ud800"),
        build_event(b"{}", timestamp="2026-01-05T08:00:00Z"),
        build_event(b"{}", timestamp="2026-02-30T08:00:00.000000Z"),
        build_event(b"{}", timestamp="2026-01-05T24:00:00.000000Z"),
        build_event(b'{"a":' + b"[" * 201 + b"]" * 201 + b"}"),
        build_event(b'{"a":"' + b"x" * 300_000 + b'"}'),
        build_event(b"{}")._replace(device_id="d-2"),
        build_event(b"{}")._replace(properties={"connectionLookup": "rig"}),
    ],
)
def test_other_events_need_the_general_conversion(event: HubEvent) -> None:
    """The fast conversion does not support events of unknown senders, with invalid values, or with deep payloads."""
    assert encode_quickly(event) is None
