"""Local live stream: the gateway and the Web PubSub emulator in the process of the host."""

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
"""Most concurrent handshakes; others wait, so that requests are not delayed."""

REFUSAL_SECONDS: Final = 1.0
"""Delay of a 429 reply, so that a client that retries immediately cannot overload the host."""

_EVENTS = f"{ROUTE}/events"
_CLIENTS, _API = "/client/hubs/", "/api/hubs/"
_LIMITS = frozenset({"ratelimit", "ratelimit-policy"})
_REPLACED = frozenset({b"authorization", MOVED_HEADER.encode(), b"x-request-id"})


def access_key(path: Path) -> str:
    """Return the access key in a file that only its owner can read; a missing file is created."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(os.urandom(32).hex())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text()


class LiveStreamGateway:
    """ASGI application of the host: routes requests to the app and streams to the Web PubSub emulator.

    Args:
        app: application of the function app.
        key: access key of the emulator.
        prelude: work that runs for a client before live messages.
    """

    def __init__(self, app: Application, key: str, prelude: Prelude) -> None:
        self._app = app
        events = AsgiUpstream(app, _EVENTS)
        hub = HubSettings(
            events, frozenset({"connect", "disconnected"}), anonymous=True, prelude=prelude, forwarded_headers=_LIMITS
        )
        self._service = WebPubSubEmulator(ServiceSettings(key, {HUB: hub}, count_clients=_count_clients))
        # A client that opens streams in a loop must not block the event loop for others.
        self._handshakes = asyncio.Semaphore(HANDSHAKES)

    async def close(self) -> None:
        """Close the emulator."""
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
        """Forward a client to the emulator with the path and credential header that the gateway uses."""
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
    """Return a handshake as a plain request, for a route without WebSockets (RFC 9110 section 7.8)."""
    request = {**scope, "type": "http", "method": "GET", "scheme": "http"}

    async def body() -> Message:
        await receive()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def answer(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return request, body, answer
