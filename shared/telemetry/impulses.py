"""JSON text of an impulse (a normalised telemetry message) on the hub, in the live stream and in the archive."""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json
from shared.telemetry.models import Impulse
from shared.timestamps import format_rfc3339, parse_rfc3339, to_unix_microseconds

SOURCE = "DataConnection"
_BEFORE_PAYLOAD: Final = b']},"Payload":'
"""Text before the payload. No string contains it, because JSON escapes quotation marks, and no header is an array."""

_FORM: Final = (
    b'{"ID":%b,"Timestamp":"%b","Source":"DataConnection","Subject":%b,"Headers":%b,"Metadata":%b,"Payload":%b}'
)
_OWN_NAMES: Final = ("ID", "Timestamp", "Source", "Subject")
_BEFORE_HEADERS: Final = b',"Headers":'
_LONGEST_CACHED: Final = 4_096
_SHALLOW: Final = 200
"""Number of brackets up to which a payload cannot be nested too deeply."""


class ImpulseTexts(NamedTuple):
    """Impulse (normalised telemetry message) whose JSON values are texts, as the archive stores them.

    Attributes:
        message_id: as in :class:`Impulse`; the same applies to ``device_id`` and ``connection``.
        microseconds: time of measurement in microseconds since 1970.
        payload: JSON object.
        headers: JSON object of strings.
        surfaces: JSON array of strings.
    """

    message_id: str
    microseconds: int
    device_id: str
    payload: bytes
    headers: bytes
    surfaces: bytes
    connection: str


def encode_impulse(impulse: Impulse, payload_json: bytes | None = None) -> bytes:
    """Serialise an impulse (normalised telemetry message) as UTF-8 JSON text; integers of any size are exact.

    Args:
        impulse: message to serialise.
        payload_json: the payload as compact JSON text, if known; it is then copied instead of serialised again.

    Raises:
        ValueError: if the payload or the headers cannot be represented in JSON.
    """
    if payload_json is None or not is_payload_shallow(payload_json):
        payload_json = serialise_lossless_json(dict(impulse.payload))
        parse_lossless_json(b'{"Payload":%b}' % payload_json)
    return _FORM % (
        serialise_lossless_json(impulse.message_id),
        format_rfc3339(impulse.timestamp).encode(),
        serialise_lossless_json(impulse.device_id),
        serialise_lossless_json(dict(impulse.headers)) if impulse.headers else b"{}",
        _encode_impulse_metadata(impulse.connection, impulse.surfaces),
        payload_json,
    )


def encode_impulse_from_texts(
    message_id: str,
    timestamp: str,
    device_id: str,
    connection_lookup: str,
    surface_lookups: tuple[str, ...],
    payload_json: bytes,
) -> bytes:
    """Serialise an impulse without headers from the texts of its parts, with the same result as :func:`encode_impulse`.

    Args:
        message_id: as in :class:`Impulse`.
        timestamp: time of measurement, as :func:`format_rfc3339` writes it.
        device_id: as in :class:`Impulse`.
        connection_lookup: as in :class:`Impulse`.
        surface_lookups: as in :class:`Impulse`.
        payload_json: the payload as compact JSON text; it must satisfy :func:`is_payload_shallow`, or be the payload of
            an impulse that was encoded before.

    Raises:
        ValueError: if an id cannot be represented in JSON.
    """
    common = _encode_impulse_metadata(connection_lookup, surface_lookups)
    return _FORM % (
        serialise_lossless_json(message_id),
        timestamp.encode(),
        _encode_device_id(device_id),
        b"{}",
        common,
        payload_json,
    )


def is_payload_shallow(payload_json: bytes) -> bool:
    """Return True if a payload's JSON text has so few brackets that it cannot be nested too deeply for the parser."""
    return payload_json.count(b"{") + payload_json.count(b"[") <= _SHALLOW


@lru_cache(maxsize=1024)
def _encode_impulse_metadata(connection_lookup: str, surface_lookups: tuple[str, ...]) -> bytes:
    return serialise_lossless_json({"ConnectionLookup": connection_lookup, "SurfaceLookups": list(surface_lookups)})


@lru_cache(maxsize=1024)
def _encode_device_id(device_id: str) -> bytes:
    """Serialise the id of a device; it is cached, because a device sends many messages."""
    return serialise_lossless_json(device_id)


