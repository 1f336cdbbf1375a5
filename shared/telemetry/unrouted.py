"""Impulses (telemetry messages) of events that are invalid or match no connection.

These impulses have the connection ``_unrouted``.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.layout import is_valid_message_or_device_id
from shared.telemetry.models import UNROUTED, HubEvent, Impulse
from shared.telemetry.normalisation import build_message_id_from_position
from shared.telemetry.properties import DEVICE_ID

REASON = "x-unrouted-reason"
CLAIMED_BY = "x-unrouted-connection"
ENCODING = "x-raw-encoding"
PART = "x-raw-part"
PROPERTIES_PART = "x-properties-part"

PART_BYTES = 256 * 1024
"""Size in bytes of the parts of an event that is too large for one message; base64 makes a part a third larger.

It is also the maximum size of application properties that a part can have as headers in addition.
"""


def build_unrouted_impulse(
    source_name: str, event: HubEvent, message: Any, reason: str, matching_connection_lookup: str
) -> Impulse:
    """Build the ``_unrouted`` impulse (telemetry message) of an event that has no valid message or connection.

    The payload is the event's JSON object; a body that is not an object is stored as text or base64 under ``raw``.

    Args:
        source_name: hub of the event: ``telemetry``, ``impulses``, or ``hub/consumerGroup`` for the hub of a
            connection.
        event: the hub event.
        message: body of the event as JSON value; None if the body is not JSON.
        reason: text that says why the event is unrouted; becomes a header.
        matching_connection_lookup: lookup (id in URLs) of the connection that the event matches; empty if none matches.
    """
    headers = {**event.properties, **_build_reason_headers(reason, matching_connection_lookup)}
    if isinstance(message, dict):
        return _build_impulse_from_payload(source_name, event, headers, message)
    encoding, raw = _encode_body(event.body)
    return _build_impulse_from_payload(source_name, event, {**headers, ENCODING: encoding}, {"raw": raw})


def split_into_unrouted_impulses(
    source_name: str, event: HubEvent, reason: str, matching_connection_lookup: str
) -> Iterator[Impulse]:
    """Yield ``_unrouted`` impulses (messages) of a large event: parts of its body in base64, numbered ``1/3`` etc.

    Each part has the application properties of the event as headers. If these are larger than ``PART_BYTES``, further
    parts contain their JSON text instead. Each part fits into one message of the hub.
    """
    headers = _build_reason_headers(reason, matching_connection_lookup)
    # This text escapes all characters beyond ASCII, so it is never smaller than the headers.
    properties = json.dumps(dict(event.properties)).encode()
    has_small_properties = len(properties) <= PART_BYTES
    if has_small_properties:
        headers = {**event.properties, **headers}
    for number, total, raw in _split_to_base64(event.body):
        part_headers = {**headers, ENCODING: "base64", PART: f"{number}/{total}"}
        yield _build_impulse_from_payload(source_name, event, part_headers, {"raw": raw}, suffix=f".{number}")
    if not has_small_properties:
        for number, total, raw in _split_to_base64(properties):
            part_headers = {**headers, ENCODING: "base64", PROPERTIES_PART: f"{number}/{total}"}
            yield _build_impulse_from_payload(source_name, event, part_headers, {"raw": raw}, suffix=f".p{number}")


class _Base64Part(NamedTuple):
    """Part of a content in base64, with its number (from 1) and the number of parts."""

    number: int
    total: int
    base64_text: str


def _split_to_base64(content: bytes) -> Iterator[_Base64Part]:
    """Split a content into parts in base64 and yield them; an empty content has one empty part."""
    starts = range(0, max(1, len(content)), PART_BYTES)
    for number, start in enumerate(starts, 1):
        yield _Base64Part(number, len(starts), b64encode(content[start : start + PART_BYTES]).decode())


def _build_impulse_from_payload(
    source_name: str, event: HubEvent, headers: Mapping[str, str], payload: Mapping[str, Any], suffix: str = ""
) -> Impulse:
    return Impulse(
        message_id=build_message_id_from_position(source_name, event) + suffix,
        timestamp=event.enqueued_at,
        connection=UNROUTED,
        surfaces=(),
        device_id=_get_valid_device_id_or_unrouted(event),
        headers=headers,
        payload=payload,
    )


def _get_valid_device_id_or_unrouted(event: HubEvent) -> str:
    ids = (event.device_id, event.properties.get(DEVICE_ID))
    return next((each for each in ids if is_valid_message_or_device_id(each)), UNROUTED)


def _build_reason_headers(reason: str, matching_connection_lookup: str) -> dict[str, str]:
    return {REASON: reason, CLAIMED_BY: matching_connection_lookup} if matching_connection_lookup else {REASON: reason}


def parse_json_or_none(body: bytes) -> Any:
    """Parse the body of an event as JSON; return None if the body is not JSON."""
    try:
        return parse_lossless_json(body)
    except ValueError:
        return None


class _EncodedBody(NamedTuple):
    """Body of an event as text, and its encoding: ``utf-8`` or ``base64``."""

    encoding: str
    text: str


def _encode_body(body: bytes) -> _EncodedBody:
    try:
        return _EncodedBody("utf-8", body.decode())
    except UnicodeDecodeError:
        return _EncodedBody("base64", b64encode(body).decode())
