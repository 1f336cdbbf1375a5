"""Runs the stand-in on the event loop of the test, with an event handler of the test's own."""

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
    """An event handler: an ASGI application that keeps what it is told and answers what the test sets."""

    told: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    allowed: str = "*"
    probes: int = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Keep an event and answer it (ASGI 3)."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        message = await receive()
        if scope["method"] == "OPTIONS":
            self.probes += 1
            await _answer(send, 200, {"webhook-allowed-origin": self.allowed}, b"")
            return
        self.told.append((headers, message["body"]))
        if headers["ce-type"].startswith("azure.webpubsub.sys.") and headers["ce-eventname"] != "connect":
            await _answer(send, 204, {}, b"")
        else:
            await _answer(send, self.status, self.headers, self.body)

    def answer(self, document: object, **headers: str) -> None:
        """Let clients in with a JSON answer."""
        self.status, self.body, self.headers = 200, json.dumps(document).encode(), headers

    def events(self) -> list[str]:
        """Return the names of the events told so far."""
        return [headers["ce-eventname"] for headers, _ in self.told]


async def _answer(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Running:
    """A stand-in that serves."""

    url: str
    service: WebPubSubEmulator
    handler: Handler
    server: Server

    def client_url(self, hub: str = "live") -> str:
        """Return the address of clients without token."""
        return f"{self.url.replace('http', 'ws')}/client/hubs/{hub}"


type Connect = Callable[..., Awaitable[ClientConnection]]


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[int]:
    """Serve on a free port until the end of the block."""
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
async def serving(settings: ServiceSettings, handler: Handler) -> AsyncIterator[Running]:
    """Serve a stand-in until the end of the block."""
    service = WebPubSubEmulator(settings)
    server = Server(service, 3, web_sockets=True)
    try:
        async with listening(server) as port:
            yield Running(f"http://127.0.0.1:{port}", service, handler, server)
    finally:
        await service.close()


def bearer(url: str, key: str = KEY, lives: int = 60, **claims: Any) -> dict[str, str]:
    """Return the header of a call to an address."""
    token = jwt.encode({"aud": url, "exp": int(time.time()) + lives, **claims}, key, algorithm="HS256")
    return {"Authorization": f"Bearer {token}"}


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  conditions are of many kinds
            await asyncio.sleep(0.01)
