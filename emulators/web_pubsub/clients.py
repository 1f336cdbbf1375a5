"""Service for WebSocket clients, from handshake to disconnect: executes requests, sends events to the event handler."""

import asyncio
import base64
import binascii
import contextlib
import uuid
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from enum import Enum, auto
from typing import Protocol

import orjson
from pydantic import ValidationError

from emulators.web_pubsub.asgi import Message, Receive, Send, read_headers, read_host_and_port, read_query_parameters
from emulators.web_pubsub.connection import BROKEN, JSON_SUBPROTOCOL, POLICY, ClientConnection
from emulators.web_pubsub.error_replies import build_error_reply, read_or_create_request_id
from emulators.web_pubsub.events import EventSubject, HubEvents
from emulators.web_pubsub.handshake import AcceptedClient, HandlerRejectionError, authorize_client, find_state_expiry
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.outbox import ClientSocket
from emulators.web_pubsub.payloads import DataType, Payload
from emulators.web_pubsub.permissions import Permission
from emulators.web_pubsub.requests import REQUESTS, EventRequest, GroupRequest, Ping, SendToGroup
from emulators.web_pubsub.settings import HubSettings
from emulators.web_pubsub.sockets import EXTENSION
from emulators.web_pubsub.upstream import HandlerResponse, UpstreamError
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import get_logger

_MAX_KNOWN_ACKS = 10_000
_TYPES = {
    DataType.TEXT: "text/plain; charset=utf-8",
    DataType.JSON: "application/json; charset=utf-8",
    DataType.BINARY: "application/octet-stream",
}
_LOGGER = get_logger("emulators.web_pubsub")
_INTERNAL_ERROR = WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "The service failed; see its log.")
_HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


class ClientRequestOutcome(Enum):
    """Outcome of a client's request: executed, permission missing, or connection closed because of the request."""

    DONE = auto()
    PERMISSION_MISSING = auto()
    CONNECTION_CLOSED = auto()


class Session(Protocol):
    """Port that handles the messages of one client, according to the client's subprotocol."""

    async def handle_message(self, text: str | None, data: bytes | None) -> None:
        """Handle one message of the client, which is either ``text`` or binary ``data``."""
        ...


class PlainSession:
    """Session of a client without subprotocol: each message is sent to the event handler as event ``message``."""

    def __init__(self, connection: ClientConnection, events: HubEvents, subject: EventSubject) -> None:
        self._connection = connection
        self._events = events
        self._subject = subject

    async def handle_message(self, text: str | None, data: bytes | None) -> None:
        """Send a message of the client to the event handler, and the handler's response to the client."""
        if not self._events.has_handler_for_event("message"):
            return
        data_type = DataType.BINARY if text is None else DataType.TEXT
        sent = (data or b"") if text is None else text.encode()
        await forward_event(self._connection, self._events, self._subject, "message", data_type, sent)


