"""Connections to event handlers, which receive events about clients: over HTTP, or as an ASGI application."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

import aiohttp

from emulators.web_pubsub.asgi import Application, Message

_MAX_RESPONSE_BYTES = 1024 * 1024
_SECONDS = 30.0


class UpstreamError(Exception):
    """The event handler is missing, refuses all events, does not respond, or sends a response that is too large."""


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """HTTP response of an event handler.

    Attributes:
        status: HTTP status.
        headers: headers of the response, by name in lower case.
        body: body of the response; over HTTP, at most 1 MiB.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Upstream(Protocol):
    """Port to an event handler."""

    async def send_request(
        self, method: str, event_name: str, headers: Mapping[str, str], body: bytes
    ) -> HandlerResponse:
        """Send one request to the event handler and return its response; an error status does not raise an exception.

        Args:
            method: POST to send an event, OPTIONS to ask whether the event handler accepts events of this service.
            event_name: name of the event, for URLs that contain the name.
            headers: headers of the request.
            body: body of the request.

        Raises:
            UpstreamError: the handler does not respond, or the response exceeds 1 MiB.
        """
        ...

    async def close(self) -> None:
        """Close the connections to the event handler."""
        ...


class HttpUpstream:
    """Connection to the event handler at a URL; ``{event}`` in the URL is replaced by the event name."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def send_request(
        self, method: str, event_name: str, headers: Mapping[str, str], body: bytes
    ) -> HandlerResponse:
        """Send one HTTP request to the URL of the event handler; redirects are not followed."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS))
        url = self._url.replace("{event}", quote(event_name, safe=""))
        try:
            async with self._session.request(method, url, headers=headers, data=body, allow_redirects=False) as reply:
                content = await reply.content.read(_MAX_RESPONSE_BYTES + 1)
                while not reply.content.at_eof() and len(content) <= _MAX_RESPONSE_BYTES:
                    content += await reply.content.read(_MAX_RESPONSE_BYTES + 1)
                if len(content) > _MAX_RESPONSE_BYTES:
                    raise UpstreamError("the response of the event handler is larger than 1 MiB")
                return HandlerResponse(
                    reply.status, {name.lower(): value for name, value in reply.headers.items()}, content
                )
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise UpstreamError(f"the request to the event handler failed: {type(error).__name__}") from None

    async def close(self) -> None:
        """Close the connections of the HTTP client."""
        if self._session is not None:
            await self._session.close()


class AsgiUpstream:
    """Connection to an event handler at a path of an ASGI application in this process."""

    def __init__(self, application: Application, path: str, host: str = "127.0.0.1") -> None:
        """Create a connection to an application; ``{event}`` in ``path`` is replaced by the event name."""
        self._application = application
        self._path = path
        self._host = host

    async def send_request(
        self, method: str, event_name: str, headers: Mapping[str, str], body: bytes
    ) -> HandlerResponse:
        """Call the ASGI application with a request; an exception in the application becomes an UpstreamError."""
        call = _AsgiCall(body)
        try:
            scope = self._build_scope(
                method, event_name, {"host": self._host, **headers, "content-length": str(len(body))}
            )
            await self._application(scope, call.receive, call.send)
        except Exception as error:
            raise UpstreamError(f"the request to the event handler failed: {type(error).__name__}") from error
        return call.build_response()

    async def close(self) -> None:
        """Do nothing, because there are no network connections."""

    def _build_scope(self, method: str, event_name: str, headers: Mapping[str, str]) -> Message:
        target = urlsplit(self._path.replace("{event}", quote(event_name, safe="")))
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target.path,
            "raw_path": target.path.encode("ascii"),
            "root_path": "",
            "query_string": target.query.encode("ascii"),
            # UTF-8, as the client of HttpUpstream encodes them: a user id can have any characters.
            "headers": [(name.lower().encode("ascii"), value.encode()) for name, value in headers.items()],
            "server": ("127.0.0.1", 0),
            "client": ("127.0.0.1", 0),
        }


class _AsgiCall:
    """One request to an ASGI application; collects the messages of the response."""

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

    def build_response(self) -> HandlerResponse:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers}
        return HandlerResponse(self._status, headers, b"".join(self._parts))
