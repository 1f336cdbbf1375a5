"""The wire form of an impulse: one JSON object, the same on the hub, in the live stream and in the archive."""

from typing import Any

from shared.telemetry.json_text import parse, serialise
from shared.telemetry.models import Impulse
from shared.timestamps import parse_rfc3339, rfc3339

SOURCE = "DataConnection"


def encode(impulse: Impulse) -> bytes:
    """Return an impulse as UTF-8 JSON text; integers of any size keep their digits.

    Raises:
        ValueError: the payload or the headers have no JSON form.
    """
    return serialise(
        {
            "ID": impulse.message_id,
            "Timestamp": rfc3339(impulse.timestamp),
            "Source": SOURCE,
            "Subject": impulse.device_id,
            "Headers": dict(impulse.headers),
            "Metadata": {"ConnectionLookup": impulse.connection, "SurfaceLookups": list(impulse.surfaces)},
            "Payload": dict(impulse.payload),
        }
    )


def decode(text: bytes) -> Impulse:
    """Return the impulse that a JSON text stands for; members that an impulse does not have are ignored.

    Raises:
        ValueError: the text is not JSON or not an impulse; the message names the member that is wrong.
    """
    members = _object(parse(text), "impulse")
    metadata = _object(members.get("Metadata"), "Metadata")
    if members.get("Source") != SOURCE:
        raise ValueError(f"Source: {SOURCE} is expected")
    try:
        timestamp = parse_rfc3339(_text(members, "Timestamp"))
    except ValueError as error:
        raise ValueError(f"Timestamp: {error}") from None
    return Impulse(
        message_id=_text(members, "ID"),
        timestamp=timestamp,
        connection=_text(metadata, "ConnectionLookup"),
        surfaces=_texts(metadata.get("SurfaceLookups"), "SurfaceLookups"),
        device_id=_text(members, "Subject"),
        headers=_headers(members.get("Headers")),
        payload=_object(members.get("Payload"), "Payload"),
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{name}: an object is expected")


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name}: a string is expected")


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{name}: a list of strings is expected")
    return tuple(value)


def _headers(value: Any) -> dict[str, str]:
    headers = _object(value, "Headers")
    if not all(isinstance(text, str) for text in headers.values()):
        raise ValueError("Headers: an object of strings is expected")
    return headers
