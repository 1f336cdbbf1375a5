"""From an event of a known connection to its impulse."""

from datetime import datetime
from typing import Any

from shared.telemetry.acceptance import MAX_ID_CHARACTERS
from shared.telemetry.models import TELEMETRY_HUB, HubEvent, Impulse
from shared.telemetry.pointers import Pointer, remove, resolve
from shared.telemetry.properties import DEVICE_ID, MESSAGE_ID, TIMESTAMP, headers
from shared.telemetry.routing import Route
from shared.timestamps import parse_rfc3339


def impulse_of(source: str, event: HubEvent, route: Route, message: dict[str, Any]) -> Impulse:
    """Return an event's impulse; the same for each delivery of the event.

    What stands in the event's properties counts before what a pointer finds; what a pointer found is taken out of
    the message, the rest is the payload.

    Args:
        source: names the hub that the event came from.
        event: the event.
        route: the event's connection.
        message: the event's body; lifted members are removed from it, unless the call fails.

    Raises:
        ValueError: what stands where the timestamp, message id or device id is expected is none.
    """
    lifted: list[Pointer] = []
    timestamp = _lift(event, TIMESTAMP, message, route.timestamp, lifted)
    message_id = _lift(event, MESSAGE_ID, message, route.message_id, lifted)
    device_id = _lift(event, DEVICE_ID, message, route.device_id, lifted)
    impulse = Impulse(
        message_id=event_id(source, event) if message_id is None else _id(MESSAGE_ID, message_id),
        timestamp=event.enqueued_at if timestamp is None else _timestamp(timestamp),
        connection=route.connection,
        surfaces=route.surfaces,
        device_id=(event.device_id or route.connection) if device_id is None else _id(DEVICE_ID, device_id),
        headers=headers(event.properties),
        payload=message,
    )
    for pointer in lifted:
        remove(message, pointer)
    return impulse


def event_id(source: str, event: HubEvent) -> str:
    """Return the id of a message that brought none: where the event stands in which hub."""
    place = f"{event.partition}-{event.sequence_number}"
    return place if source == TELEMETRY_HUB else f"{source.partition('/')[0]}-{place}"


def _lift(event: HubEvent, name: str, message: dict[str, Any], pointer: Pointer, lifted: list[Pointer]) -> Any:
    stated = event.properties.get(name)
    if stated:
        return stated
    value = resolve(message, pointer) if pointer else None
    if value is not None:
        lifted.append(pointer)
    return value


def _id(name: str, value: Any) -> str:
    if isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS:
        return value
    raise ValueError(f"{name}: a string of 1 to {MAX_ID_CHARACTERS} characters is expected")


def _timestamp(value: Any) -> datetime:
    try:
        return parse_rfc3339(value if isinstance(value, str) else "")
    except ValueError as error:
        raise ValueError(f"{TIMESTAMP}: {error}") from None
