"""Validation of telemetry that callers post for a connection, its conversion to hub messages, and their sending.

The rules come from the credential, which may be bound to connections, and from the workspace's telemetry policy.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final, Protocol

from shared.auth.device_patterns import build_device_id_matcher
from shared.auth.telemetry_binding import DEFAULT_DEVICE, TelemetryBinding
from shared.catalog.models import Connection, TelemetryPolicy
from shared.errors import FieldError, Kind, WorkspaceError, build_invalid_fields_error
from shared.observability.tracing import open_call_span
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime
from shared.telemetry.layout import DEFAULT_LAYOUT, MessageLayout, layout_from_source
from shared.telemetry.message_parser import AcceptedMessage, build_field_error, parse_messages, parse_ndjson_messages
from shared.telemetry.models import TELEMETRY_HUB, HubMessage
from shared.telemetry.ports import CurrentCatalog, EventSender, RequireSpace
from shared.telemetry.properties import HTTP, build_application_properties

_MAX_LISTED = 100
_MAX_PATTERN_CHARACTERS: Final = 1_000
"""Maximum number of characters of device patterns that are compiled in the event loop, which takes about 10 ms."""
_MAX_PATTERN_WORK: Final = 1_000_000
"""Maximum product of the characters of device patterns and the bytes of a body that are compared in the event loop.

