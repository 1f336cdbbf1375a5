"""Routing of hub events to connections, with rules that are compiled once per catalog version."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.auth.device_patterns import compile_device_patterns
from shared.catalog.models import Connection
from shared.catalog.snapshot import Catalog
from shared.telemetry.layout import MessageLayout, layout_from_source
from shared.telemetry.models import HubEvent
from shared.telemetry.pointers import Pointer, resolve_pointer
from shared.telemetry.properties import CONNECTION_LOOKUP, DEVICE_ID, is_accepted_by_service
from shared.telemetry.signals import SignalCheck, build_signal_checks

MAX_CACHED = 10_000
MAX_DEVICE_ID = 256


@dataclass(frozen=True, slots=True)
class Route:
    """Connection to which hub events are routed, with the data that ingestion needs.

    Attributes:
        connection: lookup (id in URLs) of the connection.
        surfaces: sorted lookups (ids in URLs) of the surfaces (groups of connections) that contain the connection.
        enabled: True if the connection accepts events.
        layout: JSON Pointers to timestamp and ids in the connection's messages.
        signal_checks: type checks for the signals (payload values) that the connection declares.
    """

    connection: str
    surfaces: tuple[str, ...]
    enabled: bool
    layout: MessageLayout
    signal_checks: tuple[SignalCheck, ...] = ()


class ConnectionRouter:
    """Finds the connection of a hub event; if several match, the first in alphabetical order of lookups (ids in URLs).

    Args:
        catalog: workspace catalog with the connections.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.version = catalog.version
        connections = [catalog.connections[lookup].value for lookup in sorted(catalog.connections)]
        self._routes = {
            each.lookup: _build_connection_route(each, catalog.list_surface_lookups_of_connection(each.lookup))
            for each in connections
        }
        enabled = [each for each in connections if each.enabled]
        self._by_device = self._build_device_patterns(
            [each for each in enabled if not each.source.event_hub and each.source.devices]
        )
        self._by_hub: dict[str, _DevicePatterns] = {}
        for source in {_get_hub_source_name(each) for each in enabled if each.source.event_hub}:
            self._by_hub[source] = self._build_device_patterns(
                [each for each in enabled if _get_hub_source_name(each) == source]
            )

    def is_enabled(self, connection_lookup: str) -> bool:
        """Return whether a connection with this lookup (id in URLs) exists and is enabled."""
        route = self._routes.get(connection_lookup)
        return route is not None and route.enabled

    def find_route(self, source_name: str, event: HubEvent, message: Any) -> Route | None:
        """Return the route to the connection of a hub event; None if the event matches no connection.

        Args:
            source_name: ``telemetry`` for the common hub, or ``hub/consumerGroup`` for the Event Hub of a connection.
            event: event whose connection is wanted.
            message: body of the event as JSON value; only an object can contain a device id.
        """
        named = self._find_route_by_connection_property(event)
        if named is not None:
            return named
        own = self._by_hub.get(source_name)
        found = own.find_route(event, message) if own else None
        return found or self._by_device.find_route(event, message)

    def _find_route_by_connection_property(self, event: HubEvent) -> Route | None:
        route = self._routes.get(event.properties.get(CONNECTION_LOOKUP, ""))
        if route is None or route.enabled:
            return route
        # Devices set their own properties, so the marker is not trusted for events of an IoT Hub.
        return route if is_accepted_by_service(event.properties) and not event.device_id else None

    def _build_device_patterns(self, connections: Sequence[Connection]) -> "_DevicePatterns":
        return _DevicePatterns([(each, self._routes[each.lookup]) for each in connections])


class _DevicePatterns:
    """Device id patterns of several connections, tried in order; the result for each device is cached."""

    def __init__(self, connections: Sequence[tuple[Connection, Route]]) -> None:
        self._pointers = list(dict.fromkeys(route.layout.device_id for _, route in connections))
        places = {pointer: place for place, pointer in enumerate(self._pointers)}
        self._patterns = [
            (places[route.layout.device_id], _compile_device_patterns(each), route) for each, route in connections
        ]
        self._cache: dict[tuple[str, ...], Route | None] = {}

    def find_route(self, event: HubEvent, message: Any) -> Route | None:
        """Return the route of the first connection whose patterns match the event's device."""
        if not self._patterns:
            return None
        device_id = _replace_too_long_id_by_empty_text(event.device_id or event.properties.get(DEVICE_ID, ""))
        devices = (
            (device_id,) if device_id else tuple(_resolve_device_id(message, pointer) for pointer in self._pointers)
        )
        # Batches are processed in several threads, each of which can clear the cache.
        try:
            return self._cache[devices]
        except KeyError:
            found = self._find_route_by_device_ids(devices)
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[devices] = found
        return found

    def _find_route_by_device_ids(self, device_ids: tuple[str, ...]) -> Route | None:
        for place, pattern, route in self._patterns:
            if pattern is None or pattern.match(device_ids[min(place, len(device_ids) - 1)]):
                return route
        return None


def _resolve_device_id(message: Any, pointer: Pointer) -> str:
    device = resolve_pointer(message, pointer) if pointer else None
    return _replace_too_long_id_by_empty_text(device) if isinstance(device, str) else ""


def _replace_too_long_id_by_empty_text(device_id: str) -> str:
    """Return a device id; an empty text if it is too long to be valid, because the cache must not store large texts."""
    return device_id if len(device_id) <= MAX_DEVICE_ID else ""


def _compile_device_patterns(connection: Connection) -> re.Pattern[str] | None:
    """Compile the device id patterns of a connection to one expression; None if the connection accepts all devices."""
    return compile_device_patterns(connection.source.devices) if connection.source.devices else None


def _get_hub_source_name(connection: Connection) -> str:
    return f"{connection.source.event_hub}/{connection.source.consumer_group}"


def _build_connection_route(connection: Connection, surface_lookups: tuple[str, ...]) -> Route:
    """Build the route to a connection, which belongs to the surfaces (groups of connections) ``surface_lookups``."""
    return Route(
        connection=connection.lookup,
        surfaces=surface_lookups,
        enabled=connection.enabled,
        layout=layout_from_source(connection.source),
        signal_checks=build_signal_checks(connection.signals),
    )