def decode_impulse(impulse_json: bytes) -> Impulse:
    """Parse an impulse (normalised telemetry message) from its JSON text; unknown properties are ignored.

    Raises:
        ValueError: if the text is not JSON or not an impulse; the message names the invalid property.
    """
    members = _require_object(parse_lossless_json(impulse_json), "impulse")
    metadata = _require_object(members.get("Metadata"), "Metadata")
    if members.get("Source") != SOURCE:
        raise ValueError(f"Source: must be {SOURCE}")
    try:
        timestamp = parse_rfc3339(_require_string(members, "Timestamp"))
    except ValueError as error:
        raise ValueError(f"Timestamp: {error}") from None
    return Impulse(
        message_id=_require_string(members, "ID"),
        timestamp=timestamp,
        connection=_require_string(metadata, "ConnectionLookup"),
        surfaces=_require_string_list(metadata.get("SurfaceLookups"), "SurfaceLookups"),
        device_id=_require_string(members, "Subject"),
        headers=_require_headers(members.get("Headers")),
        payload=_require_object(members.get("Payload"), "Payload"),
    )


def parse_impulse_texts(impulse_json: bytes) -> ImpulseTexts:
    """Parse the JSON text of an impulse, except for the payload: its text is copied, because it is the largest part.

    Raises:
        ValueError: as :func:`decode_impulse`.
    """
    head, _, rest = impulse_json.partition(_BEFORE_PAYLOAD)
    own, _, common = head.partition(_BEFORE_HEADERS)
    payload = rest[:-1]
    # A line feed would break files with one message a line; this service writes none.
    if common and rest.endswith(b"}}") and payload.startswith(b"{") and b"\n" not in payload:
        try:
            orjson.loads(payload)
            # Without headers, all messages of a connection have the same text here.
            is_cached = common.startswith(b"{}") and len(common) < _LONGEST_CACHED
            read_common = _read_cached_common if is_cached else _parse_headers_surfaces_and_connection
            return ImpulseTexts(
                *_parse_message_id_microseconds_and_device_id(own + b"}"), payload, *read_common(common)
            )
        except (ValueError, KeyError, TypeError):
            pass  # another order of the properties, or an invalid one, which the code below names
    return to_impulse_texts(decode_impulse(impulse_json))


def _parse_message_id_microseconds_and_device_id(text: bytes) -> tuple[str, int, str]:
    """Read the properties in which impulses differ: message id, timestamp (microseconds since 1970) and device id."""
    members = orjson.loads(text)
    if tuple(members) != _OWN_NAMES:
        raise ValueError(members)
    message_id, timestamp, source, device_id = members.values()
    if source != SOURCE or not isinstance(message_id, str) or not isinstance(device_id, str):
        raise ValueError(members)
    return message_id, to_unix_microseconds(parse_rfc3339(timestamp)), device_id


def _parse_headers_surfaces_and_connection(text: bytes) -> tuple[bytes, bytes, str]:
    """Read the properties that are equal in many impulses: headers and surfaces, both as JSON, and the connection."""
    members = orjson.loads(b'{"Headers":%b]}}' % text)
    metadata = members["Metadata"]
    surfaces = _require_string_list(metadata["SurfaceLookups"], "SurfaceLookups")
    headers = serialise_lossless_json(_require_headers(members["Headers"]))
    return headers, serialise_lossless_json(surfaces), _require_string(metadata, "ConnectionLookup")


_read_cached_common = lru_cache(maxsize=1024)(_parse_headers_surfaces_and_connection)


def to_impulse_texts(impulse: Impulse) -> ImpulseTexts:
    """Convert an impulse to texts: serialise its headers, surfaces and payload as JSON."""
    return ImpulseTexts(
        impulse.message_id,
        to_unix_microseconds(impulse.timestamp),
        impulse.device_id,
        serialise_lossless_json(impulse.payload),
        serialise_lossless_json(dict(impulse.headers)),
        serialise_lossless_json(impulse.surfaces),
        impulse.connection,
    )


def _require_object(value: Any, property_name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{property_name}: must be an object")


def _require_string(members: dict[str, Any], property_name: str) -> str:
    value = members.get(property_name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{property_name}: must be a string")


def _require_string_list(value: Any, property_name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{property_name}: must be a list of strings")
    return tuple(value)


def _require_headers(value: Any) -> dict[str, str]:
    headers = _require_object(value, "Headers")
    if not all(isinstance(text, str) for text in headers.values()):
        raise ValueError("Headers: must be an object of strings")
    return headers
