"""ASGI application that converts HTTP requests to calls of the app's functions, and the results to responses."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from emulators.durable.management_urls import PREFIX
from emulators.durable.webhooks import WebhookReply, Webhooks
from local.host.worker import FunctionFailed, invoke_function
from local.host.worker_protocol import RpcHttp, TypedData
from local.http_server.admin import PREFIX as ADMIN
from local.http_server.admin import AdminHandler
from local.http_server.body_memory import BodyMemory
from local.http_server.error_replies import (
    add_version_header_if_rest,
    build_error_reply,
    read_or_create_request_id,
)
from local.http_server.files import SignedLinkHandler, wait_for_disconnect
from local.http_server.request_head import check_host_header, check_request_target, check_single_idempotency_key
from local.http_server.routes import RouteMatch, RouteTable
from local.http_server.uploads import UploadInterruptedError
from local.sign_in.exchange import PATH as SIGN_IN
from local.sign_in.exchange import SignInExchange
from shared.backends.embedded.file_links import PATH as FILES
from shared.errors import Kind, WorkspaceError
from shared.http.load_shedding import LoadShedder
from shared.http.messages import Reply, Request
from shared.http.request_span import record_rejected_request
from shared.http.security_headers import SECURITY_HEADERS
from shared.http.size_limits import build_body_too_large_error
from shared.observability.logs import fields, get_logger
from shared.warm_queries.disconnects import watch_for_disconnect

MAX_BODY_BYTES = 104_857_600
"""Maximum size in bytes of a request body, as on the Functions host: 100 MB."""

MAX_HOST_BODY_BYTES = 1024
"""Maximum size in bytes of a request body that the host itself parses, in the event loop and without a token."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HttpResponse = tuple[int, list[tuple[bytes, bytes]], bytes]
"""HTTP response: status, headers and body."""

_LOGGER = get_logger("local.http")
_NO_BODY = frozenset({204, 304})
_GUARDING = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_OWN_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


_OTHER_ERROR_FORMATS: Final = ("/v1/", "/oauth2/")
"""Paths of GraphQL and OAuth, whose errors are no problem documents; the app rejects these requests under overload."""


class _ClientDisconnectedError(Exception):
    """The client disconnected before it received a response."""


