"""Tests of routing events to connections."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry import routing
from shared.telemetry.models import HubEvent
from shared.telemetry.routing import ConnectionRouter
from tests.unit.shared.telemetry.fakes import catalog, connection, event

ROUTER = ConnectionRouter(
    catalog(
        connection("a-rig", source={"devices": ["rig-*"]}),
        connection("b-rig", source={"devices": ["rig-1", "other"], "deviceIdPointer": "/meta/id"}),
        connection("off", enabled=False, source={"devices": ["lost-*"]}),
        connection("own-hub", source={"eventHub": "press", "consumerGroup": "oi"}),
        connection("own-part", source={"eventHub": "shared", "devices": ["left-*"]}),
        connection("own-rest", source={"eventHub": "shared"}),
        connection("plain"),
        surfaces={"z": ["a-rig"], "cooling": ["a-rig", "plain"]},
    )
)


def _find(source: str, given_event: HubEvent, message: Any) -> str | None:
    route = ROUTER.find_route(source, given_event, message)
    return route.connection if route else None


@pytest.mark.parametrize(
    ("given_event", "message", "found"),
    [
        (event(b"", connectionLookup="plain"), {"deviceId": "rig-1"}, "plain"),
        (event(b"", connectionLookup="nothing"), {"deviceId": "rig-1"}, "a-rig"),
        (event(b"", device="rig-9"), {"deviceId": "other"}, "a-rig"),
        (event(b"", deviceId="rig-9"), {}, "a-rig"),
        (event(b""), {"deviceId": "rig-9"}, "a-rig"),
        (event(b""), {"meta": {"id": "other"}}, "b-rig"),
        (event(b""), {"deviceId": "RIG-9"}, None),
        (event(b""), {"deviceId": "rig"}, None),
        (event(b""), {"deviceId": 5}, None),
        (event(b""), ["rig-1"], None),
        (event(b"", device="rig-9"), None, "a-rig"),
        (event(b""), {}, None),
    ],
)
def test_telemetry_hub(given_event: HubEvent, message: object, found: str | None) -> None:
    """The named connection takes precedence, then patterns on the IoT Hub device id, else on the message's id."""
    assert _find("telemetry", given_event, message) == found


@pytest.mark.parametrize(
    ("source", "device", "found"),
    [
        ("press/oi", "", "own-hub"),
        ("press/oi", "rig-1", "own-hub"),
        ("press/other", "rig-1", "a-rig"),
        ("press/other", "", None),
        ("shared/$Default", "left-1", "own-part"),
        ("shared/$Default", "right-1", "own-rest"),
        ("telemetry", "left-1", None),
    ],
)
def test_separate_event_hub(source: str, device: str, found: str | None) -> None:
    """A separate Event Hub identifies the connection; patterns select among connections of the same hub."""
    assert _find(source, event(b""), {"deviceId": device}) == found


@pytest.mark.parametrize(
    ("given_event", "found"),
    [
        (event(b"", device="lost-1"), None),
        (event(b"", connectionLookup="off"), None),
        (event(b"", connectionLookup="off", acceptedBy="http"), "off"),
        (event(b"", connectionLookup="off", acceptedBy="simulator"), "off"),
        (event(b"", connectionLookup="off", acceptedBy="me"), None),
        (event(b"", connectionLookup="off", acceptedBy="http", device="lost-1"), None),
    ],
)
def test_disabled_connection(given_event: HubEvent, found: str | None) -> None:
    """A disabled connection receives only events that the service accepted earlier; devices cannot forge the marker."""
    assert _find("telemetry", given_event, {}) == found


def test_surfaces() -> None:
    """A route contains the surfaces that own the connection, sorted."""
    route = ROUTER.find_route("telemetry", event(b"", device="rig-1"), {})
    assert route is not None
    assert route.surfaces == ("cooling", "z")


@given(st.lists(st.sampled_from(["rig-1", "other", "x", ""]), max_size=30))
def test_cache_does_not_change_routes(devices: list[str]) -> None:
    """Cached results do not change the routes, for any cache size."""
    remembered, routing.MAX_CACHED = routing.MAX_CACHED, 2
    try:
        router = ConnectionRouter(
            catalog(connection("one", source={"devices": ["rig-*"]}), connection("two", source={"devices": ["other"]}))
        )
        expected = {"rig-1": "one", "other": "two"}
        for device in devices:
            route = router.find_route("telemetry", event(b""), {"deviceId": device})
            assert (route.connection if route else None) == expected.get(device)
    finally:
        routing.MAX_CACHED = remembered
