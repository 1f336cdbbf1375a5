"""Impulses (telemetry messages) of events that are invalid or match no connection.

These impulses have the connection ``_unrouted``.
"""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from shared.telemetry.json_text import parse
from shared.telemetry.models import UNROUTED, HubEvent, Impulse
from shared.telemetry.normalisation import build_message_id_from_position
from shared.telemetry.properties import DEVICE_ID

REASON = "x-unrouted-reason"
CLAIMED_BY = "x-unrouted-connection"
ENCODING = "x-raw-encoding"
PART = "x-raw-part"

PART_BYTES = 256 * 1024
"""Size in bytes of the parts of an event that is too large for one message; base64 makes a part a third larger."""


def build_unrouted_impulse(source: str, event: HubEvent, message: Any, reason: str, claimed_by: str) -> Impulse:
    """Build the ``_unrouted`` impulse (telemetry message) of an event that has no valid message or connection.

    The payload is the event's JSON object; a body that is not an object is stored as text or base64 under ``raw``.

    Args:
        source: hub of the event: ``telemetry``, ``impulses``, or ``hub/consumerGroup`` for the hub of a connection.
        event: the hub event.
        message: body of the event as JSON value; None if the body is not JSON.
        reason: text that says why the event is unrouted; becomes a header.
        claimed_by: lookup (id in URLs) of the connection that the event matches; empty if none matches.
    """
    if isinstance(message, dict):
        return _build_impulse_from_payload(source, event, _build_reason_headers(reason, claimed_by), message)
    encoding, raw = _encode_raw_body(event.body)
    return _build_impulse_from_payload(
        source, event, {**_build_reason_headers(reason, claimed_by), ENCODING: encoding}, {"raw": raw}
    )


def split_into_unrouted_impulses(source: str, event: HubEvent, reason: str, claimed_by: str) -> Iterator[Impulse]:
    """Yield ``_unrouted`` impulses (messages) of a large event: parts of its body in base64, numbered ``1/3`` etc."""
    starts = range(0, len(event.body), PART_BYTES)
    for number, start in enumerate(starts, 1):
        headers = {**_build_reason_headers(reason, claimed_by), ENCODING: "base64", PART: f"{number}/{len(starts)}"}
        raw = b64encode(event.body[start : start + PART_BYTES]).decode()
        yield _build_impulse_from_payload(source, event, headers, {"raw": raw}, suffix=f".{number}")


def _build_impulse_from_payload(
    source: str, event: HubEvent, headers: dict[str, str], payload: dict[str, Any], suffix: str = ""
) -> Impulse:
    return Impulse(
        message_id=build_message_id_from_position(source, event) + suffix,
        timestamp=event.enqueued_at,
        connection=UNROUTED,
        surfaces=(),
        device_id=event.device_id or event.properties.get(DEVICE_ID) or UNROUTED,
        headers={**event.properties, **headers},
        payload=payload,
    )


def _build_reason_headers(reason: str, claimed_by: str) -> dict[str, str]:
    return {REASON: reason, CLAIMED_BY: claimed_by} if claimed_by else {REASON: reason}


def parse_if_json(body: bytes) -> Any:
    """Parse the body of an event as JSON; return None if the body is not JSON."""
    try:
        return parse(body)
    except ValueError:
        return None


def _encode_raw_body(body: bytes) -> tuple[str, str]:
    try:
        return "utf-8", body.decode()
    except UnicodeDecodeError:
        return "base64", b64encode(body).decode()