class HttpApp:
    """ASGI application that serves the HTTP functions, the administration API and stored files."""

    def __init__(
        self,
        routes: RouteTable,
        admin: AdminHandler,
        files: SignedLinkHandler,
        webhooks: Webhooks | None = None,
        sign_in: SignInExchange | None = None,
        load_shedder: LoadShedder | None = None,
    ) -> None:
        """Store the handlers.

        ``load_shedder`` queues or rejects requests under overload; None disables this protection.
        """
        self._routes = routes
        self._admin = admin
        self._files = files
        self._webhooks = webhooks
        self._sign_in = sign_in
        self._load_shedder = load_shedder
        self._body_memory = BodyMemory()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI 3)."""
        given_id, begun = read_or_create_request_id(scope["headers"]), time.perf_counter()
        send = _wrap_send_with_security_headers(send)
        response: HttpResponse | Reply | None
        try:
            if scope["raw_path"].startswith(FILES.encode()):
                response = await self._serve_file_or_build_error(scope, receive, send, given_id)
            else:
                response = await self._handle_http_request(scope, receive, given_id)
        except _ClientDisconnectedError:
            return
        except asyncio.CancelledError:
            # The drain has ended; this reply ends the task.
            stopping = WorkspaceError(
                Kind.UNAVAILABLE, "HOST_STOPPING", "The host is stopping; send the request again."
            )
            response = build_error_reply(stopping, given_id, close_connection=True)
        except Exception:
            _LOGGER.exception("the host failed", extra=fields(requestId=given_id))
            response = build_error_reply(
                _build_internal_error("The local host failed; see its log."), given_id, close_connection=True
            )
        if isinstance(response, Reply):
            add_version_header_if_rest(response, scope["raw_path"])
            record_rejected_request(
                _build_request_for_trace_span(scope), given_id, response, time.perf_counter() - begun
            )
            response = _reply_to_http_response(response)
        if response is not None:
            await _send_reply(send, *response)

    async def _serve_file_or_build_error(
        self, scope: Message, receive: Receive, send: Send, client_request_id: str
    ) -> Reply | None:
        """Process a request for a stored file, and send the file to the client.

        Return None if the response was sent, else the error reply that the caller must send.
        """
        try:
            check_host_header(scope["headers"], scope["http_version"])
            await self._files.serve(scope, receive, send, client_request_id)
        except WorkspaceError as error:
            return build_error_reply(error, client_request_id, close_connection=True)
        except UploadInterruptedError:
            raise _ClientDisconnectedError from None
        return None

    async def _handle_http_request(
        self, scope: Message, receive: Receive, client_request_id: str
    ) -> HttpResponse | Reply:
        """Return the response to a request: an ``HttpResponse``, or a ``Reply`` if the host itself reports an error."""
        with self._body_memory.open_body_byte_counter() as count_bytes:
            return await self._read_and_dispatch_request(scope, receive, client_request_id, count_bytes)

    async def _read_and_dispatch_request(
        self, scope: Message, receive: Receive, client_request_id: str, count_bytes: Callable[[int], None]
    ) -> HttpResponse | Reply:
        try:
            check_host_header(scope["headers"], scope["http_version"])
            check_single_idempotency_key(scope["headers"])
            check_request_target(scope["raw_path"].decode("latin-1"))
            limit = MAX_HOST_BODY_BYTES if self._is_host_route(scope["raw_path"]) else MAX_BODY_BYTES
            body = await _read_body(scope["headers"], receive, limit, count_bytes)
        except WorkspaceError as error:
            return build_error_reply(error, client_request_id, close_connection=True)
        with watch_for_disconnect(lambda: wait_for_disconnect(receive)) as watch:
            try:
                return await self._dispatch_request(scope, body, client_request_id)
            except WorkspaceError as error:
                return build_error_reply(error, client_request_id)
            except asyncio.CancelledError:
                if not watch.has_cancelled:
                    raise
                _LOGGER.info("a client disconnected; its query is stopped", extra=fields(requestId=client_request_id))
                raise _ClientDisconnectedError from None

    def _is_host_route(self, raw_path: bytes) -> bool:
        """Return whether the host itself serves a path: the administration API, or the exchange of sign-in codes."""
        return raw_path.startswith(ADMIN.encode()) or (self._sign_in is not None and raw_path == SIGN_IN.encode())

    async def _dispatch_request(self, scope: Message, body: bytes, client_request_id: str) -> HttpResponse:
        """Find the handler for a complete HTTP request, call it, and return its response."""
        raw_path = scope["raw_path"].decode("latin-1")
        if raw_path.startswith(ADMIN):
            self._admin.handle(scope, raw_path, body)
            return 202, [(b"x-request-id", client_request_id.encode())], b""
        if self._webhooks is not None and raw_path.startswith(PREFIX):
            return _build_webhook_response(await self._webhooks.handle_request(scope, raw_path, body))
        if self._sign_in is not None and raw_path == SIGN_IN:
            return _build_sign_in_response(await self._sign_in.handle(scope["method"], body), client_request_id)
        async with self._admit_request(raw_path):
            match = self._match_route(raw_path, scope["method"])
            return await _invoke_function(
                match, _build_function_request(scope, raw_path, match, body), client_request_id
            )

    def _admit_request(self, raw_path: str) -> AbstractAsyncContextManager[None]:
        """Return a context manager that delays or rejects a request to the app under overload."""
        # The app also sheds load; a rejection here avoids the cost of an invocation.
        if self._load_shedder is None or raw_path.startswith(_OTHER_ERROR_FORMATS):
            return nullcontext()
        return self._load_shedder.admit(raw_path)

    def _match_route(self, raw_path: str, method: str) -> RouteMatch:
        match = self._routes.match(raw_path, method)
        if match is None:
            raise WorkspaceError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "Route not found.")
        return match


async def _invoke_function(match: RouteMatch, request: RpcHttp, client_request_id: str) -> HttpResponse:
    """Call a function and return its response; details of a failure are logged and not sent to the client."""
    name = match.function.name
    try:
        response = await invoke_function(
            match.function, TypedData(http=request), traceparent=request.headers.get("traceparent", "")
        )
        return _build_function_response(response, is_head=request.method == "HEAD")
    except FunctionFailed as failure:
        _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
            "an HTTP function failed: %s",
            failure,
            extra=fields(function=name, exception=failure.stack_trace, requestId=client_request_id),
        )
    except Exception:
        _LOGGER.exception(
            "the response of a function cannot be sent", extra=fields(function=name, requestId=client_request_id)
        )
    raise _build_internal_error("The function failed; see the log of the local host.")


def _build_sign_in_response(document: Mapping[str, Any], client_request_id: str) -> HttpResponse:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    return 200, [*headers, (b"x-request-id", client_request_id.encode())], json.dumps(document).encode()


def _build_webhook_response(reply: WebhookReply) -> HttpResponse:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
    if reply.document is None:
        return reply.status, headers, b""
    body = json.dumps(reply.document).encode()
    return reply.status, [*headers, (b"content-type", b"application/json; charset=utf-8")], body


async def _read_body(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, max_bytes: int, count_bytes: Callable[[int], None]
) -> bytes:
    for name, value in headers:
        if name == b"content-length" and int(value) > max_bytes:
            raise build_body_too_large_error(max_bytes)
    parts: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientDisconnectedError
        part = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise build_body_too_large_error(max_bytes)
        count_bytes(len(part))
        parts.append(part)
        has_more = message.get("more_body", False)
    return b"".join(parts)


def _build_internal_error(detail: str) -> WorkspaceError:
    return WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", detail)


def _build_function_request(scope: Message, raw_path: str, match: RouteMatch, body: bytes) -> RpcHttp:
    headers = _join_repeated_headers(scope["headers"])
    if headers.pop("transfer-encoding", None) is not None:
        # The server has decoded the chunks (RFC 9112 section 7.1.3).
        headers["content-length"] = str(len(body))
    query = scope["query_string"].decode("latin-1")
    host = headers.get("host") or "{}:{}".format(*scope["server"])
    return RpcHttp(
        method=scope["method"],
        url=f"{scope['scheme']}://{host}{raw_path}{'?' if query else ''}{query}",
        headers=headers,
        params=match.parameters,
        query=_join_repeated_parameters(query) if query else {},
        body=TypedData(bytes=body),
    )


def _join_repeated_headers(raw_headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return a dictionary of headers by lower-case name; the values of a repeated header are joined with commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _join_repeated_parameters(query_string: str) -> dict[str, str]:
    """Return query parameters by name; join repeated ones with commas, omit empty ones, as the Functions host does."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(query_string):
        query[name] = f"{query[name]},{value}" if name in query else value
    return query