class JsonSession:
    """Session of a client that uses the subprotocol json.webpubsub.azure.v1."""

    def __init__(self, connection: ClientConnection, hub: Hub, events: HubEvents, subject: EventSubject) -> None:
        self._connection = connection
        self._hub = hub
        self._events = events
        self._subject = subject
        self._acked: OrderedDict[int, None] = OrderedDict()

    async def handle_message(self, text: str | None, data: bytes | None) -> None:
        """Execute a request of the client; close the connection if the message is not a valid request."""
        try:
            request = REQUESTS.validate_json(text if text is not None else data or b"")
        except ValidationError:
            self._connection.close(POLICY, "The message is not a request of the subprotocol.")
            return
        if isinstance(request, Ping):
            self._connection.send_system_message({"type": "pong"})
        elif request.ackId is not None and request.ackId in self._acked:
            self._send_error_ack(request.ackId, "Duplicate", "The request with this ackId was already executed.")
        else:
            await self._execute_and_acknowledge(request)

    async def _execute_and_acknowledge(self, request: GroupRequest | SendToGroup | EventRequest) -> None:
        outcome = await self._execute_request(request)
        if request.ackId is not None and outcome is not ClientRequestOutcome.CONNECTION_CLOSED:
            self._acknowledge_request(request.ackId, succeeded=outcome is ClientRequestOutcome.DONE)

    async def _execute_request(self, request: GroupRequest | SendToGroup | EventRequest) -> ClientRequestOutcome:
        match request:
            case GroupRequest():
                return self._change_group_membership(request)
            case SendToGroup():
                return await self._send_to_group(request)
            case EventRequest():
                return await self._send_event(request)

    def _change_group_membership(self, request: GroupRequest) -> ClientRequestOutcome:
        """Add the client to a group, or remove the client from the group."""
        if not self._connection.permissions.is_granted(Permission.JOIN_LEAVE_GROUP, request.group):
            return ClientRequestOutcome.PERMISSION_MISSING
        move = self._hub.join_group if request.type == "joinGroup" else self._hub.leave_group
        move(self._connection, request.group)
        return ClientRequestOutcome.DONE

    async def _send_to_group(self, request: SendToGroup) -> ClientRequestOutcome:
        if not self._connection.permissions.is_granted(Permission.SEND_TO_GROUP, request.group):
            return ClientRequestOutcome.PERMISSION_MISSING
        data = self._encode_data_or_close_connection(request)
        if data is None:
            return ClientRequestOutcome.CONNECTION_CLOSED
        payload = Payload(data, request.dataType, request.group, self._connection.user_id)
        excluded = {self._connection.id} if request.noEcho else ()
        await self._hub.deliver(payload, tuple(self._hub.get_group_connections(request.group)), excluded)
        return ClientRequestOutcome.DONE

    async def _send_event(self, request: EventRequest) -> ClientRequestOutcome:
        """Send an event to the event handler, if the handler receives events with this name."""
        data = self._encode_data_or_close_connection(request)
        if data is None:
            return ClientRequestOutcome.CONNECTION_CLOSED
        if self._events.has_handler_for_event(request.event):
            await forward_event(self._connection, self._events, self._subject, request.event, request.dataType, data)
        return ClientRequestOutcome.DONE

    def _encode_data_or_close_connection(self, request: SendToGroup | EventRequest) -> bytes | None:
        """Convert the data of a request to bytes; for data of a wrong type, close the connection and return None."""
        match request.dataType, request.data:
            case DataType.JSON, value:
                with contextlib.suppress(TypeError):  # orjson cannot serialise a number of this size
                    return orjson.dumps(value)
            case DataType.TEXT, str(text):
                return text.encode()
            case DataType.BINARY, str(text):
                with contextlib.suppress(binascii.Error):
                    return base64.b64decode(text, validate=True)
        self._connection.close(POLICY, "The property data does not match its dataType.")
        return None

    def _acknowledge_request(self, ack_id: int, *, succeeded: bool) -> None:
        if not succeeded:
            self._send_error_ack(
                ack_id, "Forbidden", "The client does not have the permission that this request requires."
            )
            return
        self._acked[ack_id] = None
        if len(self._acked) > _MAX_KNOWN_ACKS:
            self._acked.popitem(last=False)
        self._connection.send_system_message({"type": "ack", "ackId": ack_id, "success": True})

    def _send_error_ack(self, ack_id: int, name: str, message: str) -> None:
        error = {"name": name, "message": message}
        self._connection.send_system_message({"type": "ack", "ackId": ack_id, "success": False, "error": error})


async def forward_event(
    connection: ClientConnection,
    events: HubEvents,
    subject: EventSubject,
    event_name: str,
    data_type: DataType,
    data: bytes,
) -> None:
    """Send a client's message to the event handler and the handler's response to the client.

    If the handler does not respond or rejects the message, close the connection of the client.
    """
    try:
        response = await events.send_user_event(event_name, subject, _TYPES[data_type], data)
    except UpstreamError:
        connection.close(POLICY, "The event handler does not respond.")
        return
    if not 200 <= response.status < 300:  # noqa: PLR2004  any 2xx
        connection.close(POLICY, "The event handler rejects the message.")
        return
    if "ce-connectionstate" in response.headers:
        connection.state = subject.state = response.headers["ce-connectionstate"]
        expiry = find_state_expiry(connection.state)
        if expiry is not None:
            connection.close_at(expiry)
    if response.body:
        connection.send_and_check_if_wait_needed(Payload(response.body, _read_response_data_type(response)))


def _read_response_data_type(response: HandlerResponse) -> DataType:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    for data_type, name in _TYPES.items():
        if media_type == name.partition(";")[0]:
            return data_type
    return DataType.BINARY


