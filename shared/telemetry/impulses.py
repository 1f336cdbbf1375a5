"""Wire format of an impulse: one JSON object, used on the hub, in the live stream and in the archive."""

from typing import Any

from shared.telemetry.json_text import parse, serialise
from shared.telemetry.models import Impulse
from shared.timestamps import parse_rfc3339, rfc3339

SOURCE = "DataConnection"


def encode(impulse: Impulse) -> bytes:
    """Return an impulse as UTF-8 JSON text; integers of any size are exact.

    Raises:
        ValueError: if the payload or the headers have no JSON form.
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
    """Return the impulse of a JSON text; unknown members are ignored.

    Raises:
        ValueError: if the text is not JSON or not an impulse; the message names the invalid member.
    """
    members = _require_object(parse(text), "impulse")
    metadata = _require_object(members.get("Metadata"), "Metadata")
    if members.get("Source") != SOURCE:
        raise ValueError(f"Source: must be {SOURCE}")
    try:
        timestamp = parse_rfc3339(_require_text(members, "Timestamp"))
    except ValueError as error:
        raise ValueError(f"Timestamp: {error}") from None
    return Impulse(
        message_id=_require_text(members, "ID"),
        timestamp=timestamp,
        connection=_require_text(metadata, "ConnectionLookup"),
        surfaces=_require_texts(metadata.get("SurfaceLookups"), "SurfaceLookups"),
        device_id=_require_text(members, "Subject"),
        headers=_require_headers(members.get("Headers")),
        payload=_require_object(members.get("Payload"), "Payload"),
    )


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"{name}: must be an object")


def _require_text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name}: must be a string")


def _require_texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{name}: must be a list of strings")
    return tuple(value)


def _require_headers(value: Any) -> dict[str, str]:
    headers = _require_object(value, "Headers")
    if not all(isinstance(text, str) for text in headers.values()):
        raise ValueError("Headers: must be an object of strings")
    return headers
