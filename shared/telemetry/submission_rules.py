"""Rules for telemetry that callers send: the connections of the credential, and the workspace's telemetry policy.

Separate from ``acceptance`` because it decides who may send what; acceptance parses the messages.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from shared.auth.telemetry_binding import DEFAULT_DEVICE, TelemetryBinding
from shared.catalog.models import Connection, TelemetryPolicy
from shared.errors import FieldError, Kind, WorkspaceError, invalid_fields
from shared.telemetry.layout import layout_from_source
from shared.telemetry.message_parser import AcceptedMessage, build_field_error

_MAX_LISTED = 100


def check_binding(policy: TelemetryPolicy, binding: TelemetryBinding | None, lookup: str) -> None:
    """Check that a credential may send telemetry to a connection.

    Args:
        policy: telemetry policy of the workspace.
        binding: connections and devices to which the credential is limited; None if unlimited.
        lookup: lookup (id in URLs) of the connection, which may not exist.

    Raises:
        WorkspaceError: FORBIDDEN ``CONNECTION_NOT_ALLOWED``, or ``BOUND_KEY_REQUIRED`` if the policy requires a bound
            credential.
    """
    if binding is not None:
        binding.check_connection(lookup)
    elif policy.require_bound_keys:
        detail = "The workspace requires a key that is bound to connections; create a key with `connections`."
        raise WorkspaceError(Kind.FORBIDDEN, "BOUND_KEY_REQUIRED", detail)


def check_messages(
    messages: Sequence[AcceptedMessage],
    connection: Connection,
    policy: TelemetryPolicy,
    binding: TelemetryBinding | None,
    received_at: datetime,
    errors: Sequence[FieldError] = (),
) -> None:
    """Check the devices and timestamps of the telemetry messages in a request.

    Args:
        messages: messages that ``parse_messages`` has validated.
        connection: connection of the messages.
        policy: telemetry policy of the workspace.
        binding: connections and devices to which the credential is limited; None if unlimited.
        received_at: time at which the service received the messages.
        errors: errors of other messages in the request, which the raised error lists, too.

    Raises:
        WorkspaceError: FORBIDDEN ``DEVICE_NOT_ALLOWED``; INVALID naming at most 100 messages whose timestamp is too far
            in the future or whose device the connection does not declare.
    """
    if binding is not None:
        binding.check_devices(((message.place, message.device_id) for message in messages), connection.lookup)
    latest = received_at + timedelta(seconds=policy.max_ahead_seconds)
    patterns = connection.source.devices if policy.require_declared_devices else ()
    pointer = layout_from_source(connection.source).timestamp
    broken: list[FieldError] = []
    for message in messages:
        if message.timestamp is not None and message.timestamp > latest:
            rule = f"the timestamp is more than {policy.max_ahead_seconds} s ahead of the service's clock"
            broken.append(build_field_error(message.place, pointer, rule))
        device = message.device_id or connection.lookup
        if patterns and not any(fnmatchcase(device, pattern) for pattern in patterns):
            origin = DEFAULT_DEVICE if message.device_id is None else ""
            rule = f"device {device!r}{origin} is not declared by `source.devices` of the connection"
            broken.append(FieldError(message.place or "body", rule))
        if len(broken) >= _MAX_LISTED:
            break
    if errors or broken:
        raise invalid_fields([*errors, *broken[:_MAX_LISTED]])
