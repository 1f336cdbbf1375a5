"""What no connection claims, or cannot be read: kept under ``_unrouted`` with the reason, never dropped."""

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
"""An event too large for one impulse is kept in parts of this many bytes, so that each fits whatever its encoding."""


def build_impulse(source: str, event: HubEvent, reason: str, claimed_by: str) -> Impulse:
    """Return the impulse that keeps an event: its JSON object as payload, else its text or base64 under ``raw``.

    Args:
        source: names the hub that the event came from.
        event: the event.
        reason: why it is set aside, becomes a header.
        claimed_by: the connection that claims it, empty where none does.
    """
    message = _object(event.body)
    if message is not None:
        return _impulse(source, event, _why(reason, claimed_by), message)
    encoding, raw = _raw(event.body)
    return _impulse(source, event, {**_why(reason, claimed_by), ENCODING: encoding}, {"raw": raw})


def build_part_impulses(source: str, event: HubEvent, reason: str, claimed_by: str) -> Iterator[Impulse]:
    """Yield the impulses that keep a large event's body in base64, numbered ``1/3``, ``2/3``, ``3/3``."""
    starts = range(0, len(event.body), PART_BYTES)
    for number, start in enumerate(starts, 1):
        headers = {**_why(reason, claimed_by), ENCODING: "base64", PART: f"{number}/{len(starts)}"}
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


def _why(reason: str, claimed_by: str) -> dict[str, str]:
    return {REASON: reason, CLAIMED_BY: claimed_by} if claimed_by else {REASON: reason}


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        message = parse(body)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _raw(body: bytes) -> tuple[str, str]:
    try:
        return "utf-8", body.decode()
    except UnicodeDecodeError:
        return "base64", b64encode(body).decode()
