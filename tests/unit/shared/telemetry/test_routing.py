"""Tests of routing events to connections."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry import routing
from shared.telemetry.models import HubEvent
from shared.telemetry.routing import ConnectionRouter
from tests.unit.shared.telemetry.fakes import build_catalog, build_connection, build_event

ROUTER = ConnectionRouter(
    build_catalog(
        build_connection("a-rig", source={"devices": ["rig-*"]}),
        build_connection("b-rig", source={"devices": ["rig-1", "other"], "deviceIdPointer": "/meta/id"}),
        build_connection("off", enabled=False, source={"devices": ["lost-*"]}),
        build_connection("own-hub", source={"eventHub": "press", "consumerGroup": "oi"}),
        build_connection("own-part", source={"eventHub": "shared", "devices": ["left-*"]}),
        build_connection("own-rest", source={"eventHub": "shared"}),
        build_connection("plain"),
        surfaces={"z": ["a-rig"], "cooling": ["a-rig", "plain"]},
    )
)


def _find_connection(source: str, given_event: HubEvent, message: Any) -> str | None:
    route = ROUTER.find_route(source, given_event, message)
    return route.connection if route else None


@pytest.mark.parametrize(
    ("given_event", "message", "expected_connection"),
    [
        (build_event(b"", connectionLookup="plain"), {"deviceId": "rig-1"}, "plain"),
        (build_event(b"", connectionLookup="nothing"), {"deviceId": "rig-1"}, "a-rig"),
        (build_event(b"", device="rig-9"), {"deviceId": "other"}, "a-rig"),
        (build_event(b"", deviceId="rig-9"), {}, "a-rig"),
        (build_event(b""), {"deviceId": "rig-9"}, "a-rig"),
        (build_event(b""), {"meta": {"id": "other"}}, "b-rig"),
        (build_event(b""), {"deviceId": "RIG-9"}, None),
        (build_event(b""), {"deviceId": "rig"}, None),
        (build_event(b""), {"deviceId": 5}, None),
        (build_event(b""), ["rig-1"], None),
        (build_event(b"", device="rig-9"), None, "a-rig"),
        (build_event(b""), {}, None),
        (build_event(b"", deviceId="rig-" + "9" * 253), {}, None),
        (build_event(b""), {"deviceId": "rig-" + "9" * 253}, None),
        (build_event(b"", deviceId="rig-" + "9" * 252), {}, "a-rig"),
    ],
)
def test_an_event_belongs_to_a_named_or_matching_connection(
    given_event: HubEvent, message: object, expected_connection: str | None
) -> None:
    """An event belongs to the connection that it names, or else to one whose pattern matches the device id."""
    assert _find_connection("telemetry", given_event, message) == expected_connection


@pytest.mark.parametrize(
    ("source", "device", "expected_connection"),
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
def test_a_separate_event_hub_determines_the_connection(
    source: str, device: str, expected_connection: str | None
) -> None:
    """Events of a separate Event Hub belong to its connection; if it has several, device id patterns select one."""
    assert _find_connection(source, build_event(b""), {"deviceId": device}) == expected_connection


@pytest.mark.parametrize(
    ("given_event", "expected_connection"),
    [
        (build_event(b"", device="lost-1"), None),
        (build_event(b"", connectionLookup="off"), None),
        (build_event(b"", connectionLookup="off", acceptedBy="http"), "off"),
        (build_event(b"", connectionLookup="off", acceptedBy="simulator"), "off"),
        (build_event(b"", connectionLookup="off", acceptedBy="me"), None),
        (build_event(b"", connectionLookup="off", acceptedBy="http", device="lost-1"), None),
    ],
)
def test_a_disabled_connection_gets_accepted_events_only(
    given_event: HubEvent, expected_connection: str | None
) -> None:
    """A disabled connection gets only events that the service accepted earlier; devices cannot imitate these."""
    assert _find_connection("telemetry", given_event, {}) == expected_connection


def test_a_route_has_the_surfaces_of_its_connection() -> None:
    """A route contains the surfaces of its connection, sorted."""
    route = ROUTER.find_route("telemetry", build_event(b"", device="rig-1"), {})
    assert route is not None
    assert route.surfaces == ("cooling", "z")


@given(st.lists(st.sampled_from(["rig-1", "other", "x", ""]), max_size=30))
def test_the_cache_does_not_change_routes_of_events(devices: list[str]) -> None:
    """Routes from the cache equal routes that are computed, for any size of the cache."""
    remembered, routing.MAX_CACHED = routing.MAX_CACHED, 2
    try:
        router = ConnectionRouter(
            build_catalog(
                build_connection("one", source={"devices": ["rig-*"]}),
                build_connection("two", source={"devices": ["other"]}),
            )
        )
        expected = {"rig-1": "one", "other": "two"}
        for device in devices:
            route = router.find_route("telemetry", build_event(b""), {"deviceId": device})
            assert (route.connection if route else None) == expected.get(device)
    finally:
        routing.MAX_CACHED = remembered