async def serve_client(
    scope: Message, receive: Receive, send: Send, hub: Hub, events: HubEvents, access_key: str, settings: HubSettings
) -> None:
    """Serve one WebSocket client of a hub, from its handshake until it disconnects."""
    await receive()
    connection_id = uuid.uuid4().hex
    try:
        admission = await authorize_client(
            scope, hub.name, connection_id, access_key, events, allow_anonymous=settings.anonymous
        )
    except WorkspaceError as error:
        await reject_handshake(scope, send, error)
        return
    except HandlerRejectionError as error:
        response = error.response
        headers = {name: value for name, value in response.headers.items() if name not in _HOP_HEADERS}
        await _send_handshake_response(send, response.status, headers, response.body)
        return
    except Exception:
        _LOGGER.exception("a WebSocket handshake failed unexpectedly")
        await reject_handshake(scope, send, _INTERNAL_ERROR)
        return
    forwarded = _encode_headers({k: v for k, v in admission.headers.items() if k in settings.forwarded_headers})
    await send({"type": "websocket.accept", "subprotocol": admission.subprotocol, "headers": forwarded})
    connection = _build_connection(scope, connection_id, admission)
    prelude = settings.prelude(connection, read_query_parameters(scope)) if settings.prelude is not None else None
    prelude_task = (
        None if prelude is None else asyncio.create_task(_run_prelude_or_close_connection(connection, prelude))
    )
    try:
        await _serve_connection(connection, admission, receive, hub, events, _read_requested_host_and_port(scope))
    finally:
        if prelude_task is not None:
            prelude_task.cancel()


async def _run_prelude_or_close_connection(connection: ClientConnection, prelude: Coroutine[None, None, None]) -> None:
    """Run the work that precedes live messages, such as a replay; if it fails, close the client's connection."""
    try:
        await prelude
    except Exception:
        _LOGGER.exception("the work before live messages, such as a replay, failed; the client's connection is closed")
        connection.close(BROKEN, "The work before live messages, such as a replay, failed.")


async def reject_handshake(scope: Message, send: Send, error: WorkspaceError) -> None:
    """Reject a WebSocket handshake with an HTTP error and a problem document (RFC 9457)."""
    reply = build_error_reply(error, read_or_create_request_id(scope["headers"]))
    await _send_handshake_response(send, reply.status, reply.headers, reply.body)


async def _send_handshake_response(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": _encode_headers(headers)})
    await send({"type": "websocket.http.response.body", "body": body})


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _build_connection(scope: Message, connection_id: str, admission: AcceptedClient) -> ClientConnection:
    wire: ClientSocket = scope["extensions"][EXTENSION]
    connection = ClientConnection(
        connection_id,
        wire,
        user_id=admission.user_id,
        subprotocol=admission.subprotocol,
        roles=admission.roles,
    )
    connection.state = admission.state
    if admission.expires_at is not None:
        connection.close_at(admission.expires_at)
    return connection


async def _serve_connection(
    connection: ClientConnection,
    admission: AcceptedClient,
    receive: Receive,
    hub: Hub,
    events: HubEvents,
    host_and_port: str,
) -> None:
    subject = EventSubject(
        hub.name, connection.id, connection.user_id, connection.subprotocol, connection.state, host_and_port
    )
    session: Session
    if connection.subprotocol == JSON_SUBPROTOCOL:
        session = JsonSession(connection, hub, events, subject)
        connection.send_system_message(_build_connected_message(connection))
    else:
        session = PlainSession(connection, events, subject)
    hub.add(connection, admission.groups)
    connected_task: asyncio.Task[None] | None = None
    reason = ""
    try:
        connected_task = events.start_notification_if_handled("connected", subject)
        reason = await _handle_messages_and_get_close_reason(session, receive)
    finally:
        hub.remove(connection)
        events.start_notification_if_handled(
            "disconnected", subject, connected_task, reason=connection.close_reason or reason
        )


async def _handle_messages_and_get_close_reason(session: Session, receive: Receive) -> str:
    """Handle messages of the client until it disconnects; return the reason that its close frame states."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return str(message.get("reason") or "")
        await session.handle_message(message.get("text"), message.get("bytes"))


def _build_connected_message(connection: ClientConnection) -> dict[str, str]:
    document = {"type": "system", "event": "connected", "connectionId": connection.id}
    return document if connection.user_id is None else document | {"userId": connection.user_id}


def _read_requested_host_and_port(scope: Message) -> str:
    return read_host_and_port(scope, read_headers(scope))
