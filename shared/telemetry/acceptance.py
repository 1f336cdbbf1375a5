"""What a caller posts for a connection, checked and turned into hub messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from shared.catalog.models import Connection
from shared.errors import FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.telemetry.json_text import serialise
from shared.telemetry.layout import DEFAULT_LAYOUT, MessageLayout, layout_from_source, validate_id
from shared.telemetry.models import TELEMETRY_HUB, HubMessage
from shared.telemetry.pointers import Pointer, pointer_text, remove, resolve
from shared.telemetry.ports import CurrentCatalog, EventSender
from shared.telemetry.properties import HTTP, build_properties
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.timestamps import now
from shared.worker_threads import run_in_worker

MAX_MESSAGES = 500
MAX_MESSAGE_BYTES = 256 * 1024
_LONGEST_NAME = 64
_MISSING = object()


@dataclass(frozen=True, slots=True)
class AcceptedMessage:
    """A checked message: what was lifted (None where it was absent) and the rest as JSON text."""

    timestamp: datetime | None
    message_id: str | None
    device_id: str | None
    payload: bytes


class TelemetryService:
    """Takes telemetry in for the workspace's connections."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender) -> None:
        self._catalog = catalog
        self._sender = sender

    async def accept(self, lookup: str, body: object, *, size: int = 0) -> int:
        """Send one message, or an array of them, on its way; when this returns the hub holds every one.

        Args:
            lookup: the connection.
            body: the request's JSON value.
            size: of its text, bytes; a large one is checked outside the event loop.

        Returns:
            How many messages were taken.

        Raises:
            WorkspaceError: as ``parse_messages``; NOT_FOUND ``CONNECTION_NOT_FOUND``; CONFLICT ``CONNECTION_DISABLED``;
                errors of the sender, after which sending the same message ids again is safe.
        """
        catalog = await self._catalog()
        stored = catalog.connections.get(lookup)
        # A body that breaks a rule is refused before an unknown connection is, with the default pointers then.
        layout = DEFAULT_LAYOUT if stored is None else layout_from_source(stored.value.source)
        messages = await run_in_worker(size, parse_messages, body, layout)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "The workspace has no such connection.")
        await self._sender.send(TELEMETRY_HUB, build_hub_messages(stored.value, messages, now()))
        return len(messages)


def to_hub_messages(connection: Connection, body: object, received_at: datetime) -> list[HubMessage]:
    """Return the hub messages of a request's JSON value; ``parse_messages`` and ``build_hub_messages`` in one."""
    return build_hub_messages(connection, parse_messages(body, layout_from_source(connection.source)), received_at)


def parse_messages(body: object, layout: MessageLayout) -> list[AcceptedMessage]:
    """Check one message or an array of 1 to 500.

    Args:
        body: the request's JSON value; lifted members are removed from it.
        layout: where the connection's messages hold what is lifted.

    Raises:
        WorkspaceError: TOO_LARGE ``MESSAGE_TOO_LARGE`` for a message over 256 KiB; INVALID with every failing field,
            those of an array's messages as ``[index].member``.
    """
    messages = body if isinstance(body, list) else [body]
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise invalid("body", f"one message or an array of 1 to {MAX_MESSAGES} is expected, not {len(messages)}")
    _refuse_wrapped_batch(body, layout)
    errors: list[FieldError] = []
    places = [f"[{index}]" for index in range(len(messages))] if isinstance(body, list) else [""]
    taken = [_message(message, layout, place, errors) for message, place in zip(messages, places, strict=True)]
    if errors:
        raise invalid_fields(errors)
    return [message for message in taken if message is not None]


def build_hub_messages(
    connection: Connection, messages: Sequence[AcceptedMessage], received_at: datetime
) -> list[HubMessage]:
    """Return the hub messages for a connection; the lookup is the partition key, so that they keep their order.

    Args:
        connection: where the messages come from.
        messages: what ``parse_messages`` gave.
        received_at: the timestamp of messages that have none.

    Raises:
        WorkspaceError: CONFLICT ``CONNECTION_DISABLED``.
    """
    if not connection.enabled:
        raise WorkspaceError(Kind.CONFLICT, "CONNECTION_DISABLED", "The connection is disabled and takes no telemetry.")
    return [
        HubMessage(
            message.payload,
            connection.lookup,
            build_properties(
                connection.lookup,
                message.timestamp or received_at,
                message.message_id or str(uuid4()),
                message.device_id or connection.lookup,
                HTTP,
            ),
        )
        for message in messages
    ]


def _refuse_wrapped_batch(body: object, layout: MessageLayout) -> None:
    """Reject an object around an array of messages, such as ``{"metrics": [...]}``.

    It is a valid message, but one that is stored under the time of receipt, with the times within it as payload.
    """
    if not isinstance(body, dict) or len(body) != 1:
        return
    [(name, value)] = body.items()
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return
    if all(pointer[:1] != (name,) for pointer in (layout.timestamp, layout.message_id, layout.device_id)):
        raise invalid(
            name[:_LONGEST_NAME] or "body",
            f"holds an array of {len(value)} objects; for one message each, send the array itself: [{{...}}, ...]; "
            "for a single message with the array in it, send the object within an array: [{...}]",
        )


def _message(message: Any, layout: MessageLayout, place: str, errors: list[FieldError]) -> AcceptedMessage | None:
    if not isinstance(message, dict):
        errors.append(FieldError(place or "body", "a message is a JSON object"))
        return None
    before = len(errors)
    timestamp = _timestamp(message, layout, place, errors)
    message_id = _id(message, layout.message_id, place, errors)
    device_id = _id(message, layout.device_id, place, errors)
    payload = _payload(message, layout, place, errors)
    return AcceptedMessage(timestamp, message_id, device_id, payload) if len(errors) == before else None


def _payload(message: dict[str, Any], layout: MessageLayout, place: str, errors: list[FieldError]) -> bytes:
    try:
        if len(serialise(message)) > MAX_MESSAGE_BYTES:
            raise _too_large(place)
        for pointer in (layout.timestamp, layout.message_id, layout.device_id):
            remove(message, pointer)
        return serialise(message)
    except ValueError as error:
        errors.append(FieldError(place or "body", str(error)))
        return b""


def _timestamp(message: dict[str, Any], layout: MessageLayout, place: str, errors: list[FieldError]) -> datetime | None:
    value = resolve(message, layout.timestamp, _MISSING) if layout.timestamp else _MISSING
    if value is _MISSING:
        return None
    try:
        return parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        errors.append(_field_error(place, layout.timestamp, error))
        return None


def _id(message: dict[str, Any], pointer: Pointer, place: str, errors: list[FieldError]) -> str | None:
    value = resolve(message, pointer, _MISSING) if pointer else _MISSING
    if value is _MISSING:
        return None
    try:
        return validate_id(value)
    except ValueError as error:
        errors.append(_field_error(place, pointer, error))
        return None


def _field_error(place: str, pointer: Pointer, error: ValueError) -> FieldError:
    field = ".".join(filter(None, (place, *pointer)))
    return FieldError(field, f"{error} (pointer {pointer_text(pointer)})")


def _too_large(place: str) -> WorkspaceError:
    return WorkspaceError(
        Kind.TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        f"The message{f' {place}' if place else ''} is over {MAX_MESSAGE_BYTES} bytes; send it in smaller ones.",
        maxBytes=MAX_MESSAGE_BYTES,
    )
