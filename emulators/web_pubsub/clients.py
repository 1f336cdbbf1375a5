"""Clients: from the handshake to the end of the connection."""

import asyncio
import uuid
from collections.abc import Coroutine, Mapping

from emulators.web_pubsub.asgi import Message, Receive, Send, headers_of, origin_of, query_of
from emulators.web_pubsub.connection import BROKEN, JSON_SUBPROTOCOL, Connection
from emulators.web_pubsub.events import Events, Subject
from emulators.web_pubsub.handshake import Admission, RefusedError, admit
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.outbox import Wire
from emulators.web_pubsub.sessions import JsonSession, PlainSession, Session
from emulators.web_pubsub.settings import HubSettings
from emulators.web_pubsub.sockets import EXTENSION
from local.http_server.error_replies import refusal, request_id
from shared.errors import WorkspaceError
from shared.observability.logs import logger

_LOGGER = logger("emulators.web_pubsub")
_HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


async def serve_client(
    scope: Message, receive: Receive, send: Send, hub: Hub, events: Events, access_key: str, settings: HubSettings
) -> None:
    """Serve one client of a hub until it is gone."""
    await receive()
    connection_id = uuid.uuid4().hex
    try:
        admission = await admit(scope, connection_id, access_key, events, anonymous=settings.anonymous)
    except WorkspaceError as error:
        await refuse(scope, send, error)
        return
    except RefusedError as error:
        answer = error.answer
        headers = {name: value for name, value in answer.headers.items() if name not in _HOP_HEADERS}
        await _respond(send, answer.status, headers, answer.body)
        return
    passed = {name: value for name, value in admission.headers.items() if name in settings.passed}
    await send({"type": "websocket.accept", "subprotocol": admission.subprotocol, "headers": _raw(passed)})
    connection = _connection(scope, connection_id, admission)
    prelude = settings.prelude(connection, query_of(scope)) if settings.prelude is not None else None
    playing = None if prelude is None else asyncio.create_task(_play(connection, prelude))
    try:
        await _serve(connection, admission, receive, hub, events, _host(scope))
    finally:
        if playing is not None:
            playing.cancel()


async def _play(connection: Connection, prelude: Coroutine[None, None, None]) -> None:
    try:
        await prelude
    except Exception:
        _LOGGER.exception("what comes first cannot be sent; the client is closed")
        connection.close(BROKEN, "what comes first cannot be sent")


async def refuse(scope: Message, send: Send, error: WorkspaceError) -> None:
    """Answer a handshake with a problem document in place of the upgrade."""
    reply = refusal(error, request_id(scope["headers"]))
    await _respond(send, reply.status, reply.headers, reply.body)


async def _respond(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": _raw(headers)})
    await send({"type": "websocket.http.response.body", "body": body})


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _connection(scope: Message, connection_id: str, admission: Admission) -> Connection:
    wire: Wire = scope["extensions"][EXTENSION]
    connection = Connection(
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
    connection: Connection, admission: Admission, receive: Receive, hub: Hub, events: Events, origin: str
) -> None:
    subject = Subject(connection.id, connection.user_id, connection.subprotocol, connection.state, origin)
    session: Session
    if connection.subprotocol == JSON_SUBPROTOCOL:
        session = JsonSession(connection, hub, events, subject)
        connection.tell(_connected(connection))
    else:
        session = PlainSession(connection, events, subject)
    hub.add(connection, admission.groups)
    told: asyncio.Task[None] | None = None
    reason = ""
    try:
        told = events.tell("connected", subject)
        reason = await _read(session, receive)
    finally:
        hub.remove(connection)
        events.tell("disconnected", subject, told, reason=connection.close_reason or reason)


async def _read(session: Session, receive: Receive) -> str:
    """Take what the client sends until it is gone, and return why it went."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return str(message.get("reason") or "")
        await session.take(message.get("text"), message.get("bytes"))


def _connected(connection: Connection) -> dict[str, str]:
    document = {"type": "system", "event": "connected", "connectionId": connection.id}
    return document if connection.user_id is None else document | {"userId": connection.user_id}


def _host(scope: Message) -> str:
    return origin_of(scope, headers_of(scope))