The comparison takes up to about 10 ms, because in the worst case each pattern is compared with each character.
"""


def check_may_send_to_connection(
    policy: TelemetryPolicy, binding: TelemetryBinding | None, connection_lookup: str
) -> None:
    """Check that a credential may send telemetry to a connection.

    Args:
        policy: telemetry policy of the workspace.
        binding: connections and devices to which the credential is limited; None if unlimited.
        connection_lookup: lookup (id in URLs) of the connection; the connection need not exist.

    Raises:
        WorkspaceError: FORBIDDEN ``CONNECTION_NOT_ALLOWED``, or ``BOUND_KEY_REQUIRED`` if the policy requires a bound
            credential.
    """
    if binding is not None:
        binding.check_may_send_to_connection(connection_lookup)
    elif policy.require_bound_keys:
        detail = "The workspace requires a key that is bound to connections; create a key with `connections`."
        raise WorkspaceError(Kind.FORBIDDEN, "BOUND_KEY_REQUIRED", detail)


def check_devices_and_timestamps(
    messages: Sequence[AcceptedMessage],
    connection: Connection,
    policy: TelemetryPolicy,
    binding: TelemetryBinding | None,
    received_at: datetime,
    other_errors: Sequence[FieldError] = (),
) -> None:
    """Check the devices and timestamps of the telemetry messages in a request.

    Args:
        messages: messages that ``parse_messages`` has validated.
        connection: connection of the messages.
        policy: telemetry policy of the workspace.
        binding: connections and devices to which the credential is limited; None if unlimited.
        received_at: time at which the service received the messages.
        other_errors: errors of other messages in the request; if there are any, an error that lists them is raised
            also if ``messages`` are valid.

    Raises:
        WorkspaceError: FORBIDDEN ``DEVICE_NOT_ALLOWED`` if the credential is bound to devices, and a message comes from
            another device. INVALID with ``other_errors`` and at most 100 errors of messages whose timestamp is too far
            in the future, or whose device the connection does not declare.
    """
    if binding is not None:
        binding.check_may_send_for_devices(
            ((message.position, message.device_id) for message in messages), connection.lookup
        )
    latest = received_at + timedelta(seconds=policy.max_ahead_seconds)
    patterns = _list_required_patterns(connection, policy)
    is_declared = build_device_id_matcher(patterns) if patterns else None
    layout = layout_from_source(connection.source)
    broken: list[FieldError] = []
    for message in messages:
        if message.timestamp is not None and message.timestamp > latest:
            rule = f"the timestamp is more than {policy.max_ahead_seconds} s ahead of the service's clock"
            broken.append(build_field_error(message.position, layout.timestamp, rule))
        device = message.device_id or connection.lookup
        if is_declared is not None and not is_declared(device):
            rule = "is not declared by `source.devices` of the connection"
            broken.append(
                FieldError(message.position or "body", f"device {device!r}{DEFAULT_DEVICE} {rule}")
                if message.device_id is None
                else build_field_error(message.position, layout.device_id, f"device {device!r} {rule}")
            )
        if len(broken) >= _MAX_LISTED:
            break
    if other_errors or broken:
        raise build_invalid_fields_error([*other_errors, *broken[:_MAX_LISTED]])


def _list_required_patterns(connection: Connection, policy: TelemetryPolicy) -> tuple[str, ...]:
    """Return the device id patterns of a connection; a message's device must match one of them.

    The result is empty if the policy does not require declared devices.
    """
    return connection.source.devices if policy.require_declared_devices else ()


def _has_long_device_check(
    connection: Connection, policy: TelemetryPolicy, binding: TelemetryBinding | None, body_bytes: int
) -> bool:
    """Return whether the check of all device ids in a request body takes too long for the event loop.

    Args:
        connection: connection of the messages, which can declare patterns of devices.
        policy: telemetry policy of the workspace.
        binding: connections and devices to which the credential is limited; None if unlimited.
        body_bytes: size of the body in bytes.
    """
    bound = (binding.devices if binding else None) or ()
    characters = sum(map(len, (*_list_required_patterns(connection, policy), *bound)))
    return characters > _MAX_PATTERN_CHARACTERS or characters * body_bytes > _MAX_PATTERN_WORK


class TelemetryService:
    """Service that accepts telemetry over HTTP for the workspace's connections.

    Args:
        catalog: function that returns the current workspace catalog.
        sender: sends the messages to the hub.
        require_disk_space: raises an error if the disk of the embedded hub is nearly full.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: CurrentCatalog,
        sender: EventSender,
        *,
        require_disk_space: RequireSpace,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._sender = sender
        self._require_space = require_disk_space
        self._runtime = runtime

    async def check_may_send_to_connection(self, connection_lookup: str, binding: TelemetryBinding | None) -> None:
        """Check that the workspace's telemetry policy lets a credential send telemetry to a connection.

        See the function :func:`check_may_send_to_connection` for the arguments and errors.
        """
        check_may_send_to_connection((await self._catalog()).policies.telemetry, binding, connection_lookup)

    async def accept_and_count_messages(
        self,
        connection_lookup: str,
        body: object,
        *,
        body_bytes: int = 0,
        binding: TelemetryBinding | None = None,
        retry_key: str = "",
    ) -> int:
        """Send one message or an array of messages to the hub; return after the hub has stored all messages.

        Args:
            connection_lookup: lookup (id in URLs) of the connection.
            body: JSON value of the request.
            body_bytes: size of the body's text in bytes; a large body is validated in a worker thread.
            binding: connections and devices to which the caller's credential is limited; None if unlimited.
            retry_key: text that is the same in each attempt of a request, and differs for each caller; see
                :func:`build_hub_messages`.

        Returns:
            Number of accepted messages.

        Raises:
            WorkspaceError: the same errors as ``parse_messages`` and ``check_devices_and_timestamps``; NOT_FOUND
                ``CONNECTION_NOT_FOUND``; CONFLICT ``CONNECTION_DISABLED``; STORAGE_FULL ``STORAGE_FULL``; errors of the
                sender. After an UNAVAILABLE error of the sender, the hub possibly contains some of the messages; after
                all other errors, it contains none. A repeated call stores a message with an id, or with the same
                ``retry_key``, only once.
        """
        return await self._send_and_count_messages(
            connection_lookup, body_bytes, partial(parse_messages, body), binding, retry_key
        )

    async def accept_and_count_lines(
        self, connection_lookup: str, ndjson: bytes, *, binding: TelemetryBinding | None = None, retry_key: str = ""
    ) -> int:
        """Send messages in NDJSON form to the hub, one message for each line; see :meth:`accept_and_count_messages`.

        Raises:
            WorkspaceError: the same errors as ``parse_ndjson_messages``, and as :meth:`accept_and_count_messages`.
        """
        return await self._send_and_count_messages(
            connection_lookup, len(ndjson), partial(parse_ndjson_messages, ndjson), binding, retry_key
        )

    async def _send_and_count_messages(
        self,
        connection_lookup: str,
        body_bytes: int,
        parse: Callable[[MessageLayout, list[FieldError] | None], list[AcceptedMessage]],
        binding: TelemetryBinding | None,
        retry_key: str,
    ) -> int:
        catalog = await self._catalog()
        policy = catalog.policies.telemetry
        stored = catalog.connections.get(connection_lookup)
        received_at = self._runtime.now()

        def convert_messages() -> list[HubMessage]:
            if stored is None:
                # An invalid body is reported before an unknown connection; the default pointers then apply.
                parse(DEFAULT_LAYOUT, None)
                detail = f"No connection has the lookup {connection_lookup[:64]!r} (short name in URLs)."
                raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", detail)
            errors: list[FieldError] = []
            messages = parse(layout_from_source(stored.value.source), errors)
            check_devices_and_timestamps(messages, stored.value, policy, binding, received_at, errors)
            return build_hub_messages(stored.value, messages, received_at, self._runtime, retry_key)

        has_long_check = stored is not None and _has_long_device_check(stored.value, policy, binding, body_bytes)
        converted = await self._convert_in_thread_if_slow(convert_messages, body_bytes, has_long_check=has_long_check)
        await self._require_space()
        await self._sender.send(TELEMETRY_HUB, converted)
        return len(converted)

    def _convert_in_thread_if_slow(
        self, convert: Callable[[], list[HubMessage]], body_bytes: int, *, has_long_check: bool
    ) -> Awaitable[list[HubMessage]]:
        if has_long_check and body_bytes < LARGE:
            # A small body must not wait for the large bodies of other callers.
            return self._runtime.run_in_thread(convert)
        return self._runtime.run_in_thread_if_large(body_bytes, convert)


