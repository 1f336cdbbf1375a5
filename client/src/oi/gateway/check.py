"""Test of a gateway's configuration: connects to the service and the broker, and shows messages but sends none."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from oi.gateway.clock import ReceiveClock
from oi.gateway.deliveries import Delivery
from oi.gateway.messages import RejectedError, build_ndjson_line
from oi.gateway.metrics import Metrics
from oi.gateway.routes import NO_ROUTE
from oi.gateway.settings import GatewaySettings
from oi.gateway.sources import SourceContext, create_source
from oi.gateway.uplink import Uplink
from oi.replay.layout import MAX_ID_CHARACTERS
from oi.replay.message_ids import parse_rfc3339_time

_WRITE = "Workspace.Telemetry.Write"
_LONGEST_SHOWN = 160
_LONGEST_DEVICE = 64


async def try_gateway_configuration(
    settings: GatewaySettings, *, max_messages: int, max_seconds: float, show: Callable[[str], None]
) -> bool:
    """Connect to the service and to the source of messages (an MQTT broker), and show messages as they would be sent.

    Nothing is sent or acknowledged, and a gateway that runs with the same configuration still receives all messages.

    Args:
        settings: configuration of the gateway.
        max_messages: maximum number of messages to show.
        max_seconds: maximum time in seconds to wait for these messages.
        show: prints one line of text.

    Returns:
        True if the API key may send telemetry of the connections in the routes, and every shown message is valid.

    Raises:
        ApiError: the service rejects the API key or cannot be reached.
        SettingsError: a setting of the source is invalid.
        Exception: the source cannot be reached; the message explains why.
    """
    identity = await _request_key_identity(settings)
    accepted = _show_key_rights_and_check_send_right(settings, identity, show)
    receiver = _MessagePrinter(settings, identity, max_messages, show)
    context = SourceContext(settings.routes.filters, receiver, _EmptyMarkStore(), Metrics(), is_check=True)
    reading = asyncio.create_task(create_source(settings.source_kind, settings.source, context).run())
    finished = asyncio.create_task(receiver.finished.wait())
    try:
        await asyncio.wait([reading, finished], timeout=max_seconds, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
    finally:
        reading.cancel()
        finished.cancel()
        await asyncio.gather(reading, finished, return_exceptions=True)
    if receiver.shown == 0:
        show(f"No message arrived within {max_seconds:.0f} seconds on {', '.join(context.filters)}.")
    return accepted and receiver.rejected == 0


async def _request_key_identity(settings: GatewaySettings) -> dict[str, Any]:
    uplink = Uplink(settings.service, ReceiveClock())
    try:
        return await uplink.request_identity()
    finally:
        await uplink.close()


def _show_key_rights_and_check_send_right(
    settings: GatewaySettings, identity: Mapping[str, Any], show: Callable[[str], None]
) -> bool:
    """Show what the API key may do; return whether it may send telemetry of all connections that ``routes`` name."""
    connections = identity.get("connections")
    show(f"The service {settings.service.url} accepts the key.")
    if _WRITE not in identity.get("accessRights", ()):
        show(f"The key lacks the right {_WRITE}.")
        return False
    if connections is None:
        show("The key is not bound to connections; create one with `connections`, so that it can do nothing else.")
    else:
        show(f"The key is bound to the connections {', '.join(connections)}.")
        if devices := identity.get("devices"):
            show(f"The key is bound to the devices {', '.join(devices)}.")
        if missing := sorted(settings.routes.fixed_connections - set(connections)):
            show(f"The key is not bound to {', '.join(missing)}, which `routes` name: their messages cannot be sent.")
            return False
    return True


class _MessagePrinter:
    """Implementation of the Receiver port for the test of a configuration: shows messages instead of storing them."""

    def __init__(
        self, settings: GatewaySettings, identity: Mapping[str, Any], max_messages: int, show: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._connections: Sequence[str] | None = identity.get("connections")
        self._devices: Sequence[str] | None = identity.get("devices")
        self._count = max_messages
        self._show = show
        self._clock = ReceiveClock()
        self.shown = 0
        self.rejected = 0
        self.finished = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Always False, because shown messages take no space."""
        return False

    def call_when_not_full(self, function: Callable[[], None]) -> None:
        """Do nothing, because :attr:`is_full` is never True."""

    def accept_delivery(self, delivery: Delivery) -> None:
        """Show a message as it would be sent, or why it cannot be sent; ignore messages beyond the maximum number."""
        if self.shown >= self._count:
            return
        self.shown += 1
        self._show(f"{self.shown:>3}  {delivery.address}  {self._describe_delivery_and_count_rejected(delivery)}")
        if self.shown == self._count:
            self.finished.set()

    def _describe_delivery_and_count_rejected(self, delivery: Delivery) -> str:
        """Return the target and content of a message, or the reason why it is rejected; count rejected messages."""
        try:
            target = self._settings.routes.find_target(delivery.address)
            if target is None:
                raise RejectedError("no_route", NO_ROUTE)  # noqa: TRY301
            if self._connections is not None and target.connection not in self._connections:
                detail = f"The API key is not bound to the connection {target.connection}; use a key for it."
                raise RejectedError("not_bound", detail)  # noqa: TRY301
            line = build_ndjson_line(delivery.payload, target, self._clock.now_unix_seconds(), lambda: "new-id")
            message = json.loads(line)
            _check_default_metadata(message)
            self._check_device_allowed(message.get("deviceId", target.connection))
        except RejectedError as error:
            self.rejected += 1
            return f"rejected: {error}"
        return f"→ {target.connection}  {line.decode().strip()[:_LONGEST_SHOWN]}"

    def _check_device_allowed(self, device_id: str) -> None:
        if self._devices is not None and not any(fnmatchcase(device_id, pattern) for pattern in self._devices):
            raise RejectedError(
                "not_bound",
                f"The API key is bound to other devices than {device_id[:_LONGEST_DEVICE]!r}; "
                "use a key for this device.",
            )


def _check_default_metadata(message: Mapping[str, Any]) -> None:
    """Check the properties ``messageId``, ``deviceId`` and ``timestamp`` of a message.

    These properties contain the metadata by default. A running gateway leaves this check to the service, because a
    connection can have JSON pointers with which the service reads the metadata from other properties.
    """
    for name in ("messageId", "deviceId"):
        if name in message and not _is_valid_id(message[name]):
            detail = f"The {name} must be a string of 1 to {MAX_ID_CHARACTERS} characters."
            if type(message[name]) is int:
                detail += (
                    f" Set `{name}Pointer: /{name}` in the route to send integers as strings. "
                    f"Without it, the service accepts integers only if the connection states another `{name}Pointer`."
                )
            raise RejectedError("metadata", detail)
    timestamp = message["timestamp"]
    try:
        parse_rfc3339_time(timestamp if isinstance(timestamp, str) else "")
    except ValueError as error:
        raise RejectedError("metadata", f"The timestamp is invalid: {error}.") from None


def _is_valid_id(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS


class _EmptyMarkStore:
    """Implementation of the MarkStore port for the test of a configuration: stores no marks (ids of deliveries)."""

    async def read_marks(self) -> Sequence[bytes]:
        """Return an empty sequence, because the test stores no marks of earlier deliveries."""
        return ()

    async def clear_marks(self) -> None:
        """Do nothing, because no marks are stored."""

    @property
    def acknowledged_position(self) -> int:
        """Always 0, because no marks are stored."""
        return 0

    def forget_marks_up_to(self, position: int) -> None:
        """Do nothing, because no marks are stored."""
