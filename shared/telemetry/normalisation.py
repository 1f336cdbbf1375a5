"""Conversion of a hub event to an impulse, the normalised telemetry message of its connection."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.telemetry.layout import MessageLayout, is_valid_message_or_device_id, validate_message_or_device_id
from shared.telemetry.models import TELEMETRY_HUB, HubEvent, Impulse
from shared.telemetry.pointers import Pointer, remove_at_pointer, resolve_pointer
from shared.telemetry.properties import DEVICE_ID, MESSAGE_ID, TIMESTAMP, select_impulse_headers
from shared.telemetry.routing import Route
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.text_formats.large_json import long_integer_to_int
from shared.timestamps import format_rfc3339, parse_rfc3339

_DERIVED_ID_CHARACTERS = 32
"""Number of hexadecimal digits: 128 bits, which make random collisions practically impossible."""


def to_impulse(source_name: str, event: HubEvent, route: Route, message: dict[str, Any]) -> Impulse:
    """Convert a hub event to an impulse (normalised telemetry message), the same for each delivery of the event.

    The event's application properties take precedence over JSON Pointers of the connection. Values that these pointers
    select are removed from the message; the remaining properties are the payload.

    Args:
        source_name: ``telemetry`` for the common hub, or ``hub/consumerGroup`` for the Event Hub of a connection.
        event: event to convert.
        route: connection to which the event belongs.
        message: JSON body of the event; extracted values are removed from it, unless the call fails.

    Raises:
        ValueError: if the timestamp, message id or device id is invalid.
    """
    layout = route.layout
    extracted: list[Pointer] = []
    timestamp = _read_timestamp(event, message, layout, extracted)
    message_id = _read_message_or_device_id(event, MESSAGE_ID, message, layout.message_id, extracted)
    device_id = _read_message_or_device_id(event, DEVICE_ID, message, layout.device_id, extracted)
    impulse = Impulse(
        message_id=build_message_id_from_position(source_name, event) if message_id is None else message_id,
        timestamp=event.enqueued_at if timestamp is None else timestamp,
        connection=route.connection,
        surfaces=route.surfaces,
        device_id=_choose_device_id(event, route) if device_id is None else device_id,
        headers=select_impulse_headers(event.properties),
        payload=message,
    )
    for pointer in extracted:
        remove_at_pointer(message, pointer)
    return impulse


def _choose_device_id(event: HubEvent, route: Route) -> str:
    """Return the device id that IoT Hub added to an event if it is valid, else the lookup of the connection."""
    return event.device_id if is_valid_message_or_device_id(event.device_id) else route.connection


def build_message_id_from_position(source_name: str, event: HubEvent) -> str:
    """Build an id for a message without an id, from the hub, partition and sequence number of its event."""
    position = f"{event.partition}-{event.sequence_number}"
    return position if source_name == TELEMETRY_HUB else f"{source_name.partition('/')[0]}-{position}"


def derive_message_id(connection_lookup: str, device_id: str, timestamp: datetime, payload: Mapping[str, Any]) -> str:
    """Compute a message id that depends only on the message's content, so that equal messages have equal ids.

    Args:
        connection_lookup: lookup (id in URLs) of the connection.
        device_id: device id.
        timestamp: time of measurement.
        payload: JSON object; the order of its properties does not matter.
    """
    text = json.dumps(
        [connection_lookup, device_id, format_rfc3339(timestamp), payload],
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=long_integer_to_int,
    )
    return hashlib.sha256(text.encode()).hexdigest()[:_DERIVED_ID_CHARACTERS]


def _read_timestamp(
    event: HubEvent, message: dict[str, Any], layout: MessageLayout, extracted_pointers: list[Pointer]
) -> datetime | None:
    try:
        # The declared format applies to messages only; this service writes properties in RFC 3339.
        property_value = event.properties.get(TIMESTAMP)
        if property_value:
            return parse_rfc3339(property_value)
        value = _extract_value_and_record_pointer(message, layout.timestamp, extracted_pointers)
        return None if value is None else parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        raise ValueError(f"{TIMESTAMP}: {error}") from None


def _read_message_or_device_id(
    event: HubEvent, property_name: str, message: dict[str, Any], pointer: Pointer, extracted_pointers: list[Pointer]
) -> str | None:
    value = event.properties.get(property_name) or _extract_value_and_record_pointer(
        message, pointer, extracted_pointers
    )
    try:
        return None if value is None else validate_message_or_device_id(value)
    except ValueError as error:
        raise ValueError(f"{property_name}: {error}") from None


def _extract_value_and_record_pointer(
    message: dict[str, Any], pointer: Pointer, extracted_pointers: list[Pointer]
) -> Any:
    value = resolve_pointer(message, pointer) if pointer else None
    if value is not None:
        extracted_pointers.append(pointer)
    return value
