"""ASGI application of the Web PubSub emulator: passes requests to the REST API, and clients to their hubs.

Servers send requests to ``/api/hubs/{hub}``; clients connect to ``/client/hubs/{hub}``.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote
from weakref import WeakValueDictionary

from emulators.web_pubsub.asgi import (
    Message,
    Receive,
    Send,
    find_bearer_token,
    read_headers,
    read_host_and_port,
    read_query_parameters,
)
from emulators.web_pubsub.clients import reject_handshake, serve_client
from emulators.web_pubsub.error_replies import EmulatorReply, build_error_reply, read_or_create_request_id
from emulators.web_pubsub.events import HubEvents
from emulators.web_pubsub.handshake import validate_access_token
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.requests import DataPlaneRequest, read_body
from emulators.web_pubsub.rest_operations import build_route_not_found_error, match_operation
from emulators.web_pubsub.settings import ServiceSettings
from shared.errors import Kind, WorkspaceError, build_invalid_field_error

_HUB = re.compile(r"[A-Za-z][A-Za-z0-9_`,.\[\]]{0,127}")
_API, _CLIENT = "/api/hubs/", "/client/hubs/"
_API_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?")


class WebPubSubEmulator:
    """Web PubSub emulator as an ASGI application.

    Run it on one event loop of a server whose WebSocket protocol class is
    :class:`emulators.web_pubsub.sockets.FrameSocket`.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        # A client without a token can name any hub, so a hub exists only while something uses it.
        self._hubs: WeakValueDictionary[str, Hub] = WeakValueDictionary()
        self._events = {name: HubEvents(hub, settings.access_key) for name, hub in settings.hubs.items()}
        self._other_events = HubEvents(settings.other_hubs, settings.access_key)

    def get_or_create_hub(self, name: str) -> Hub:
        """Return the hub with a name; create the hub if nothing uses a hub with this name."""
        return self._hubs.setdefault(
            name, Hub(name, self._settings.count_clients, self._settings.get_hub_settings(name).close_code)
        )

    async def close(self) -> None:
        """Wait for events that are being sent, and close the connections to event handlers."""
        for events in (*self._events.values(), self._other_events):
            await events.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one HTTP request or WebSocket client (ASGI 3)."""
        if scope["type"] == "websocket":
            await self._serve_client(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve_request(scope, receive, send)

    async def _serve_client(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].decode("latin-1")
        name = unquote(path.removeprefix(_CLIENT))
        if not path.startswith(_CLIENT) or not _HUB.fullmatch(name):
            await receive()
            await reject_handshake(scope, send, build_route_not_found_error())
            return
        await serve_client(
            scope,
            receive,
            send,
            self.get_or_create_hub(name),
            self._events.get(name, self._other_events),
            self._settings.access_key,
            self._settings.get_hub_settings(name),
        )

    async def _serve_request(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            reply = await self._route_request(scope, receive)
        except WorkspaceError as error:
            given_id = read_or_create_request_id(scope["headers"])
            # Unread parts of a body would be parsed as the next request.
            reply = build_error_reply(
                _add_message_property_for_sdks(error), given_id, close_connection=error.kind is Kind.TOO_LARGE
            )
        except ConnectionError:
            return
        await _send_reply(send, reply, is_head=scope["method"] == "HEAD")

    async def _route_request(self, scope: Message, receive: Receive) -> EmulatorReply:
        path = scope["raw_path"].decode("latin-1")
        if path == "/api/health":
            return EmulatorReply(200, b"", {})
        name, _, rest = path.removeprefix(_API).partition("/")
        name = unquote(name)
        if not path.startswith(_API) or not _HUB.fullmatch(name):
            raise build_route_not_found_error()
        operation, parts = match_operation(scope["method"], rest)
        headers, query = read_headers(scope), read_query_parameters(scope)
        host = read_host_and_port(scope, headers)
        self._check_access_token(scope, headers, host, path)
        body = await read_body(headers, receive)
        request = DataPlaneRequest(
            hub_name=name,
            hub=self.get_or_create_hub(name),
            access_key=self._settings.access_key,
            origin=f"{scope['scheme']}://{host}",
            path={**parts, "": path},
            query=query,
            headers=headers,
            body=body,
        )
        if not _API_VERSION.fullmatch(request.find_query_value("api-version") or ""):
            raise build_invalid_field_error("api-version", "is required, for instance 2024-12-01")
        return await operation(request)

    def _check_access_token(self, scope: Message, headers: dict[str, list[str]], host_and_port: str, path: str) -> None:
        token = find_bearer_token(headers)
        if token is None:
            raise WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", "An access token is required.")
        query = scope["query_string"].decode("latin-1")
        validate_access_token(token, self._settings.access_key, host_and_port, f"{path}?{query}")


def _add_message_property_for_sdks(error: WorkspaceError) -> WorkspaceError:
    """Add the property ``message`` to an error, because the official SDKs show this property."""
    return WorkspaceError(error.kind, error.code, error.detail, **error.members, message=error.detail)


async def _send_reply(send: Send, reply: EmulatorReply, *, is_head: bool) -> None:
    headers: Mapping[str, str] = reply.headers
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    if reply.status != 204:  # noqa: PLR2004  No Content has no length (RFC 9110 section 8.6)
        raw.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if is_head else reply.body})
