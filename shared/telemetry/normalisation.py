"""From an event of a known connection to its impulse."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.telemetry.layout import MessageLayout, validate_id
from shared.telemetry.models import TELEMETRY_HUB, HubEvent, Impulse
from shared.telemetry.pointers import Pointer, remove, resolve
from shared.telemetry.properties import DEVICE_ID, MESSAGE_ID, TIMESTAMP, to_headers
from shared.telemetry.routing import Route
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.timestamps import parse_rfc3339, rfc3339

_DERIVED_ID_CHARACTERS = 32
"""128 bits, which do not collide by chance."""


def to_impulse(source: str, event: HubEvent, route: Route, message: dict[str, Any]) -> Impulse:
    """Return an event's impulse; the same for each delivery of the event.

    What stands in the event's properties counts before what a pointer finds; what a pointer found is taken out of
    the message, the rest is the payload.

    Args:
        source: names the hub that the event came from.
        event: the event.
        route: the event's connection.
        message: the event's body; lifted members are removed from it, unless the call fails.

    Raises:
        ValueError: what stands where the timestamp, message id or device id is expected is none.
    """
    layout = route.layout
    lifted: list[Pointer] = []
    timestamp = _timestamp(event, message, layout, lifted)
    message_id = _id(event, MESSAGE_ID, message, layout.message_id, lifted)
    device_id = _id(event, DEVICE_ID, message, layout.device_id, lifted)
    impulse = Impulse(
        message_id=build_event_id(source, event) if message_id is None else message_id,
        timestamp=event.enqueued_at if timestamp is None else timestamp,
        connection=route.connection,
        surfaces=route.surfaces,
        device_id=(event.device_id or route.connection) if device_id is None else device_id,
        headers=to_headers(event.properties),
        payload=message,
    )
    for pointer in lifted:
        remove(message, pointer)
    return impulse


def build_event_id(source: str, event: HubEvent) -> str:
    """Return the id of a message that brought none: where the event stands in which hub."""
    place = f"{event.partition}-{event.sequence_number}"
    return place if source == TELEMETRY_HUB else f"{source.partition('/')[0]}-{place}"


def derive_message_id(connection: str, device: str, timestamp: datetime, payload: Mapping[str, Any]) -> str:
    """Return an id that is the same for the same content, and another one otherwise.

    Args:
        connection: the lookup of the connection.
        device: the device id.
        timestamp: when the source measured.
        payload: a JSON object; the order of its members does not matter.
    """
    text = json.dumps(
        [connection, device, rfc3339(timestamp), payload], sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:_DERIVED_ID_CHARACTERS]


def _timestamp(
    event: HubEvent, message: dict[str, Any], layout: MessageLayout, lifted: list[Pointer]
) -> datetime | None:
    try:
        # The format is that of messages; properties are written as this service writes them.
        stated = event.properties.get(TIMESTAMP)
        if stated:
            return parse_rfc3339(stated)
        value = _lift(message, layout.timestamp, lifted)
        return None if value is None else parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        raise ValueError(f"{TIMESTAMP}: {error}") from None


def _id(event: HubEvent, name: str, message: dict[str, Any], pointer: Pointer, lifted: list[Pointer]) -> str | None:
    value = event.properties.get(name) or _lift(message, pointer, lifted)
    try:
        return None if value is None else validate_id(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _lift(message: dict[str, Any], pointer: Pointer, lifted: list[Pointer]) -> Any:
    value = resolve(message, pointer) if pointer else None
    if value is not None:
        lifted.append(pointer)
    return value
