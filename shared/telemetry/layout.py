"""JSON Pointers to timestamp, message id and device id in a connection's messages."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeGuard

from shared.catalog.models import Source, TimestampFormat
from shared.telemetry.pointers import Pointer, parse_pointer

MAX_ID_CHARACTERS: Final = 256


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Parsed JSON Pointers to the fields of a connection's messages.

    An empty pointer means that the field is not read from the message.

    Attributes:
        timestamp: pointer to the time of measurement.
        message_id: pointer to the message id.
        device_id: pointer to the device id.
        timestamp_format: format of the timestamp.
    """

    timestamp: Pointer
    message_id: Pointer
    device_id: Pointer
    timestamp_format: TimestampFormat


def layout_from_source(source: Source) -> MessageLayout:
    """Parse the JSON Pointers in the ``source`` of a connection."""
    return _build_layout(
        source.timestamp_pointer, source.message_id_pointer, source.device_id_pointer, source.timestamp_format
    )


@lru_cache(maxsize=4096)
def _build_layout(
    timestamp_pointer: str, message_id_pointer: str, device_id_pointer: str, timestamp_format: TimestampFormat
) -> MessageLayout:
    # Cached, because each HTTP request needs the layout of its connection.
    return MessageLayout(
        parse_pointer(timestamp_pointer),
        parse_pointer(message_id_pointer),
        parse_pointer(device_id_pointer),
        timestamp_format,
    )


DEFAULT_LAYOUT: Final = layout_from_source(Source())


def is_valid_message_or_device_id(value: object) -> TypeGuard[str]:
    """Return whether a value is a valid message id or device id: a string of 1 to 256 characters."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS


def validate_message_or_device_id(value: object) -> str:
    """Check that a value is a valid message id or device id, and return the value.

    Raises:
        ValueError: if the value is not a string of 1 to 256 characters.
    """
    if is_valid_message_or_device_id(value):
        return value
    raise ValueError(f"must be a string of 1 to {MAX_ID_CHARACTERS} characters")
