"""Binding of an API key and its tokens: they can only send telemetry of certain data connections and devices."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.auth.device_patterns import build_device_id_matcher
from shared.errors import Kind, WorkspaceError, build_invalid_field_error

CONNECTIONS: Final = "Connections"
"""Claim of a token with the lookups (ids in URLs) of the connections to which the token is bound."""

DEVICES: Final = "Devices"
"""Claim of a token with the patterns of the device ids to which the token is bound."""

MAX_BYTES: Final = 10_000
"""Maximum size of the connections and devices of a binding as JSON, so that they fit into a token."""

DEFAULT_DEVICE: Final = " (the connection's lookup, because the message has no device id)"
"""Text after a device id in an error message, if the caller's telemetry message has no device id."""


@dataclass(frozen=True, slots=True)
class TelemetryBinding:
    """Restriction of a credential to the telemetry of some connections and devices.

    Attributes:
        connections: short names in URLs (lookups) of the allowed connections, at least one.
        devices: shell-style patterns (``*``, ``?``, ``[abc]``) of the allowed device ids; None for all devices.
    """

    connections: tuple[str, ...]
    devices: tuple[str, ...] | None = None

    def check_size_for_token(self) -> None:
        """Check that the connections and devices fit into a token, whose JSON contains only ASCII characters.

        Raises:
            WorkspaceError: INVALID naming the larger of ``connections`` and ``devices``.
        """
        sizes = {name: len(json.dumps(values, separators=(",", ":"))) for name, values in self.to_json().items()}
        if sum(sizes.values()) > MAX_BYTES:
            rule = (
                f"`connections` and `devices` must together have at most {MAX_BYTES} bytes as JSON, in which a "
                "character beyond ASCII has at least 6 bytes, because each token contains them; create several keys"
            )
            raise build_invalid_field_error(max(sizes, key=lambda name: sizes[name]), rule)

    def check_may_send_to_connection(self, connection_lookup: str) -> None:
        """Check that the credential may send telemetry to a connection; the connection need not exist.

        Raises:
            WorkspaceError: FORBIDDEN ``CONNECTION_NOT_ALLOWED``.
        """
        if connection_lookup not in self.connections:
            allowed = ", ".join(self.connections)
            detail = f"The credential is bound to other connections: {allowed}."
            raise WorkspaceError(Kind.FORBIDDEN, "CONNECTION_NOT_ALLOWED", detail)

    def check_may_send_for_devices(
        self, positions_and_device_ids: Iterable[tuple[str, str | None]], default_device_id: str
    ) -> None:
        """Check that the credential may send telemetry of these devices.

        Args:
            positions_and_device_ids: for each message, its position in the request (such as ``[3]``) and its device id,
                which is None if the message has none.
            default_device_id: device id that is assumed for messages without a device id.

        Raises:
            WorkspaceError: FORBIDDEN ``DEVICE_NOT_ALLOWED``, with the position of the first message whose device is not
                allowed.
        """
        if self.devices is None:
            return
        is_bound_device = build_device_id_matcher(self.devices)
        for position, sent in positions_and_device_ids:
            device = default_device_id if sent is None else sent
            if not is_bound_device(device):
                origin = DEFAULT_DEVICE if sent is None else ""
                place = _build_position_prefix(position)
                detail = f"{place}this credential is not bound to the device {device[:256]!r}{origin}."
                detail = detail[:1].upper() + detail[1:]
                raise WorkspaceError(Kind.FORBIDDEN, "DEVICE_NOT_ALLOWED", detail, field=position or "body")

    def to_claims(self) -> dict[str, list[str]]:
        """Convert the binding to claims of a token; :func:`binding_from_claims` parses them."""
        devices = {} if self.devices is None else {DEVICES: list(self.devices)}
        return {CONNECTIONS: list(self.connections), **devices}

    def to_json(self) -> dict[str, list[str] | None]:
        """Convert the binding to JSON properties for stored keys, replies and audit events."""
        return {"connections": list(self.connections), "devices": None if self.devices is None else list(self.devices)}


def binding_from_claims(payload: Mapping[str, Any]) -> TelemetryBinding | None:
    """Parse the binding in the claims of a token; return None if the token has no binding.

    Raises:
        ValueError: if a claim is not a list of strings; such a token must not be treated as unbound.
    """
    if CONNECTIONS not in payload and DEVICES not in payload:
        return None
    devices = _parse_string_list_claim(payload[DEVICES]) if DEVICES in payload else None
    return TelemetryBinding(_parse_string_list_claim(payload.get(CONNECTIONS)), devices)


def binding_from_json(stored: Mapping[str, Any] | None) -> TelemetryBinding | None:
    """Parse a stored binding, the result of :meth:`TelemetryBinding.to_json`; return None for None."""
    if stored is None:
        return None
    devices = stored["devices"]
    return TelemetryBinding(tuple(stored["connections"]), None if devices is None else tuple(devices))


def _parse_string_list_claim(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("a claim of the token about connections or devices is not a list of strings")
    return tuple(value)


def _build_position_prefix(message_position: str) -> str:
    """Return the start of an error message, such as ``message [3]: `` or ``line 4: ``; empty for an empty position."""
    if not message_position:
        return ""
    return f"message {message_position}: " if message_position.startswith("[") else f"{message_position}: "
