"""Where events are posted to: an application in this process, or an address."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

import aiohttp

from emulators.web_pubsub.asgi import Application, Message

_MAX_RESPONSE_BYTES = 1024 * 1024
_SECONDS = 30.0


class UpstreamError(Exception):
    """The event handler gives no answer."""


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """What the event handler answers.

    Attributes:
        status: the HTTP status.
        headers: with names in lower case.
        body: at most 1 MiB.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Upstream(Protocol):
    """A way to an event handler."""

    async def request(self, method: str, event: str, headers: Mapping[str, str], body: bytes) -> HandlerResponse:
        """Send one request and return its answer, whatever its status.

        Args:
            method: POST for an event, OPTIONS for the question whether events are wanted.
            event: the event's name, for addresses that hold it.
            headers: as they are sent.
            body: as it is sent.

        Raises:
            UpstreamError: no answer came, or one over 1 MiB.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class HttpUpstream:
    """An event handler at an address, in which ``{event}`` stands for the event's name."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def request(self, method: str, event: str, headers: Mapping[str, str], body: bytes) -> HandlerResponse:
        """Send one request, without following redirects."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS))
        url = self._url.replace("{event}", quote(event, safe=""))
        try:
            async with self._session.request(method, url, headers=headers, data=body, allow_redirects=False) as reply:
                content = await reply.content.read(_MAX_RESPONSE_BYTES + 1)
                while not reply.content.at_eof() and len(content) <= _MAX_RESPONSE_BYTES:
                    content += await reply.content.read(_MAX_RESPONSE_BYTES + 1)
                if len(content) > _MAX_RESPONSE_BYTES:
                    raise UpstreamError("the answer is too large")
                return HandlerResponse(
                    reply.status, {name.lower(): value for name, value in reply.headers.items()}, content
                )
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise UpstreamError(type(error).__name__) from None

    async def close(self) -> None:
        """Close the client's connections."""
        if self._session is not None:
            await self._session.close()


class AsgiUpstream:
    """An event handler that is a route of an ASGI application in this process."""

    def __init__(self, application: Application, path: str, host: str = "127.0.0.1") -> None:
        """Take the application, the route, in which ``{event}`` stands for the event's name, and a host to name."""
        self._application = application
        self._path = path
        self._host = host

    async def request(self, method: str, event: str, headers: Mapping[str, str], body: bytes) -> HandlerResponse:
        """Call the application; what it raises is no answer."""
        target = urlsplit(self._path.replace("{event}", quote(event, safe="")))
        sent = {"host": self._host, **headers, "content-length": str(len(body))}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target.path,
            "raw_path": target.path.encode("ascii"),
            "root_path": "",
            "query_string": target.query.encode("ascii"),
            "headers": [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in sent.items()],
            "server": ("127.0.0.1", 0),
            "client": ("127.0.0.1", 0),
        }
        exchange = _AsgiCall(body)
        try:
            await self._application(scope, exchange.receive, exchange.send)
        except Exception as error:
            raise UpstreamError(type(error).__name__) from error
        return exchange.answer()

    async def close(self) -> None:
        """Nothing is held."""


class _AsgiCall:
    """One request to an application, and what it sends back."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._status = 0
        self._headers: Iterable[tuple[bytes, bytes]] = ()
        self._parts: list[bytes] = []

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = message.get("headers", ())
        else:
            self._parts.append(message.get("body", b""))

    def answer(self) -> HandlerResponse:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers}
        return HandlerResponse(self._status, headers, b"".join(self._parts))
