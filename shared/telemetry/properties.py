"""Application properties of hub events, such as the id and the timestamp of the message."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from shared.timestamps import format_rfc3339

CONNECTION_LOOKUP = "connectionLookup"
TIMESTAMP = "timestamp"
MESSAGE_ID = "messageId"
DEVICE_ID = "deviceId"
ACCEPTED_BY = "acceptedBy"

HTTP = "http"
SIMULATOR = "simulator"
_ACCEPTORS = frozenset({HTTP, SIMULATOR})
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_EXTRACTED = frozenset({CONNECTION_LOOKUP, TIMESTAMP, MESSAGE_ID, DEVICE_ID, ACCEPTED_BY})


def build_application_properties(
    connection_lookup: str, timestamp: datetime, message_id: str, device_id: str, accepted_by: str
) -> dict[str, str]:
    """Build the application properties (ids, timestamp) of a hub message, whose body contains only the payload.

    ``accepted_by`` is ``HTTP`` or ``SIMULATOR``: the part of this service that accepted the message.
    """
    return {
        CONNECTION_LOOKUP: connection_lookup,
        TIMESTAMP: format_rfc3339(timestamp),
        MESSAGE_ID: message_id,
        DEVICE_ID: device_id,
        ACCEPTED_BY: accepted_by,
    }


def is_accepted_by_service(properties: Mapping[str, str]) -> bool:
    """Return whether a message came to the event hub through this service, by HTTP or from a simulator.

    This service accepts messages only for enabled connections.
    """
    return properties.get(ACCEPTED_BY) in _ACCEPTORS


def has_timestamp_and_ids(properties: Mapping[str, str]) -> bool:
    """Return whether an event's properties contain timestamp, message id and device id.

    The body is then only the payload.
    """
    return bool(properties.get(TIMESTAMP) and properties.get(MESSAGE_ID) and properties.get(DEVICE_ID))


def has_exactly_service_properties(properties: Mapping[str, str]) -> bool:
    """Return whether an event has exactly the properties that this service writes.

    Further properties would become headers of the impulse (normalised telemetry message).
    """
    return properties.keys() == _EXTRACTED and is_accepted_by_service(properties)


def select_impulse_headers(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the event properties that become headers of the impulse: all except ids, timestamp and ``acceptedBy``."""
    if properties.keys() <= _EXTRACTED:
        return _NO_HEADERS
    return {name: value for name, value in properties.items() if name not in _EXTRACTED}
