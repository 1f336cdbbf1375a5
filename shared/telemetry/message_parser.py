"""Parsing of telemetry that callers post: one JSON message, an array of messages, or NDJSON lines."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from shared.errors import FieldError, Kind, WorkspaceError, build_invalid_field_error, build_invalid_fields_error
from shared.telemetry.json_text import serialise_lossless_json
from shared.telemetry.layout import MessageLayout, validate_message_or_device_id
from shared.telemetry.pointers import Pointer, format_pointer, remove_at_pointer, resolve_pointer
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.text_formats.strict_json import count_arrays_and_objects, parse_json

MAX_MESSAGES = 500
MAX_LINES = 5_000
"""Maximum number of messages in one request in NDJSON form."""

MAX_LINES_CONTAINERS = 1_000_000
"""Maximum number of arrays and objects in all lines of a request. A single line has the lower limit of a JSON body."""

MAX_MESSAGE_BYTES = 256 * 1024
_MAX_LINES_WITH_EMPTY = 2 * MAX_LINES
_MAX_LINE_BYTES = 4 * MAX_MESSAGE_BYTES
"""Maximum length of a line before it is parsed; spaces and escapes can make a line longer than its message."""

_MAX_LINE_ERRORS = 100
_BATCH_PROPERTY = "metrics"
_OR_ARRAY = f" or an array of 1 to {MAX_MESSAGES} JSON objects"
_MISSING = object()


class AcceptedMessage(NamedTuple):
    """Valid telemetry message of a request.

    The class is a tuple, because the creation of a frozen dataclass takes three times as long.

    Attributes:
        timestamp: extracted timestamp; None if absent.
        message_id: extracted message id; None if absent.
        device_id: extracted device id; None if absent.
        payload: the remaining properties as JSON text.
        position: position in the request for error messages: ``[3]``, ``line 3``, or empty for a single message.
    """

    timestamp: datetime | None
    message_id: str | None
    device_id: str | None
    payload: bytes
    position: str = ""


def parse_messages(
    body: object, layout: MessageLayout, collected_errors: list[FieldError] | None = None
) -> list[AcceptedMessage]:
    """Parse and validate one telemetry message or an array of 1 to 500 messages.

    Args:
        body: JSON body of the request; extracted values, such as the timestamp, are removed from it.
        layout: JSON Pointers to timestamp and ids in the connection's messages.
        collected_errors: list that receives the errors of invalid messages, which are then missing in the result; None
            to raise an error for them.

    Raises:
        WorkspaceError: TOO_LARGE ``MESSAGE_TOO_LARGE`` for a message over 256 KiB; INVALID with every invalid field,
            written as ``[index].property`` for messages of an array.
    """
    messages = body if isinstance(body, list) else [body]
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise build_invalid_field_error(
            "body", f"must be one message or an array of 1 to {MAX_MESSAGES} messages, not {len(messages)}"
        )
    _reject_telegraf_batch(body, layout)
    errors: list[FieldError] = [] if collected_errors is None else collected_errors
    positions = [f"[{index}]" for index in range(len(messages))] if isinstance(body, list) else [""]
    parsed = [
        _parse_message(message, layout, message_position, errors)
        for message, message_position in zip(messages, positions, strict=True)
    ]
    if errors and collected_errors is None:
        raise build_invalid_fields_error(errors)
    return [message for message in parsed if message is not None]


def parse_ndjson_messages(
    ndjson: bytes, layout: MessageLayout, collected_errors: list[FieldError] | None = None
) -> list[AcceptedMessage]:
    """Parse and validate 1 to 5,000 telemetry messages in NDJSON form, one JSON object per line.

    Args:
        ndjson: lines in UTF-8, separated by LF or CR LF; empty lines are skipped.
        layout: JSON Pointers to timestamp and ids in the connection's messages.
        collected_errors: list that receives the errors of invalid messages, which are then missing in the result; None
            to raise an error for them.

    Raises:
        WorkspaceError: TOO_LARGE ``MESSAGE_TOO_LARGE`` for a message over 256 KiB; INVALID with the first 100
            errors, whose fields are ``line N`` or ``line N.property``; INVALID naming ``body`` if the text has over
            1,000,000 arrays and objects.
    """
    _check_array_and_object_count(ndjson)
    errors: list[FieldError] = [] if collected_errors is None else collected_errors
    messages: list[AcceptedMessage | None] = []
    for number, line in _iterate_line_numbers_and_lines(ndjson):
        if len(messages) == MAX_LINES:
            raise build_invalid_field_error(
                f"line {number}", f"is one message too many; send at most {MAX_LINES} messages in a request"
            )
        messages.append(_parse_line(line, layout, f"line {number}", errors))
        if len(errors) >= _MAX_LINE_ERRORS:
            break
    del errors[_MAX_LINE_ERRORS:]
    if errors and collected_errors is None:
        raise build_invalid_fields_error(errors)
    if not messages:
        raise build_invalid_field_error("body", f"must have 1 to {MAX_LINES} lines with a message each")
    return [message for message in messages if message is not None]


def _check_array_and_object_count(ndjson: bytes) -> None:
    """Reject NDJSON text that contains so many arrays and objects that parsing all lines would take seconds."""
    if ndjson.count(b"[") + ndjson.count(b"{") <= MAX_LINES_CONTAINERS:
        return
    # Brackets and quotation marks are the same bytes in Latin-1, which can decode every text.
    if sum(map(count_arrays_and_objects, ndjson.decode("latin-1").split("\n"))) > MAX_LINES_CONTAINERS:
        raise build_invalid_field_error(
            "body", f"must have at most {MAX_LINES_CONTAINERS} arrays and objects; send fewer lines"
        )


def _iterate_line_numbers_and_lines(ndjson: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each NDJSON line that is not empty."""
    start, number = 0, 1
    while start < len(ndjson):
        end = ndjson.find(b"\n", start)
        end = len(ndjson) if end < 0 else end
        if number > _MAX_LINES_WITH_EMPTY:
            raise build_invalid_field_error(
                "body", f"must have at most {_MAX_LINES_WITH_EMPTY} lines, including empty ones"
            )
        line = ndjson[start:end].strip(b" \t\r")
        if line:
            yield number, line
        start, number = end + 1, number + 1


