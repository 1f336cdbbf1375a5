"""Which connection an event belongs to, compiled once per catalog version."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from shared.catalog.models import Connection
from shared.catalog.snapshot import Catalog
from shared.telemetry.layout import MessageLayout, layout_from_source
from shared.telemetry.models import HubEvent
from shared.telemetry.pointers import Pointer, resolve
from shared.telemetry.properties import CONNECTION_LOOKUP, DEVICE_ID, is_accepted_by_service

MAX_REMEMBERED = 10_000
MAX_DEVICE_ID = 256


@dataclass(frozen=True, slots=True)
class Route:
    """What ingest needs of a connection.

    Attributes:
        connection: its lookup.
        surfaces: the surfaces that own it, sorted.
        enabled: whether it claims events.
        layout: where its messages hold what is lifted out of them.
    """

    connection: str
    surfaces: tuple[str, ...]
    enabled: bool
    layout: MessageLayout


class ConnectionRouter:
    """Finds the connection of events, deterministically: the first in the order of lookups wins.

    Args:
        catalog: the connections, as of one version.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.version = catalog.version
        connections = [catalog.connections[lookup].value for lookup in sorted(catalog.connections)]
        self._routes = {each.lookup: _route(each, catalog.surfaces_of(each.lookup)) for each in connections}
        claiming = [each for each in connections if each.enabled]
        self._by_device = self._claims([each for each in claiming if not each.source.event_hub and each.source.devices])
        self._by_hub: dict[str, _Claims] = {}
        for source in {_own_hub(each) for each in claiming if each.source.event_hub}:
            self._by_hub[source] = self._claims([each for each in claiming if _own_hub(each) == source])

    def is_enabled(self, connection: str) -> bool:
        """Return whether there is such a connection and it is enabled."""
        route = self._routes.get(connection)
        return route is not None and route.enabled

    def find(self, source: str, event: HubEvent, message: Any) -> Route | None:
        """Return the route of an event, None when no connection claims it.

        Args:
            source: ``telemetry``, or ``hub/consumerGroup`` for an Event Hub of its own.
            event: the event.
            message: its body as JSON value; anything but an object names no device.
        """
        named = self._named(event)
        if named is not None:
            return named
        own = self._by_hub.get(source)
        found = own.first(event, message) if own else None
        return found or self._by_device.first(event, message)

    def _named(self, event: HubEvent) -> Route | None:
        route = self._routes.get(event.properties.get(CONNECTION_LOOKUP, ""))
        if route is None or route.enabled:
            return route
        # A device sets its own properties, so behind an IoT Hub the marker proves nothing.
        return route if is_accepted_by_service(event.properties) and not event.device_id else None

    def _claims(self, connections: Sequence[Connection]) -> "_Claims":
        return _Claims([(each, self._routes[each.lookup]) for each in connections])


class _Claims:
    """Device globs of several connections, tried in order; answers are remembered per device."""

    def __init__(self, connections: Sequence[tuple[Connection, Route]]) -> None:
        self._pointers = list(dict.fromkeys(route.layout.device_id for _, route in connections))
        self._claims = [
            (self._pointers.index(route.layout.device_id), _pattern(each.source.devices), route)
            for each, route in connections
        ]
        self._remembered: dict[tuple[str, ...], Route | None] = {}

    def first(self, event: HubEvent, message: Any) -> Route | None:
        """Return the first connection whose globs match the event's device."""
        if not self._claims:
            return None
        stated = event.device_id or event.properties.get(DEVICE_ID, "")
        devices = (stated,) if stated else tuple(_device(message, pointer) for pointer in self._pointers)
        if devices not in self._remembered:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[devices] = self._search(devices)
        return self._remembered[devices]

    def _search(self, devices: tuple[str, ...]) -> Route | None:
        for place, pattern, route in self._claims:
            if pattern is None or pattern.match(devices[min(place, len(devices) - 1)]):
                return route
        return None


def _device(message: Any, pointer: Pointer) -> str:
    device = resolve(message, pointer) if pointer else None
    return device if isinstance(device, str) and len(device) <= MAX_DEVICE_ID else ""


def _pattern(globs: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(translate(glob) for glob in globs)) if globs else None


def _own_hub(connection: Connection) -> str:
    return f"{connection.source.event_hub}/{connection.source.consumer_group}"


def _route(connection: Connection, surfaces: tuple[str, ...]) -> Route:
    return Route(
        connection=connection.lookup,
        surfaces=surfaces,
        enabled=connection.enabled,
        layout=layout_from_source(connection.source),
    )