def _build_function_response(response: TypedData | None, *, is_head: bool) -> HttpResponse:
    """Convert a function's result to a status, headers and a body.

    Raises:
        ValueError: the function returned a status or header that HTTP does not allow.
    """
    if response is None:
        return 204, [], b""
    if response.kind != "http":
        text = response.value if isinstance(response.value, bytes) else str(response.value).encode()
        return 200, [(b"content-type", b"text/plain; charset=utf-8")], text
    http = response.value
    headers = [(b"set-cookie", format_set_cookie_header(cookie).encode("latin-1")) for cookie in http.cookies or ()]
    for name, value in http.headers.items():
        lower = name.lower()
        if lower not in _OWN_HEADERS or (is_head and lower == "content-length"):
            headers.append((lower.encode("latin-1"), value.encode("latin-1")))
    return int(http.status_code), headers, http.body.value


def _reply_to_http_response(reply: Reply) -> HttpResponse:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
    return reply.status, headers, reply.body


def _build_request_for_trace_span(scope: Message) -> Request:
    """Build the request that a trace span describes. It has the method, path and headers, but no query and no body."""
    return Request(
        scope["method"], scope["raw_path"].decode("latin-1"), "", _join_repeated_headers(scope["headers"]), b""
    )


def _wrap_send_with_security_headers(send: Send) -> Send:
    """Return an ASGI send function that adds the security headers to every response and then calls ``send``."""

    async def send_with_security_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(each for each in _GUARDING if each[0] not in given)]
        await send(message)

    return send_with_security_headers


async def _send_reply(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    if status in _NO_BODY:
        body = b""
    elif not any(name == b"content-length" for name, _ in headers):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def format_set_cookie_header(cookie: Any) -> str:
    """Format a cookie of a worker's reply as the value of a Set-Cookie header (RFC 6265 section 4.1).

    Args:
        cookie: protobuf message ``RpcHttpCookie``.
    """
    parts = [f"{cookie.name}={cookie.value}"]
    if cookie.expires is not None:
        instant = datetime.fromtimestamp(cookie.expires.value.seconds, UTC)
        parts.append(f"Expires={format_datetime(instant, usegmt=True)}")
    if cookie.max_age is not None:
        parts.append(f"Max-Age={int(cookie.max_age.value)}")
    if cookie.domain is not None and cookie.domain.value:
        parts.append(f"Domain={cookie.domain.value}")
    if cookie.path is not None and cookie.path.value:
        parts.append(f"Path={cookie.path.value}")
    if cookie.secure is not None and cookie.secure.value:
        parts.append("Secure")
    if cookie.http_only is not None and cookie.http_only.value:
        parts.append("HttpOnly")
    if cookie.same_site:
        parts.append(f"SameSite={cookie.same_site}")
    return "; ".join(parts)
