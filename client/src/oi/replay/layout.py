"""Positions of timestamp, message id and device id in the messages of a data connection."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TIMESTAMP_FORMATS = ("rfc3339", "epochSeconds", "epochMilliseconds")
"""Formats of timestamps that a connection can declare."""
MAX_ID_CHARACTERS = 256
"""Maximum length of a message id or device id."""
Pointer = tuple[str, ...]
"""Path to a property of a message: the names of the nested properties, outermost first; empty for no property."""


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Data connection that receives the rows of a replay, with the positions of metadata in its messages.

    Attributes:
        connection: short name of the connection in URLs (lookup).
        timestamp: names of the nested properties that lead to the time of measurement.
        message_id: names of the nested properties that lead to the message id.
        device_id: names of the nested properties that lead to the device id; empty if messages have none.
        timestamp_format: format of the time, one of ``TIMESTAMP_FORMATS``.

    Raises:
        ValueError: the position of timestamp or message id is empty, or one position is within another.
    """

    connection: str
    timestamp: Pointer = ("timestamp",)
    message_id: Pointer = ("messageId",)
    device_id: Pointer = ("deviceId",)
    timestamp_format: str = "rfc3339"

    def __post_init__(self) -> None:
        """Reject positions that are empty, equal or nested in each other."""
        if not self.timestamp or not self.message_id:
            raise ValueError(f"{self.connection}: the JSON pointers to timestamp and message id must not be empty")
        pointers = [each for each in self.metadata_pointers if each]
        for one in pointers:
            if sum(other[: len(one)] == one for other in pointers) > 1:
                raise ValueError(
                    f"{self.connection}: two JSON pointers overlap at {format_json_pointer(one)}; "
                    "use separate properties"
                )

    @property
    def metadata_pointers(self) -> Sequence[Pointer]:
        """Positions of message id, device id and timestamp in the messages, in this order."""
        return self.message_id, self.device_id, self.timestamp


def build_replay_target(connection: str, connection_source: Mapping[str, Any]) -> ReplayTarget:
    """Build the target of a replay from the definition of a connection.

    Args:
        connection: short name of the connection in URLs (lookup).
        connection_source: property ``source`` of the connection's definition; missing properties get their defaults.

    Raises:
        ValueError: a JSON pointer or the timestamp format is invalid.

    Example:
        >>> build_replay_target("rig", {"timestampPointer": "/head/at"}).timestamp
        ('head', 'at')
    """
    form = connection_source.get("timestampFormat", "rfc3339")
    if form not in TIMESTAMP_FORMATS:
        raise ValueError(f"{connection}: timestampFormat must be one of {', '.join(TIMESTAMP_FORMATS)}, not {form!r}")
    return ReplayTarget(
        connection,
        parse_json_pointer(connection_source.get("timestampPointer", "/timestamp")),
        parse_json_pointer(connection_source.get("messageIdPointer", "/messageId")),
        parse_json_pointer(connection_source.get("deviceIdPointer", "/deviceId")),
        form,
    )


def parse_json_pointer(text: str) -> Pointer:
    """Split a JSON pointer (RFC 6901) into its property names.

    Raises:
        ValueError: the text is not a JSON pointer.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError(f"the JSON pointer {text!r} must begin with /")
    if re.search(r"~(?![01])", text):
        raise ValueError(f"in the JSON pointer {text!r}, each ~ must be written ~0, and each / in a name ~1")
    # The order matters: ~01 must become ~1 (RFC 6901 section 4).
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/"))


def format_json_pointer(pointer: Pointer) -> str:
    """Format the names of nested properties as a JSON pointer (RFC 6901).

    Example:
        >>> format_json_pointer(("a/b", "c"))
        '/a~1b/c'
    """
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in pointer)