def _parse_line(
    line: bytes, layout: MessageLayout, message_position: str, errors: list[FieldError]
) -> AcceptedMessage | None:
    if len(line) > _MAX_LINE_BYTES:
        raise _build_message_too_large_error(message_position)
    try:
        message = parse_json(line, keeps_long_integers=True)
    except ValueError as error:
        errors.append(FieldError(message_position, _describe_json_error(error)))
        return None
    if wrapped := _find_telegraf_batch_error(message, layout):
        errors.append(FieldError(message_position, f"{wrapped}; send each of the objects on a line of its own"))
        return None
    return _parse_message(message, layout, message_position, errors)


def _describe_json_error(error: ValueError) -> str:
    """Return the error message for a line that is not JSON.

    The parser's line number is omitted, because it is always 1. The error's field name states the line in the body.
    """
    return str(error).replace(" at line 1 column ", " at column ")


def _reject_telegraf_batch(body: object, layout: MessageLayout) -> None:
    if wrapped := _find_telegraf_batch_error(body, layout):
        raise build_invalid_field_error(
            _BATCH_PROPERTY,
            f"{wrapped}; to send each object as a message, send only the array: "
            "[{...}, ...]; to send a single message, put the whole object into an array: [{...}]",
        )


def _find_telegraf_batch_error(body: object, layout: MessageLayout) -> str | None:
    """Return the error text if a body is a batch of Telegraf, the object ``{"metrics": [...]}``; else None.

    The batch would be stored as one message with the time of receipt, and the times in its array would become payload.
    Any other object is a message.
    """
    if not isinstance(body, dict) or body.keys() != {_BATCH_PROPERTY}:
        return None
    metrics = body[_BATCH_PROPERTY]
    if not isinstance(metrics, list) or not metrics or not all(map(_is_telegraf_metric, metrics)):
        return None
    if any(pointer[:1] == (_BATCH_PROPERTY,) for pointer in (layout.timestamp, layout.message_id, layout.device_id)):
        return None
    return f"contains an array of {len(metrics)} metrics of Telegraf"


