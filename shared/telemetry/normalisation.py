"""Conversion of an event to the impulse of its connection."""

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
"""128 bits, which are sufficient against random collisions."""


def to_impulse(source: str, event: HubEvent, route: Route, message: dict[str, Any]) -> Impulse:
    """Return the impulse of an event; the same for each delivery of the event.

    The event's properties take precedence over pointers. Values that pointers select are removed from the message, and
    the rest is the payload.

    Args:
        source: hub of the event.
        event: the event.
        route: connection of the event.
        message: body of the event; extracted members are removed from it, unless the call fails.

    Raises:
        ValueError: if the timestamp, message id or device id is invalid.
    """
    layout = route.layout
    extracted: list[Pointer] = []
    timestamp = _read_timestamp(event, message, layout, extracted)
    message_id = _read_id(event, MESSAGE_ID, message, layout.message_id, extracted)
    device_id = _read_id(event, DEVICE_ID, message, layout.device_id, extracted)
    impulse = Impulse(
        message_id=build_event_id(source, event) if message_id is None else message_id,
        timestamp=event.enqueued_at if timestamp is None else timestamp,
        connection=route.connection,
        surfaces=route.surfaces,
        device_id=(event.device_id or route.connection) if device_id is None else device_id,
        headers=to_headers(event.properties),
        payload=message,
    )
    for pointer in extracted:
        remove(message, pointer)
    return impulse


def build_event_id(source: str, event: HubEvent) -> str:
    """Return the id of a message without one: its hub, partition and sequence number."""
    position = f"{event.partition}-{event.sequence_number}"
    return position if source == TELEMETRY_HUB else f"{source.partition('/')[0]}-{position}"


def derive_message_id(connection: str, device: str, timestamp: datetime, payload: Mapping[str, Any]) -> str:
    """Return an id that depends only on the content of a message.

    Args:
        connection: lookup of the connection.
        device: device id.
        timestamp: time of measurement.
        payload: a JSON object; the order of its members does not matter.
    """
    text = json.dumps(
        [connection, device, rfc3339(timestamp), payload], sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:_DERIVED_ID_CHARACTERS]


def _read_timestamp(
    event: HubEvent, message: dict[str, Any], layout: MessageLayout, extracted: list[Pointer]
) -> datetime | None:
    try:
        # The declared format applies to messages only; this service writes properties in RFC 3339.
        property_value = event.properties.get(TIMESTAMP)
        if property_value:
            return parse_rfc3339(property_value)
        value = _extract(message, layout.timestamp, extracted)
        return None if value is None else parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        raise ValueError(f"{TIMESTAMP}: {error}") from None


def _read_id(
    event: HubEvent, name: str, message: dict[str, Any], pointer: Pointer, extracted: list[Pointer]
) -> str | None:
    value = event.properties.get(name) or _extract(message, pointer, extracted)
    try:
        return None if value is None else validate_id(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _extract(message: dict[str, Any], pointer: Pointer, extracted: list[Pointer]) -> Any:
    value = resolve(message, pointer) if pointer else None
    if value is not None:
        extracted.append(pointer)
    return value
