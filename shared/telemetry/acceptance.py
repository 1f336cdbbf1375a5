"""Validation of telemetry that callers post for a connection, and its conversion to hub messages."""

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
from shared.telemetry.pointers import Pointer, format_pointer, remove, resolve
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
    """Valid message: the extracted values (None if absent), and the remaining members as JSON text."""

    timestamp: datetime | None
    message_id: str | None
    device_id: str | None
    payload: bytes


class TelemetryService:
    """Service that accepts telemetry for the workspace's connections."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender) -> None:
        self._catalog = catalog
        self._sender = sender

    async def accept(self, lookup: str, body: object, *, size: int = 0) -> int:
        """Send one message or an array of messages to the hub; when this returns, the hub has stored all of them.

        Args:
            lookup: lookup of the connection.
            body: JSON value of the request.
            size: size of its text in bytes; a large body is validated in a worker thread.

        Returns:
            Number of accepted messages.

        Raises:
            WorkspaceError: as ``parse_messages``; NOT_FOUND ``CONNECTION_NOT_FOUND``; CONFLICT ``CONNECTION_DISABLED``;
                errors of the sender, after which the same message ids can be sent again safely.
        """
        catalog = await self._catalog()
        stored = catalog.connections.get(lookup)
        # An invalid body is reported before an unknown connection; the default pointers then apply.
        layout = DEFAULT_LAYOUT if stored is None else layout_from_source(stored.value.source)
        messages = await run_in_worker(size, parse_messages, body, layout)
        if stored is None:
            raise WorkspaceError(
                Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "The workspace has no connection with this lookup."
            )
        await self._sender.send(TELEMETRY_HUB, build_hub_messages(stored.value, messages, now()))
        return len(messages)


def to_hub_messages(connection: Connection, body: object, received_at: datetime) -> list[HubMessage]:
    """Return the hub messages of a request's JSON value; combines ``parse_messages`` and ``build_hub_messages``."""
    return build_hub_messages(connection, parse_messages(body, layout_from_source(connection.source)), received_at)


def parse_messages(body: object, layout: MessageLayout) -> list[AcceptedMessage]:
    """Validate one message or an array of 1 to 500 messages.

    Args:
        body: JSON value of the request; extracted members are removed from it.
        layout: positions of the extracted values in the connection's messages.

    Raises:
        WorkspaceError: TOO_LARGE ``MESSAGE_TOO_LARGE`` for a message over 256 KiB; INVALID with every invalid field,
            written as ``[index].member`` for messages of an array.
    """
    messages = body if isinstance(body, list) else [body]
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise invalid("body", f"must be one message or an array of 1 to {MAX_MESSAGES} messages, not {len(messages)}")
    _reject_wrapped_batch(body, layout)
    errors: list[FieldError] = []
    prefixes = [f"[{index}]" for index in range(len(messages))] if isinstance(body, list) else [""]
    parsed = [
        _parse_message(message, layout, prefix, errors) for message, prefix in zip(messages, prefixes, strict=True)
    ]
    if errors:
        raise invalid_fields(errors)
    return [message for message in parsed if message is not None]


def build_hub_messages(
    connection: Connection, messages: Sequence[AcceptedMessage], received_at: datetime
) -> list[HubMessage]:
    """Return the hub messages of a connection; the lookup is the partition key, which preserves their order.

    Args:
        connection: connection of the messages.
        messages: result of ``parse_messages``.
        received_at: timestamp of messages without one.

    Raises:
        WorkspaceError: CONFLICT ``CONNECTION_DISABLED``.
    """
    if not connection.enabled:
        raise WorkspaceError(
            Kind.CONFLICT, "CONNECTION_DISABLED", "The connection is disabled and does not accept telemetry."
        )
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


def _reject_wrapped_batch(body: object, layout: MessageLayout) -> None:
    """Reject an object around an array of messages, such as ``{"metrics": [...]}``.

    It is a valid message, but it would be stored with the time of receipt, and the times in the array as payload.
    """
    if not isinstance(body, dict) or len(body) != 1:
        return
    [(name, value)] = body.items()
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return
    if all(pointer[:1] != (name,) for pointer in (layout.timestamp, layout.message_id, layout.device_id)):
        raise invalid(
            name[:_LONGEST_NAME] or "body",
            f"contains an array of {len(value)} objects; to send each object as a message, send only the array: "
            "[{...}, ...]; to send a single message, put the whole object into an array: [{...}]",
        )


def _parse_message(
    message: Any, layout: MessageLayout, prefix: str, errors: list[FieldError]
) -> AcceptedMessage | None:
    if not isinstance(message, dict):
        errors.append(FieldError(prefix or "body", "must be a JSON object"))
        return None
    before = len(errors)
    timestamp = _extract_timestamp(message, layout, prefix, errors)
    message_id = _extract_id(message, layout.message_id, prefix, errors)
    device_id = _extract_id(message, layout.device_id, prefix, errors)
    payload = _extract_payload(message, layout, prefix, errors)
    return AcceptedMessage(timestamp, message_id, device_id, payload) if len(errors) == before else None


def _extract_payload(message: dict[str, Any], layout: MessageLayout, prefix: str, errors: list[FieldError]) -> bytes:
    try:
        if len(serialise(message)) > MAX_MESSAGE_BYTES:
            raise _too_large(prefix)
        for pointer in (layout.timestamp, layout.message_id, layout.device_id):
            remove(message, pointer)
        return serialise(message)
    except ValueError as error:
        errors.append(FieldError(prefix or "body", str(error)))
        return b""


def _extract_timestamp(
    message: dict[str, Any], layout: MessageLayout, prefix: str, errors: list[FieldError]
) -> datetime | None:
    value = resolve(message, layout.timestamp, _MISSING) if layout.timestamp else _MISSING
    if value is _MISSING:
        return None
    try:
        return parse_timestamp(value, layout.timestamp_format)
    except ValueError as error:
        errors.append(_field_error(prefix, layout.timestamp, error))
        return None


def _extract_id(message: dict[str, Any], pointer: Pointer, prefix: str, errors: list[FieldError]) -> str | None:
    value = resolve(message, pointer, _MISSING) if pointer else _MISSING
    if value is _MISSING:
        return None
    try:
        return validate_id(value)
    except ValueError as error:
        errors.append(_field_error(prefix, pointer, error))
        return None


def _field_error(prefix: str, pointer: Pointer, error: ValueError) -> FieldError:
    field = ".".join(filter(None, (prefix, *pointer)))
    return FieldError(field, f"{error} (pointer {format_pointer(pointer)})")


def _too_large(prefix: str) -> WorkspaceError:
    return WorkspaceError(
        Kind.TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        f"The message{f' {prefix}' if prefix else ''} has more than {MAX_MESSAGE_BYTES} bytes; "
        "split it into smaller messages.",
        maxBytes=MAX_MESSAGE_BYTES,
    )
