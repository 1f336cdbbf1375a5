"""Web PubSub emulator with an event handler, on the event loop of a test."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from websockets.asyncio.client import ClientConnection

from emulators.web_pubsub.asgi import Message, Receive, Send
from emulators.web_pubsub.service import WebPubSubEmulator
from emulators.web_pubsub.settings import ServiceSettings
from local.http_server.server import Server

VERSION = "api-version=2024-12-01"
KEY = "an access key for tests alone, 40 bytes."
JSON = "json.webpubsub.azure.v1"


@dataclass
class Handler:
    """Fake event handler that records events and sends the replies that a test sets."""

    told: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    allowed: str = "*"
    probes: int = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Record an event and send the reply that the test has set (ASGI 3)."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        message = await receive()
        if scope["method"] == "OPTIONS":
            self.probes += 1
            await _send_reply(send, 200, {"webhook-allowed-origin": self.allowed}, b"")
            return
        self.told.append((headers, message["body"]))
        if headers["ce-type"].startswith("azure.webpubsub.sys.") and headers["ce-eventname"] != "connect":
            await _send_reply(send, 204, {}, b"")
        else:
            await _send_reply(send, self.status, self.headers, self.body)

    def set_response(self, document: object, **headers: str) -> None:
        """Set the JSON response that the handler returns for a connect event."""
        self.status, self.body, self.headers = 200, json.dumps(document).encode(), headers

    def events(self) -> list[str]:
        """Return the names of all events that the handler has received."""
        return [headers["ce-eventname"] for headers, _ in self.told]


async def _send_reply(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Running:
    """Running Web PubSub emulator with its event handler."""

    url: str
    service: WebPubSubEmulator
    handler: Handler
    server: Server

    def client_url(self, hub: str = "live") -> str:
        """Return the URL at which clients connect, without a token."""
        return f"{self.url.replace('http', 'ws')}/client/hubs/{hub}"


type Connect = Callable[..., Awaitable[ClientConnection]]


@asynccontextmanager
async def run_server(server: Server) -> AsyncIterator[int]:
    """Context manager: run a server on a free port and yield the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        task = asyncio.create_task(server.serve([listener]))
        try:
            await server.listening.wait()
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def run_emulator(settings: ServiceSettings, handler: Handler) -> AsyncIterator[Running]:
    """Context manager: run an emulator with an event handler for the duration of the block."""
    service = WebPubSubEmulator(settings)
    server = Server(service, 3, web_sockets=True)
    try:
        async with run_server(server) as port:
            yield Running(f"http://127.0.0.1:{port}", service, handler, server)
    finally:
        await service.close()


def build_authorization(url: str, key: str = KEY, lifetime_seconds: int = 60, **claims: Any) -> dict[str, str]:
    """Return the Authorization header for a request to this URL."""
    token = jwt.encode({"aud": url, "exp": int(time.time()) + lifetime_seconds, **claims}, key, algorithm="HS256")
    return {"Authorization": f"Bearer {token}"}


async def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until the condition is true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  conditions of any kind
            await asyncio.sleep(0.01)
