"""Application properties of events, which describe their body."""

from collections.abc import Mapping
from datetime import datetime

from shared.timestamps import rfc3339

CONNECTION_LOOKUP = "connectionLookup"
TIMESTAMP = "timestamp"
MESSAGE_ID = "messageId"
DEVICE_ID = "deviceId"
ACCEPTED_BY = "acceptedBy"

HTTP = "http"
SIMULATOR = "simulator"
_ACCEPTORS = frozenset({HTTP, SIMULATOR})
_EXTRACTED = frozenset({CONNECTION_LOOKUP, TIMESTAMP, MESSAGE_ID, DEVICE_ID, ACCEPTED_BY})


def build_properties(
    connection: str, timestamp: datetime, message_id: str, device_id: str, accepted_by: str
) -> dict[str, str]:
    """Return the properties of a message whose body is only the payload."""
    return {
        CONNECTION_LOOKUP: connection,
        TIMESTAMP: rfc3339(timestamp),
        MESSAGE_ID: message_id,
        DEVICE_ID: device_id,
        ACCEPTED_BY: accepted_by,
    }


def is_accepted_by_service(properties: Mapping[str, str]) -> bool:
    """Return whether the service accepted the message while its connection was enabled."""
    return properties.get(ACCEPTED_BY) in _ACCEPTORS


def to_headers(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties that become headers of an impulse: those without another member in it."""
    if properties.keys().isdisjoint(_EXTRACTED):
        return properties
    return {name: value for name, value in properties.items() if name not in _EXTRACTED}
