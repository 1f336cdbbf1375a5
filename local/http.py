"""The ASGI application: turns HTTP requests into invocations and their answers into responses."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from local import cookies
from local.admin import Admin
from local.protos import RpcHttp, TypedData
from local.routes import Match, RouteTable
from local.worker import FunctionFailed, invoke
from shared.logs import fields, logger

MAX_BODY_BYTES = 104_857_600
"""The Functions host's own limit of a request body, 100 MB."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LOGGER = logger("local.http")
_NO_BODY = frozenset({204, 304})
_OWN_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


class _TooLarge(Exception):  # noqa: N818  a refusal, not an error
    """The request's body is over the limit."""


class _Gone(Exception):  # noqa: N818  an event, not an error
    """The caller went away before the whole request was here."""


class HttpApp:
    """Serves the HTTP functions of an app, and the host's own administration under ``/admin``."""

    def __init__(self, routes: RouteTable, admin: Admin) -> None:
        self._routes = routes
        self._admin = admin

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI 3)."""
        try:
            body = await _body(scope["headers"], receive)
        except _TooLarge:
            await _reply(send, 413, [(b"connection", b"close")], b"")
            return
        except _Gone:
            return
        raw_path = scope["raw_path"].decode("latin-1")
        if raw_path.startswith("/admin/"):
            status, text = self._admin.handle(scope, raw_path, body)
            await _reply(send, status, [(b"content-type", b"text/plain; charset=utf-8")], text.encode())
            return
        match = self._routes.match(raw_path, scope["method"])
        if match is None:
            await _reply(send, 404, [], b"")
            return
        await _respond(match, _request(scope, raw_path, match, body), send, is_head=scope["method"] == "HEAD")


async def _respond(match: Match, request: RpcHttp, send: Send, *, is_head: bool) -> None:
    try:
        answer = await invoke(
            match.function, TypedData(http=request), traceparent=request.headers.get("traceparent", "")
        )
        status, headers, body = _response(answer, is_head=is_head)
    except FunctionFailed as failure:
        _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
            "a function failed: %s", failure, extra=fields(function=match.function.name, exception=failure.stack_trace)
        )
        await _reply(send, 500, [], b"")
        return
    except ValueError:
        _LOGGER.exception("a function's response cannot be sent", extra=fields(function=match.function.name))
        await _reply(send, 500, [], b"")
        return
    await _reply(send, status, headers, body)


async def _body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes:
    for name, value in headers:
        if name == b"content-length" and int(value) > MAX_BODY_BYTES:
            raise _TooLarge
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Gone
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return first
    parts, size = [first], len(first)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise _TooLarge
    return b"".join(parts)


def _request(scope: Message, raw_path: str, match: Match, body: bytes) -> RpcHttp:
    headers = _headers(scope["headers"])
    query = scope["query_string"].decode("latin-1")
    host = headers.get("host") or "{}:{}".format(*scope["server"])
    return RpcHttp(
        method=scope["method"],
        url=f"{scope['scheme']}://{host}{raw_path}{'?' if query else ''}{query}",
        headers=headers,
        params=match.parameters,
        query=_query(query) if query else {},
        body=TypedData(bytes=body),
    )


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name; repeated ones are joined, as the Functions host does."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _query(text: str) -> dict[str, str]:
    """Return query parameters; repeated ones are joined and empty ones left out, as the Functions host does."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(text):
        query[name] = f"{query[name]},{value}" if name in query else value
    return query


def _response(answer: TypedData | None, *, is_head: bool) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of a function's answer.

    Raises:
        ValueError: a status or header that HTTP cannot carry.
    """
    if answer is None:
        return 204, [], b""
    if answer.kind != "http":
        text = answer.value if isinstance(answer.value, bytes) else str(answer.value).encode()
        return 200, [(b"content-type", b"text/plain; charset=utf-8")], text
    http = answer.value
    headers = [(b"set-cookie", cookies.header(cookie).encode("latin-1")) for cookie in http.cookies or ()]
    for name, value in http.headers.items():
        lower = name.lower()
        if lower not in _OWN_HEADERS or (is_head and lower == "content-length"):
            headers.append((lower.encode("latin-1"), value.encode("latin-1")))
    return int(http.status_code), headers, http.body.value


async def _reply(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    if status in _NO_BODY:
        body = b""
    elif not any(name == b"content-length" for name, _ in headers):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