def _is_telegraf_metric(value: object) -> bool:
    """Return whether a JSON value has the properties that Telegraf's serialiser ``json`` writes for a metric."""
    return isinstance(value, dict) and {"fields", "name", "tags", "timestamp"} <= value.keys()


def _parse_message(
    message: Any, layout: MessageLayout, message_position: str, errors: list[FieldError]
) -> AcceptedMessage | None:
    if not isinstance(message, dict):
        errors.append(
            FieldError(message_position or "body", "must be a JSON object" + ("" if message_position else _OR_ARRAY))
        )
        return None
    before = len(errors)
    timestamp = _extract_timestamp(message, layout, message_position, errors)
    message_id = _extract_message_or_device_id(message, layout.message_id, message_position, errors)
    device_id = _extract_message_or_device_id(message, layout.device_id, message_position, errors)
    payload = _extract_payload(message, layout, message_position, errors)
    return (
        AcceptedMessage(timestamp, message_id, device_id, payload, message_position) if len(errors) == before else None
    )


def _extract_payload(
    message: dict[str, Any], layout: MessageLayout, message_position: str, errors: list[FieldError]
) -> bytes:
    try:
        if len(serialise_lossless_json(message)) > MAX_MESSAGE_BYTES:
            raise _build_message_too_large_error(message_position)
        for pointer in (layout.timestamp, layout.message_id, layout.device_id):
            # Most pointers select a top-level property, and this runs for every message.
            if len(pointer) == 1:
                message.pop(pointer[0], None)
            else:
                remove_at_pointer(message, pointer)
        # The serialiser returns a short text in a memory block of 1 KiB; the copy, which is stored, has only its size.
        return b"%b" % serialise_lossless_json(message)
    except ValueError as error:
        errors.append(FieldError(message_position or "body", str(error)))
        return b""


def _extract_timestamp(
    message: dict[str, Any], layout: MessageLayout, message_position: str, errors: list[FieldError]
) -> datetime | None:
    value = resolve_pointer(message, layout.timestamp, _MISSING) if layout.timestamp else _MISSING
    if value is _MISSING:
        return None
    try:
        return parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        errors.append(build_field_error(message_position, layout.timestamp, error))
        return None


def _extract_message_or_device_id(
    message: dict[str, Any], pointer: Pointer, message_position: str, errors: list[FieldError]
) -> str | None:
    # Most pointers select a top-level property, and this runs for every message.
    if len(pointer) == 1:
        value = message.get(pointer[0], _MISSING)
    else:
        value = resolve_pointer(message, pointer, _MISSING) if pointer else _MISSING
    if value is _MISSING:
        return None
    try:
        return validate_message_or_device_id(value)
    except ValueError as error:
        errors.append(build_field_error(message_position, pointer, error))
        return None


def build_field_error(message_position: str, pointer: Pointer, rule: object) -> FieldError:
    """Build an error about the value that a pointer selects in a message.

    Args:
        message_position: position of the message in the request, such as ``[3]``; empty for a single message.
        pointer: JSON Pointer to the value.
        rule: rule that the value breaks.
    """
    field = ".".join(filter(None, (message_position, *pointer)))
    return FieldError(field, f"{rule} (pointer {format_pointer(pointer)})")


def _build_message_too_large_error(message_position: str) -> WorkspaceError:
    rule = f"has more than {MAX_MESSAGE_BYTES} bytes when it is stored as compact JSON"
    return WorkspaceError(
        Kind.TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        f"{_describe_message_position(message_position)} {rule}; split it into smaller messages.",
        maxBytes=MAX_MESSAGE_BYTES,
        errors=[{"field": message_position or "body", "message": rule}],
    )


def _describe_message_position(message_position: str) -> str:
    """Return the start of an error sentence: the position of a message, such as "Message [3] of the array"."""
    if message_position.startswith("["):
        return f"Message {message_position} of the array"
    return message_position.capitalize() or "The message"
