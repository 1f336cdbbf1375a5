"""Tests of the application properties of events."""

from datetime import UTC, datetime

from shared.telemetry.properties import (
    HTTP,
    build_application_properties,
    is_accepted_by_service,
    select_impulse_headers,
)

PROPERTIES = build_application_properties("rig", datetime(2026, 1, 1, tzinfo=UTC), "m-1", "rig-1", HTTP)


def test_properties_name_connection_time_and_ids() -> None:
    """The properties of an event contain the connection, the time and the ids; the body of the event does not."""
    assert PROPERTIES == {
        "connectionLookup": "rig",
        "timestamp": "2026-01-01T00:00:00.000000Z",
        "messageId": "m-1",
        "deviceId": "rig-1",
        "acceptedBy": "http",
    }


def test_only_events_with_a_valid_accepted_by_count_as_accepted() -> None:
    """An event counts as accepted only if its property ``acceptedBy`` is HTTP or a simulator."""
    assert is_accepted_by_service(PROPERTIES)
    assert is_accepted_by_service({"acceptedBy": "simulator"})
    assert not is_accepted_by_service({"acceptedBy": "device"})
    assert not is_accepted_by_service({})


def test_event_properties_without_a_target_become_headers() -> None:
    """Event properties without a corresponding property in the impulse become headers of the impulse."""
    assert select_impulse_headers({**PROPERTIES, "batch": "7"}) == {"batch": "7"}
    assert select_impulse_headers({"batch": "7"}) == {"batch": "7"}
