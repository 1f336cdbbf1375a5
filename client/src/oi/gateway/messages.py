"""Conversion of a received message to an NDJSON line, the form in which the service accepts telemetry."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from oi.batches import is_telegraf_batch
from oi.counts import format_count
from oi.gateway.routes import Fields, MessageTarget
from oi.json_text import JsonTextError, encode_json, get_value_at_pointer_part, parse_json, split_json_pointer

MAX_BYTES = 256 * 1024
"""Maximum size of a message, as the service accepts it."""

_NUMBER = re.compile(r"-?[0-9]{1,32}+(?:\.[0-9]{1,32}+)?+", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"epochSeconds": 1_000_000, "epochMilliseconds": 1_000}
"""Number of microseconds in one unit of a time that counts from 1970, by the time format."""
_MISSING: Any = object()
_DEFAULT = Fields()


class RejectedError(ValueError):
    """A received message cannot be sent to the service, because it is invalid.

    Args:
        reason: short code of the reason for metrics, such as ``not_json``.
        detail: one sentence that explains the reason.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def build_ndjson_line(
    payload: bytes, target: MessageTarget, received_unix_seconds: float, create_id: Callable[[], str]
) -> bytes:
    """Convert a message to an NDJSON line with the properties ``messageId``, ``timestamp`` and ``deviceId``.

    Args:
        payload: bytes of the message, a JSON object.
        target: data connection and device to which the message belongs.
        received_unix_seconds: time of receipt in seconds since 1970, used for a message without a timestamp.
        create_id: returns a new id, used for a message without an id.

    Raises:
        RejectedError: the message is not a JSON object, is too large, has invalid metadata, or is a batch of Telegraf.
    """
    if len(payload) > MAX_BYTES:
        raise RejectedError("too_large", f"The message has {len(payload):,} bytes; the maximum is {MAX_BYTES:,}.")
    message = _parse_json_object(payload)
    _check_not_telegraf_batch(message, target.fields)
    added = _pop_metadata(message, target.fields)
    if target.device is not None:
        added["deviceId"] = target.device
    changes = target.fields != _DEFAULT or any(name in message for name in added) or b"\n" in payload
    if "messageId" not in message and "messageId" not in added:
        added["messageId"] = create_id()
    if "timestamp" not in message and "timestamp" not in added:
        added["timestamp"] = format_unix_seconds_as_rfc3339(received_unix_seconds)
    line = (
        _encode_ndjson_line({**message, **added})
        if changes
        else _insert_properties_into_json_text(payload, added, is_empty=not message)
    )
    if len(line) > MAX_BYTES:
        raise RejectedError("too_large", f"The message with its metadata has more than {MAX_BYTES:,} bytes.")
    return line


def format_unix_seconds_as_rfc3339(seconds: float) -> str:
    """Format a time in seconds since 1970 as RFC 3339 text in UTC."""
    return _format_instant(datetime.fromtimestamp(seconds, UTC))