def hub_messages_from_body(
    connection: Connection, body: object, received_at: datetime, runtime: Runtime = SYSTEM_RUNTIME
) -> list[HubMessage]:
    """Convert the JSON body of a request to hub messages: call ``parse_messages``, then ``build_hub_messages``."""
    messages = parse_messages(body, layout_from_source(connection.source))
    return build_hub_messages(connection, messages, received_at, runtime)


def build_hub_messages(
    connection: Connection,
    messages: Sequence[AcceptedMessage],
    received_at: datetime,
    runtime: Runtime,
    retry_key: str = "",
) -> list[HubMessage]:
    """Build hub messages from telemetry messages; the partition key is the connection, which preserves the order.

    Args:
        connection: connection of the messages.
        messages: messages that ``parse_messages`` has validated.
        received_at: timestamp for messages without a timestamp.
        runtime: source of ids for messages without an id.
        retry_key: text that is the same in each attempt of a request, and differs for each caller; the ids of messages
            without an id derive from it. Empty for random ids.

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
            build_application_properties(
                connection.lookup,
                message.timestamp or received_at,
                message.message_id
                or (_derive_message_id(retry_key, index, message) if retry_key else str(runtime.new_uuid())),
                message.device_id or connection.lookup,
                HTTP,
            ),
        )
        for index, message in enumerate(messages)
    ]


def _derive_message_id(retry_key: str, index: int, message: AcceptedMessage) -> str:
    """Derive the id of a message without an id from the key of its request, its position and its content.

    The content is included because a caller possibly uses a key again for other messages; these must not be removed as
    repeats.
    """
    timestamp = message.timestamp.isoformat() if message.timestamp else ""
    described = f"{retry_key}\n{index}\n{timestamp}\n{message.device_id or ''}\n".encode()
    return sha256(described + message.payload).hexdigest()[:32]


class ClosableSender(EventSender, Protocol):
    """Event sender with connections to close."""

    async def close(self) -> None:
        """Close the network connections of the sender."""
        ...


class InstrumentedSender:
    """Event sender that passes each call to another sender, and records a trace span with the number of messages.

    Args:
        sender: wrapped sender.
        system: name of the messaging system in the OpenTelemetry conventions.
    """

    def __init__(self, sender: ClosableSender, system: str) -> None:
        self._sender = sender
        self._system = system

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages with the wrapped sender, inside a trace span."""
        attributes: dict[str, str | int] = {
            "messaging.system": self._system,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": hub,
            "messaging.batch.message_count": len(messages),
        }
        with open_call_span(f"send {hub}", attributes, kind="PRODUCER"):
            await self._sender.send(hub, messages)

    async def close(self) -> None:
        """Close the connections of the sender."""
        await self._sender.close()
