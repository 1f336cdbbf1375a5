"""What a caller posts for a connection, checked and turned into hub messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from shared.catalog.models import Connection
from shared.errors import FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.telemetry.json_text import serialise
from shared.telemetry.models import TELEMETRY_HUB, HubMessage
from shared.telemetry.ports import CurrentCatalog, EventSender
from shared.telemetry.properties import DEVICE_ID, HTTP, MESSAGE_ID, TIMESTAMP, of_message
from shared.timestamps import now, parse_rfc3339

MAX_MESSAGES = 500
MAX_MESSAGE_BYTES = 256 * 1024
MAX_ID_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Message:
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

    async def accept(self, lookup: str, body: object) -> int:
        """Send one message, or an array of them, on its way; when this returns the hub holds every one.

        Args:
            lookup: the connection.
            body: the request's JSON value.

        Returns:
            How many messages were taken.

        Raises:
            WorkspaceError: as ``read``; NOT_FOUND ``CONNECTION_NOT_FOUND``; CONFLICT ``CONNECTION_DISABLED``; whatever
                the sender raises, after which sending the same message ids again is safe.
        """
        messages = read(body)
        catalog = await self._catalog()
        stored = catalog.connections.get(lookup)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "The workspace has no such connection.")
        await self._sender.send(TELEMETRY_HUB, hub_messages(stored.value, messages, now()))
        return len(messages)


def accept(connection: Connection, body: object, received_at: datetime) -> list[HubMessage]:
    """Return the hub messages of a request's JSON value; ``read`` and ``hub_messages`` in one."""
    return hub_messages(connection, read(body), received_at)


def read(body: object) -> list[Message]:
    """Check one message or an array of 1 to 500.

    Raises:
        WorkspaceError: TOO_LARGE ``MESSAGE_TOO_LARGE`` for a message over 256 KiB; INVALID with every failing field,
            those of an array's messages as ``[index].member``.
    """
    messages = body if isinstance(body, list) else [body]
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise invalid("body", f"one message or an array of 1 to {MAX_MESSAGES} is expected, not {len(messages)}")
    errors: list[FieldError] = []
    places = [f"[{index}]" for index in range(len(messages))] if isinstance(body, list) else [""]
    taken = [_message(message, place, errors) for message, place in zip(messages, places, strict=True)]
    if errors:
        raise invalid_fields(errors)
    return [message for message in taken if message is not None]


def hub_messages(connection: Connection, messages: Sequence[Message], received_at: datetime) -> list[HubMessage]:
    """Return the hub messages for a connection; the lookup is the partition key, so that they keep their order.

    Args:
        connection: where the messages come from.
        messages: what ``read`` gave.
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
            of_message(
                connection.lookup,
                message.timestamp or received_at,
                message.message_id or str(uuid4()),
                message.device_id or connection.lookup,
                HTTP,
            ),
        )
        for message in messages
    ]


def _message(message: Any, place: str, errors: list[FieldError]) -> Message | None:
    if not isinstance(message, dict):
        errors.append(FieldError(place or "body", "a message is a JSON object"))
        return None
    before = len(errors)
    prefix = f"{place}." if place else ""
    timestamp = _timestamp(message, prefix, errors)
    message_id = _id(message, MESSAGE_ID, prefix, errors)
    device_id = _id(message, DEVICE_ID, prefix, errors)
    payload = _payload(message, place, errors)
    return Message(timestamp, message_id, device_id, payload) if len(errors) == before else None


def _payload(message: dict[str, Any], place: str, errors: list[FieldError]) -> bytes:
    lifted = (TIMESTAMP, MESSAGE_ID, DEVICE_ID)
    try:
        if len(serialise(message)) > MAX_MESSAGE_BYTES:
            raise _too_large(place)
        return serialise({name: value for name, value in message.items() if name not in lifted})
    except ValueError as error:
        errors.append(FieldError(place or "body", str(error)))
        return b""


def _timestamp(message: dict[str, Any], prefix: str, errors: list[FieldError]) -> datetime | None:
    if TIMESTAMP not in message:
        return None
    value = message[TIMESTAMP]
    try:
        return parse_rfc3339(value if isinstance(value, str) else "")
    except ValueError as error:
        errors.append(FieldError(prefix + TIMESTAMP, str(error)))
        return None


def _id(message: dict[str, Any], name: str, prefix: str, errors: list[FieldError]) -> str | None:
    if name not in message:
        return None
    value = message[name]
    if isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS:
        return value
    errors.append(FieldError(prefix + name, f"a string of 1 to {MAX_ID_CHARACTERS} characters is expected"))
    return None


def _too_large(place: str) -> WorkspaceError:
    return WorkspaceError(
        Kind.TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        f"The message{f' {place}' if place else ''} is over {MAX_MESSAGE_BYTES} bytes; send it in smaller ones.",
        maxBytes=MAX_MESSAGE_BYTES,
    )
