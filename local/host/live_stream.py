"""The live stream on a desk: what the gateway and Web PubSub are in the cloud, in the host's own process."""

import asyncio
import os
import uuid
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Final

from emulators.web_pubsub.asgi import Application
from emulators.web_pubsub.clients import reject_handshake
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import HubSettings, Prelude, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from local.http_server.application import Message, Receive, Send
from local.http_server.authority import check_host
from local.http_server.error_replies import request_id
from shared.errors import WorkspaceError
from shared.live_stream.credentials import MOVED_HEADER
from shared.observability.metrics import change

HUB = "live"
ROUTE = "/oi-api/live-stream"
HANDSHAKES: Final = 2
"""Handshakes of live streams that are worked on together; the others wait, so that requests have their turns."""

REFUSAL_SECONDS: Final = 1.0
"""A stream beyond a limit is refused after this time, so that a client that repeats at once cannot fill the host."""

_EVENTS = f"{ROUTE}/events"
_CLIENTS, _API = "/client/hubs/", "/api/hubs/"
_LIMITS = frozenset({"ratelimit", "ratelimit-policy"})
_REPLACED = frozenset({b"authorization", MOVED_HEADER.encode(), b"x-request-id"})


def access_key(path: Path) -> str:
    """Return the access key in a file, made at the first start; only its owner may read it."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(os.urandom(32).hex())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text()


class LiveStreamGateway:
    """Everything that the host serves: the app, and Web PubSub's stand-in where it stands in the cloud.

    Args:
        app: the function app's routes.
        key: the stand-in's access key.
        prelude: what a client is sent first.
    """

    def __init__(self, app: Application, key: str, prelude: Prelude) -> None:
        self._app = app
        events = AsgiUpstream(app, _EVENTS)
        hub = HubSettings(
            events, frozenset({"connect", "disconnected"}), anonymous=True, prelude=prelude, forwarded_headers=_LIMITS
        )
        self._service = WebPubSubEmulator(ServiceSettings(key, {HUB: hub}, count_clients=_count_clients))
        # A client that opens streams without a pause must leave turns of the event loop to others.
        self._handshakes = asyncio.Semaphore(HANDSHAKES)

    async def close(self) -> None:
        """Let go of the stand-in."""
        await self._service.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request or client (ASGI 3)."""
        path = scope["raw_path"].decode("latin-1")
        if scope["type"] == "http":
            serve = self._service if path.startswith(_API) else self._app
            await serve(scope, receive, send)
        elif path.startswith(_CLIENTS):
            await self._service(scope, receive, send)
        elif path.rstrip("/").lower() == ROUTE:
            await self._upgrade(scope, receive, send)
        else:
            await self._app(*_without_upgrade(scope, receive, send))

    async def _upgrade(self, scope: Message, receive: Receive, send: Send) -> None:
        """Send a client on to the stand-in, as the gateway does: at its address, the credential in another header."""
        given_id = request_id(scope["headers"])
        try:
            check_host(scope["headers"], scope["http_version"])
        except WorkspaceError as error:
            await receive()
            await reject_handshake(scope, send, error)
            return
        headers = [(name, value) for name, value in scope["headers"] if name not in _REPLACED]
        moved = [(MOVED_HEADER.encode(), value) for name, value in scope["headers"] if name == b"authorization"]
        target = f"{_CLIENTS}{HUB}"
        led = {
            "path": target,
            "raw_path": target.encode(),
            "headers": [*headers, *moved, (b"x-request-id", given_id.encode())],
        }

        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._handshakes)

            async def answer(message: Message) -> None:
                if message["type"] == "websocket.accept":
                    message["headers"] = [*message.get("headers", ()), (b"x-request-id", given_id.encode())]
                await turn.aclose()
                if message.get("status") == HTTPStatus.TOO_MANY_REQUESTS:
                    await asyncio.sleep(REFUSAL_SECONDS)
                await send(message)

            await self._service({**scope, **led}, receive, answer)


def _count_clients(change_of_count: int) -> None:
    change("workspace.live.clients", change_of_count)


def _without_upgrade(scope: Message, receive: Receive, send: Send) -> tuple[Message, Receive, Send]:
    """Return a handshake as the plain request that it is where nothing can be upgraded to (RFC 9110 section 7.8)."""
    request = {**scope, "type": "http", "method": "GET", "scheme": "http"}

    async def body() -> Message:
        await receive()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def answer(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return request, body, answer
