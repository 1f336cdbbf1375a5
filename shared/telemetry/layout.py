"""Where a connection's messages hold their timestamp, message id and device id."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from shared.catalog.models import Source, TimestampFormat
from shared.telemetry.pointers import Pointer, compile_pointer

MAX_ID_CHARACTERS: Final = 256


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """The pointers of a connection, compiled; an empty pointer names nothing.

    Attributes:
        timestamp: where messages say when they were measured.
        message_id: where they hold their id.
        device_id: where they name their device.
        timestamp_format: how they write the timestamp.
    """

    timestamp: Pointer
    message_id: Pointer
    device_id: Pointer
    timestamp_format: TimestampFormat


def layout_from_source(source: Source) -> MessageLayout:
    """Return the layout of a connection's messages."""
    return _layout(
        source.timestamp_pointer, source.message_id_pointer, source.device_id_pointer, source.timestamp_format
    )


@lru_cache(maxsize=4096)
def _layout(timestamp: str, message_id: str, device_id: str, timestamp_format: TimestampFormat) -> MessageLayout:
    # Cached because each request over HTTP needs the layout of its connection.
    return MessageLayout(
        compile_pointer(timestamp), compile_pointer(message_id), compile_pointer(device_id), timestamp_format
    )


DEFAULT_LAYOUT: Final = layout_from_source(Source())


def validate_id(value: object) -> str:
    """Return a message id or device id.

    Raises:
        ValueError: the value is not a string of 1 to 256 characters.
    """
    if isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS:
        return value
    raise ValueError(f"a string of 1 to {MAX_ID_CHARACTERS} characters is expected")
