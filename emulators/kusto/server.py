"""HTTP interface of the Data Explorer emulator: queries, ``.ingest`` commands, health and statistics.

This module is separate from the module ``process``, which starts and stops the interface.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from emulators.kusto.caches import CachedQueryResult, QueryResultsCache
from emulators.kusto.engine import Engine
from emulators.kusto.errors import (
    QueryError,
    bad_request_error,
    internal_error,
    not_read_only_error,
    unknown_database_error,
)
from emulators.kusto.frames import ResultOrigin, render_data_set, render_error_document, render_failed_data_set
from emulators.kusto.ingestion import FileIngestion
from emulators.kusto.monitoring import EndpointMonitor
from emulators.kusto.options import RequestOptions, parse_request_options

type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 2 * 1024 * 1024
_HOSTS = frozenset({"127.0.0.1", "localhost"})
_CLOUD = {
    "AzureAD": {
        "LoginEndpoint": "https://login.microsoftonline.com",
        "LoginMfaRequired": False,
        "KustoClientAppId": "db662dc1-0cfe-4e1c-a843-19a68e65be58",
        "KustoClientRedirectUri": "https://microsoft/kustoclient",
        "KustoServiceResourceId": "https://kusto.kusto.windows.net",
        "FirstPartyAuthorityUrl": "https://login.microsoftonline.com/f8cdef31-a31e-4b4a-93e4-5f571e91255a",
    }
}
"""Metadata of the public cloud, which clients read before they request a token; the emulator ignores the token."""

_LOGGER = logging.getLogger(__name__)


class _HttpReply(NamedTuple):
    """HTTP status and JSON body of a reply."""

    status: int
    body: bytes


class _CallerDisconnectedError(Exception):
    """The caller disconnected before it received the reply."""


class Application:
    """ASGI application of the Data Explorer emulator.

    Args:
        engine: runs the queries.
        database: name of the only database, which a request may omit.
        monitor: provides health and statistics.
        ingestion: executes ``.ingest`` commands; None to reject all commands.
    """

    def __init__(
        self, engine: Engine, database: str, monitor: EndpointMonitor, ingestion: FileIngestion | None = None
    ) -> None:
        self._engine = engine
        self._database = database
        self._monitor = monitor
        self._ingestion = ingestion
        self._results = QueryResultsCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = headers.get("x-ms-client-request-id", str(uuid.uuid4()))[:200]
        try:
            _reject_browsers(headers)
            status, body = await self._route_request(f"{scope['method']} {scope['path']}", receive, request_id)
        except QueryError as error:
            status = error.status
            render = render_failed_data_set if error.is_partial_failure else render_error_document
            body = render(error, request_id)
        except _CallerDisconnectedError:
            _LOGGER.info("a caller disconnected; its query is stopped")
            return
        except Exception:  # the caller must receive an error document instead of a closed connection
            _LOGGER.exception("a request failed")
            status, body = 500, render_error_document(internal_error(), request_id)
        await _send_reply(send, status, body, request_id)

    async def _route_request(self, route: str, receive: Receive, request_id: str) -> _HttpReply:
        match route:
            case "POST /v2/rest/query":
                return _HttpReply(200, await self._handle_query(receive, request_id))
            case "POST /v1/rest/mgmt":
                return _HttpReply(200, await self._handle_ingest_command(receive))
            case "GET /v1/rest/auth/metadata":
                return _HttpReply(200, orjson.dumps(_CLOUD))
            case "GET /healthz":
                health = await self._monitor.check_health()
                return _HttpReply(200 if health.is_healthy else 503, orjson.dumps(health.details))
            case "GET /stats":
                return _HttpReply(200, orjson.dumps(await self._monitor.read_stats()))
        raise QueryError(
            status=404,
            code="NotFound",
            type_name="KustoBadRequestException",
            message=f"Route '{route[:200]}' not found.",
        )

    async def _handle_query(self, receive: Receive, request_id: str) -> bytes:
        request = _parse_json_object(await _read_body(receive))
        text, database = request.get("csl"), request.get("db")
        if not isinstance(text, str):
            raise bad_request_error("property `csl` of the request must be a string with the text of the query")
        if database not in (None, "", self._database):
            raise unknown_database_error(str(database))
        properties = _parse_request_properties(request.get("properties"))
        options = parse_request_options(_get_object_property(properties, "Options"))
        return await self._run_query_and_render_result(
            receive, text, _get_object_property(properties, "Parameters"), options, request_id
        )

    async def _handle_ingest_command(self, receive: Receive) -> bytes:
        request = _parse_json_object(await _read_body(receive))
        text = request.get("csl")
        if self._ingestion is None or not isinstance(text, str):
            raise not_read_only_error()
        # A command is not cancelled if the caller disconnects: its rows are ingested completely or not at all.
        return await asyncio.shield(asyncio.to_thread(self._ingestion.execute_ingest_command, text))

    async def _run_query_and_render_result(
        self, receive: Receive, kql_text: str, parameters: Mapping[str, Any], options: RequestOptions, request_id: str
    ) -> bytes:
        """Run a query, or use a cached result if the request accepts its age; return the result as JSON frames."""
        origin = ResultOrigin(request_id, datetime.now(UTC))
        key = self._results.create_key(kql_text, parameters, options) if options.cached_seconds else None
        if key is not None and not options.refresh_cache:
            cached = self._results.find(key, timedelta(seconds=options.cached_seconds))
            if cached is not None:
                return render_data_set(cached.result, request_id, cached.origin)
        running = self._engine.run_query(kql_text, parameters, options)
        result = await _await_query_while_connected(receive, asyncio.ensure_future(running))
        if key is not None:
            self._results.store(key, CachedQueryResult(result, origin))
        return render_data_set(result, request_id)


def _reject_browsers(headers: Mapping[str, str]) -> None:
    """Reject requests from web pages, including pages whose host name resolves to 127.0.0.1 (DNS rebinding)."""
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    if host not in _HOSTS or "origin" in headers:
        raise QueryError(
            status=403,
            code="Forbidden",
            type_name="KustoRequestDeniedException",
            message="Requests of web pages are not allowed; send the request from a program.",
        )


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _CallerDisconnectedError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise QueryError(
                status=413,
                code="Payload too large",
                type_name="KustoRequestPayloadTooLargeException",
                message=f"The body of the request must not exceed {MAX_BODY_BYTES} bytes.",
            )
        if not message.get("more_body"):
            return b"".join(parts)


async def _await_query_while_connected[T](receive: Receive, query: "asyncio.Future[T]") -> T:
    """Wait for a query and return its result; cancel the query if the caller disconnects."""
    disconnected: asyncio.Future[Any] = asyncio.ensure_future(receive())
    either: set[asyncio.Future[Any]] = {query, disconnected}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not query.done():
            raise _CallerDisconnectedError
        return query.result()
    finally:
        disconnected.cancel()
        query.cancel()


def _parse_json_object(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request_error("the body of the request must be valid JSON") from None
    if not isinstance(document, dict):
        raise bad_request_error("the body of the request must be a JSON object")
    return document


def _parse_request_properties(value: Any) -> Mapping[str, Any]:
    """Parse the request properties; clients may send them as a string with JSON text inside the JSON body."""
    if value in (None, ""):
        return {}
    if isinstance(value, str):
        return _parse_json_object(value.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return value
    raise bad_request_error("property `properties` of the request must be a JSON object")


def _get_object_property(properties: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = properties.get(name)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise bad_request_error(f"property `properties.{name}` of the request must be a JSON object")


async def _send_reply(send: Send, status: int, body: bytes, request_id: str) -> None:
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-ms-client-request-id", request_id.encode("latin-1", "replace")),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