def _format_instant(instant: datetime) -> str:
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _parse_json_object(payload: bytes) -> dict[str, Any]:
    try:
        message = parse_json(payload.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RejectedError("not_json", f"The message is not UTF-8 at byte {error.start}.") from None
    except JsonTextError as error:
        raise RejectedError("not_json", f"The message is not valid JSON: {error}.") from None
    if not isinstance(message, dict):
        raise RejectedError("not_json", "The message is not a JSON object.")
    return message


def _check_not_telegraf_batch(message: dict[str, Any], fields: Fields) -> None:
    """Check that a message is no batch of Telegraf, unless the route reads metadata from the array of metrics.

    The service rejects such a batch only without the properties that the gateway adds. It would store the batch as one
    message with the time of receipt.
    """
    pointers = (fields.timestamp, fields.message_id, fields.device_id)
    if is_telegraf_batch(message) and not any(pointer and pointer.startswith("/metrics/") for pointer in pointers):
        detail = (
            f"The message is a batch of Telegraf with {format_count(len(message['metrics']), 'metric')}; "
            "let Telegraf publish each metric as a message of its own."
        )
        raise RejectedError("telegraf_batch", detail)


def _insert_properties_into_json_text(payload: bytes, added: dict[str, Any], *, is_empty: bool) -> bytes:
    """Insert properties at the start of a JSON object's text; ``is_empty`` is True for an object without properties."""
    text = payload.strip()
    if not added:
        return text + b"\n"
    head = encode_json(added)[:-1]
    return head + (b"" if is_empty else b",") + text[1:] + b"\n"


def _encode_ndjson_line(message: dict[str, Any]) -> bytes:
    try:
        return encode_json(message) + b"\n"
    except JsonTextError as error:
        raise RejectedError("not_json", f"The message is not valid JSON: {error}.") from None


def _pop_metadata(message: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Remove the metadata that the JSON pointers in ``fields`` select from a message.

    Return the removed values by the service's property names, such as ``deviceId``, with the time as RFC 3339.

    Raises:
        RejectedError: a value is not valid metadata, or the payload has a property with the name of metadata.
    """
    pointers = _map_extracted_names_to_pointers(fields)
    # All values are read before one is removed, because two pointers may select the same property.
    values = {name: _get_value_at_pointer_or_missing(message, pointer) for name, pointer in pointers.items()}
    for pointer in pointers.values():
        _remove_value_at_pointer(message, pointer)
    added: dict[str, Any] = {}
    for name, value in values.items():
        if value is _MISSING:
            continue
        if name == "timestamp":
            added[name] = _convert_time_to_rfc3339(value, fields.timestamp_format, pointers[name])
        elif isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise RejectedError("metadata", f"The {name} at {pointers[name]} must be an integer or a non-empty text.")
        else:
            added[name] = str(value)
    _check_metadata_names_unused(message, fields)
    return added


def _map_extracted_names_to_pointers(fields: Fields) -> dict[str, str]:
    """Return the JSON pointers of the metadata to extract, such as ``{"deviceId": "/head/rig"}``.

    The gateway extracts each of ``messageId``, ``deviceId`` and ``timestamp`` for which the route has a pointer. It
    leaves the other metadata in the message, where the service finds it, with two exceptions:

    - A ``timestamp`` whose format is not RFC 3339 is extracted, because it is converted.
    - If one property is the source of two values, the gateway extracts both. It removes extracted properties from the
      message, so the service would not find the second value there.
    """
    pointers = {"messageId": fields.message_id, "deviceId": fields.device_id, "timestamp": fields.timestamp}
    selected = {pointer for pointer in pointers.values() if pointer is not None}
    if fields.timestamp_format != "rfc3339":
        selected.add("/timestamp")
    complete = {name: pointer or f"/{name}" for name, pointer in pointers.items()}
    return {name: pointer for name, pointer in complete.items() if pointer in selected}


def _check_metadata_names_unused(payload: dict[str, Any], fields: Fields) -> None:
    """Check that a payload has no property with a name that the gateway uses for metadata, such as ``timestamp``."""
    pointers = {"messageId": fields.message_id, "deviceId": fields.device_id, "timestamp": fields.timestamp}
    for name, pointer in pointers.items():
        if pointer not in {None, f"/{name}"} and name in payload:
            rule = f"The payload must not have the property {name}, because the route reads this value at {pointer}."
            raise RejectedError("metadata", rule)


def _convert_time_to_rfc3339(value: Any, time_format: str, pointer: str) -> str:
    invalid = RejectedError("metadata", f"The value at {pointer} is not a time in the format {time_format}.")
    if time_format == "rfc3339":
        if isinstance(value, str):
            return value
        raise invalid
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise invalid
    # The service, too, cuts off digits beyond microseconds; repr() of a double restores the decimal of the message.
    exact = Fraction(repr(value) if isinstance(value, float) else value) * _MICROSECONDS[time_format]
    try:
        return _format_instant(_EPOCH + timedelta(microseconds=exact.numerator // exact.denominator))
    except OverflowError:
        raise invalid from None


def _get_value_at_pointer_or_missing(message: dict[str, Any], pointer: str) -> Any:
    place: Any = message
    for part in split_json_pointer(pointer):
        place = get_value_at_pointer_part(place, part, _MISSING)
    return place


def _remove_value_at_pointer(message: dict[str, Any], pointer: str) -> None:
    """Remove the property that a JSON pointer selects.

    An element of an array is not removed, because the other elements would move.
    """
    *parents, last = split_json_pointer(pointer)
    place: Any = message
    for part in parents:
        place = get_value_at_pointer_part(place, part, _MISSING)
    if isinstance(place, dict):
        place.pop(last, None)
