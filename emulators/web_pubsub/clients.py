"""Client connections from the handshake to the disconnect."""

import asyncio
import uuid
from collections.abc import Coroutine, Mapping

from emulators.web_pubsub.asgi import Message, Receive, Send, read_headers, read_origin, read_query
from emulators.web_pubsub.connection import BROKEN, JSON_SUBPROTOCOL, ClientConnection
from emulators.web_pubsub.error_replies import error_reply, request_id
from emulators.web_pubsub.events import EventSubject, HubEvents
from emulators.web_pubsub.handshake import AcceptedClient, HandlerRejectionError, authorize_client
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.outbox import ClientSocket
from emulators.web_pubsub.sessions import JsonSession, PlainSession, Session
from emulators.web_pubsub.settings import HubSettings
from emulators.web_pubsub.sockets import EXTENSION
from shared.errors import WorkspaceError
from shared.observability.logs import get_logger

_LOGGER = get_logger("emulators.web_pubsub")
_HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


async def serve_client(
    scope: Message, receive: Receive, send: Send, hub: Hub, events: HubEvents, access_key: str, settings: HubSettings
) -> None:
    """Serve one client of a hub until it disconnects."""
    await receive()
    connection_id = uuid.uuid4().hex
    try:
        admission = await authorize_client(scope, connection_id, access_key, events, anonymous=settings.anonymous)
    except WorkspaceError as error:
        await reject_handshake(scope, send, error)
        return
    except HandlerRejectionError as error:
        response = error.response
        headers = {name: value for name, value in response.headers.items() if name not in _HOP_HEADERS}
        await _respond(send, response.status, headers, response.body)
        return
    forwarded = {name: value for name, value in admission.headers.items() if name in settings.forwarded_headers}
    await send({"type": "websocket.accept", "subprotocol": admission.subprotocol, "headers": _raw(forwarded)})
    connection = _connection(scope, connection_id, admission)
    prelude = settings.prelude(connection, read_query(scope)) if settings.prelude is not None else None
    prelude_task = None if prelude is None else asyncio.create_task(_run_prelude(connection, prelude))
    try:
        await _serve(connection, admission, receive, hub, events, _host(scope))
    finally:
        if prelude_task is not None:
            prelude_task.cancel()


async def _run_prelude(connection: ClientConnection, prelude: Coroutine[None, None, None]) -> None:
    try:
        await prelude
    except Exception:
        _LOGGER.exception("the prelude failed; the client is closed")
        connection.close(BROKEN, "the prelude failed")


async def reject_handshake(scope: Message, send: Send, error: WorkspaceError) -> None:
    """Reject a handshake with a problem document."""
    reply = error_reply(error, request_id(scope["headers"]))
    await _respond(send, reply.status, reply.headers, reply.body)


async def _respond(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": _raw(headers)})
    await send({"type": "websocket.http.response.body", "body": body})


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _connection(scope: Message, connection_id: str, admission: AcceptedClient) -> ClientConnection:
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


async def _serve(
    connection: ClientConnection, admission: AcceptedClient, receive: Receive, hub: Hub, events: HubEvents, origin: str
) -> None:
    subject = EventSubject(connection.id, connection.user_id, connection.subprotocol, connection.state, origin)
    session: Session
    if connection.subprotocol == JSON_SUBPROTOCOL:
        session = JsonSession(connection, hub, events, subject)
        connection.send_system_message(_connected(connection))
    else:
        session = PlainSession(connection, events, subject)
    hub.add(connection, admission.groups)
    connected_task: asyncio.Task[None] | None = None
    reason = ""
    try:
        connected_task = events.notify("connected", subject)
        reason = await _read(session, receive)
    finally:
        hub.remove(connection)
        events.notify("disconnected", subject, connected_task, reason=connection.close_reason or reason)


async def _read(session: Session, receive: Receive) -> str:
    """Handle messages of the client until it disconnects, and return the reason."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return str(message.get("reason") or "")
        await session.handle_message(message.get("text"), message.get("bytes"))


def _connected(connection: ClientConnection) -> dict[str, str]:
    document = {"type": "system", "event": "connected", "connectionId": connection.id}
    return document if connection.user_id is None else document | {"userId": connection.user_id}


def _host(scope: Message) -> str:
    return read_origin(scope, read_headers(scope))
