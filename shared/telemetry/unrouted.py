"""Impulses of events that match no connection or are invalid; they are stored as ``_unrouted`` with the reason."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from shared.telemetry.json_text import parse
from shared.telemetry.models import UNROUTED, HubEvent, Impulse
from shared.telemetry.normalisation import build_event_id
from shared.telemetry.properties import DEVICE_ID

REASON = "x-unrouted-reason"
CLAIMED_BY = "x-unrouted-connection"
ENCODING = "x-raw-encoding"
PART = "x-raw-part"

PART_BYTES = 256 * 1024
"""Size of the parts of an event that is too large for one impulse; each part fits in any encoding."""


def build_impulse(source: str, event: HubEvent, message: Any, reason: str, claimed_by: str) -> Impulse:
    """Return the impulse of an event; the payload is its JSON object, else its text or base64 under ``raw``.

    Args:
        source: hub of the event.
        event: the event.
        message: its body as JSON value; None if the body is not JSON.
        reason: why the event is unrouted; becomes a header.
        claimed_by: connection of the event; empty if there is none.
    """
    if isinstance(message, dict):
        return _impulse(source, event, _build_reason_headers(reason, claimed_by), message)
    encoding, raw = _encode_raw(event.body)
    return _impulse(source, event, {**_build_reason_headers(reason, claimed_by), ENCODING: encoding}, {"raw": raw})


def build_part_impulses(source: str, event: HubEvent, reason: str, claimed_by: str) -> Iterator[Impulse]:
    """Yield the impulses of a large event, with its body in base64, numbered ``1/3``, ``2/3``, ``3/3``."""
    starts = range(0, len(event.body), PART_BYTES)
    for number, start in enumerate(starts, 1):
        headers = {**_build_reason_headers(reason, claimed_by), ENCODING: "base64", PART: f"{number}/{len(starts)}"}
        raw = b64encode(event.body[start : start + PART_BYTES]).decode()
        yield _impulse(source, event, headers, {"raw": raw}, suffix=f".{number}")


def _impulse(
    source: str, event: HubEvent, headers: dict[str, str], payload: dict[str, Any], suffix: str = ""
) -> Impulse:
    return Impulse(
        message_id=build_event_id(source, event) + suffix,
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
    """Return the body of an event as JSON value, or None if it is not JSON."""
    try:
        return parse(body)
    except ValueError:
        return None


def _encode_raw(body: bytes) -> tuple[str, str]:
    try:
        return "utf-8", body.decode()
    except UnicodeDecodeError:
        return "base64", b64encode(body).decode()
