"""Events to the event handler of a hub: CloudEvents 1.0 in binary mode over HTTP."""

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
from shared.timestamps import now, rfc3339

_LOGGER = get_logger("emulators.web_pubsub")
_JSON = "application/json; charset=utf-8"


@dataclass(slots=True)
class EventSubject:
    """Connection that is the subject of events.

    Attributes:
        connection_id: its id.
        user_id: None if unknown or anonymous.
        subprotocol: None before the handshake completes or for a plain client.
        state: the connection state that the event handler set last.
        origin: the requested host of the service.
    """

    connection_id: str
    user_id: str | None
    subprotocol: str | None
    state: str | None
    origin: str


class HubEvents:
    """Sender of the events of one hub."""

    def __init__(self, hub: str, settings: HubSettings, access_key: str) -> None:
        self._hub = hub
        self._settings = settings
        self._access_key = access_key
        self._allowed = False
        self._pending: set[asyncio.Task[None]] = set()

    def handles_connect(self) -> bool:
        """Return whether the handler receives ``connect`` events."""
        return self._settings.upstream is not None and "connect" in self._settings.system_events

    def handles_event(self, event: str) -> bool:
        """Return whether the handler receives a user event."""
        return self._settings.upstream is not None and event in self._settings.user_events

    async def connect(self, subject: EventSubject, document: Mapping[str, object]) -> HandlerResponse:
        """Send a ``connect`` event and return the handler's response.

        Raises:
            WorkspaceError: EVENT_HANDLER_UNAVAILABLE if the handler does not respond.
        """
        try:
            return await self._post("sys", "connect", subject, _JSON, orjson.dumps(document))
        except UpstreamError as error:
            raise _unavailable(error) from None

    async def user_event(self, event: str, subject: EventSubject, content_type: str, data: bytes) -> HandlerResponse:
        """Send a message of a client and return the handler's response.

        Raises:
            UpstreamError: the handler does not respond.
        """
        return await self._post("user", event, subject, content_type, data)

    def notify(
        self, event: str, subject: EventSubject, after: asyncio.Task[None] | None = None, **document: str
    ) -> asyncio.Task[None] | None:
        """Send a ``connected`` or ``disconnected`` event without waiting; errors are logged.

        Args:
            event: connected or disconnected.
            subject: the connection.
            after: an earlier event that must arrive first.
            document: the event's data.

        Returns:
            The sending task, None if the handler does not receive this event.
        """
        if self._settings.upstream is None or event not in self._settings.system_events:
            return None
        task = asyncio.create_task(self._notify(event, subject, after, document))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return task

    async def close(self) -> None:
        """Wait for pending events and close the upstream."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=1.0)
        if self._settings.upstream is not None:
            await self._settings.upstream.close()

    async def _notify(
        self, event: str, subject: EventSubject, after: asyncio.Task[None] | None, document: Mapping[str, str]
    ) -> None:
        if after is not None:
            await asyncio.wait((after,))
        try:
            response = await self._post("sys", event, subject, _JSON, orjson.dumps(document))
        except UpstreamError as error:
            _LOGGER.warning("an event cannot be sent to the event handler: %s", error, extra=fields(event=event))
            return
        if not 200 <= response.status < 300:  # noqa: PLR2004  any 2xx
            _LOGGER.warning("the event handler rejects an event", extra=fields(event=event, status=response.status))

    async def _post(
        self, kind: str, event: str, subject: EventSubject, content_type: str, data: bytes
    ) -> HandlerResponse:
        upstream = self._settings.upstream
        if upstream is None:
            raise UpstreamError("there is no event handler")
        await self._check_allowed(upstream, subject.origin)
        attributes = {
            "specversion": "1.0",
            "type": f"azure.webpubsub.{kind}.{event}",
            "source": f"/hubs/{self._hub}/client/{subject.connection_id}",
            "id": uuid.uuid4().hex,
            "time": rfc3339(now()),
            "signature": f"sha256={signature(self._access_key, subject.connection_id)}",
            "userId": subject.user_id,
            "connectionId": subject.connection_id,
            "hub": self._hub,
            "eventName": event,
            "subprotocol": subject.subprotocol,
            "connectionState": subject.state,
        }
        headers = {f"ce-{name}": value for name, value in attributes.items() if value is not None}
        headers |= {"Content-Type": content_type, "WebHook-Request-Origin": subject.origin}
        return await upstream.request("POST", event, headers, data)

    async def _check_allowed(self, upstream: Upstream, origin: str) -> None:
        """Check once that the handler allows events of this service (CloudEvents web hooks, section 4)."""
        if self._allowed:
            return
        response = await upstream.request("OPTIONS", "validate", {"WebHook-Request-Origin": origin}, b"")
        allowed = [name.strip() for name in response.headers.get("webhook-allowed-origin", "").split(",")]
        if not 200 <= response.status < 300 or not {"*", origin} & set(allowed):  # noqa: PLR2004  any 2xx
            raise UpstreamError(f"the event handler does not allow events of {origin}")
        self._allowed = True


def signature(access_key: str, connection_id: str) -> str:
    """Return the hexadecimal HMAC-SHA-256 that authenticates the service to an event handler."""
    return hmac.new(access_key.encode(), connection_id.encode(), hashlib.sha256).hexdigest()


def _unavailable(error: UpstreamError) -> WorkspaceError:
    _LOGGER.error("the event handler of a hub does not respond: %s", error)
    return WorkspaceError(
        Kind.UNAVAILABLE, "EVENT_HANDLER_UNAVAILABLE", "The event handler does not respond; try again."
    )
