"""Events about clients, which the emulator sends to the event handler of a hub (CloudEvents 1.0, binary mode, HTTP)."""

import asyncio
import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from emulators.web_pubsub.settings import HubSettings
from emulators.web_pubsub.upstream import HandlerResponse, Upstream, UpstreamError
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.timestamps import format_rfc3339, now

_LOGGER = get_logger("emulators.web_pubsub")
_JSON = "application/json; charset=utf-8"


@dataclass(slots=True)
class EventSubject:
    """Client connection that an event is about.

    Attributes:
        hub: name of the hub.
        connection_id: id of the connection.
        user_id: id of the client's user; None for an anonymous client.
        subprotocol: WebSocket subprotocol; None for a client without subprotocol, and during the handshake.
        state: opaque text that the event handler stored for this connection; None if it has stored none.
        origin: host and port to which the client connected.
    """

    hub: str
    connection_id: str
    user_id: str | None
    subprotocol: str | None
    state: str | None
    origin: str


class HubEvents:
    """Sender of the events of all hubs with the same settings to their event handler."""

    def __init__(self, settings: HubSettings, access_key: str) -> None:
        self._settings = settings
        self._access_key = access_key
        self._allowed = False
        self._pending: set[asyncio.Task[None]] = set()

    def has_connect_handler(self) -> bool:
        """Return whether the event handler must receive ``connect`` events."""
        return self._settings.upstream is not None and "connect" in self._settings.system_events

    def has_handler_for_event(self, event_name: str) -> bool:
        """Return whether the event handler must receive the user event with this name."""
        return self._settings.upstream is not None and event_name in self._settings.user_events

    async def send_connect_event(self, subject: EventSubject, event_data: Mapping[str, object]) -> HandlerResponse:
        """Send a ``connect`` event, which asks the event handler to accept a client, and return the response.

        Raises:
            WorkspaceError: EVENT_HANDLER_UNAVAILABLE if the handler does not respond.
        """
        try:
            return await self._send_event("sys", "connect", subject, _JSON, orjson.dumps(event_data))
        except UpstreamError as error:
            raise _build_handler_unavailable_error(error) from None

    async def send_user_event(
        self, event_name: str, subject: EventSubject, content_type: str, data: bytes
    ) -> HandlerResponse:
        """Send a message of a client as a user event and return the response of the event handler.

        Raises:
            UpstreamError: the event handler did not receive the event, or does not respond.
        """
        return await self._send_event("user", event_name, subject, content_type, data)

    def start_notification_if_handled(
        self,
        event_name: str,
        subject: EventSubject,
        previous_event: asyncio.Task[None] | None = None,
        **event_data: str,
    ) -> asyncio.Task[None] | None:
        """Start to send a ``connected`` or ``disconnected`` event without waiting for it; errors are only logged.

        Args:
            event_name: name of the event, ``connected`` or ``disconnected``.
            subject: the connection that the event is about.
            previous_event: task that sends an earlier event, which must arrive first; None for no such event.
            event_data: data of the event, which is sent as a JSON object.

        Returns:
            The task that sends the event; None if the event handler does not receive this event.
        """
        if self._settings.upstream is None or event_name not in self._settings.system_events:
            return None
        task = asyncio.create_task(self._send_notification(event_name, subject, previous_event, event_data))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return task

    async def close(self) -> None:
        """Wait up to one second for pending events, and close the connection to the event handler."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=1.0)
        if self._settings.upstream is not None:
            await self._settings.upstream.close()

    async def _send_notification(
        self,
        event_name: str,
        subject: EventSubject,
        previous_event: asyncio.Task[None] | None,
        event_data: Mapping[str, str],
    ) -> None:
        if previous_event is not None:
            await asyncio.wait((previous_event,))
        try:
            response = await self._send_event("sys", event_name, subject, _JSON, orjson.dumps(event_data))
        except UpstreamError as error:
            _LOGGER.warning("an event cannot be sent to the event handler: %s", error, extra=fields(event=event_name))
            return
        if not 200 <= response.status < 300:  # noqa: PLR2004  any 2xx
            _LOGGER.warning(
                "the event handler rejects an event", extra=fields(event=event_name, status=response.status)
            )

    async def _send_event(
        self, kind: str, event_name: str, subject: EventSubject, content_type: str, data: bytes
    ) -> HandlerResponse:
        upstream = self._settings.upstream
        if upstream is None:
            raise UpstreamError(f"hub {subject.hub!r} has no event handler; event {event_name!r} was not sent")
        await self._check_handler_allows_events(upstream, subject.origin)
        attributes = {
            "specversion": "1.0",
            "type": f"azure.webpubsub.{kind}.{event_name}",
            "source": f"/hubs/{subject.hub}/client/{subject.connection_id}",
            "id": uuid.uuid4().hex,
            "time": format_rfc3339(now()),
            "signature": f"sha256={compute_event_signature(self._access_key, subject.connection_id)}",
            "userId": subject.user_id,
            "connectionId": subject.connection_id,
            "hub": subject.hub,
            "eventName": event_name,
            "subprotocol": subject.subprotocol,
            "connectionState": subject.state,
        }
        headers = {f"ce-{name}": value for name, value in attributes.items() if value is not None}
        headers |= {"Content-Type": content_type, "WebHook-Request-Origin": subject.origin}
        return await upstream.send_request("POST", event_name, headers, data)

    async def _check_handler_allows_events(self, upstream: Upstream, origin: str) -> None:
        """Check that the event handler accepts events from this service, before the first event is sent."""
        if self._allowed:
            return
        response = await upstream.send_request("OPTIONS", "validate", {"WebHook-Request-Origin": origin}, b"")
        allowed = [name.strip() for name in response.headers.get("webhook-allowed-origin", "").split(",")]
        if not 200 <= response.status < 300 or not {"*", origin} & set(allowed):  # noqa: PLR2004  any 2xx
            raise UpstreamError(f"the event handler does not accept events from {origin}")
        self._allowed = True


def compute_event_signature(access_key: str, connection_id: str) -> str:
    """Compute the signature of events (hexadecimal HMAC-SHA-256), which proves their sender to the event handler."""
    return hmac.new(access_key.encode(), connection_id.encode(), hashlib.sha256).hexdigest()


def _build_handler_unavailable_error(error: UpstreamError) -> WorkspaceError:
    _LOGGER.error("the event handler of a hub does not respond: %s", error)
    return WorkspaceError(
        Kind.UNAVAILABLE, "EVENT_HANDLER_UNAVAILABLE", "The event handler does not respond; try again."
    )
