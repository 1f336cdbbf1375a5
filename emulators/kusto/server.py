"""The endpoint's HTTP side: the routes that the Data Explorer clients call, health and figures."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import orjson

from emulators.kusto.engine import Engine
from emulators.kusto.errors import QueryError, bad_request, internal_error, not_read_only, unknown_database
from emulators.kusto.frames import Origin, data_set, error_document, failed_data_set
from emulators.kusto.options import RequestOptions, read_options
from emulators.kusto.results_cache import KeptAnswer, ResultsCache

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
"""What the public cloud answers: clients ask for it before they fetch a token, which this endpoint does not look at."""

_LOGGER = logging.getLogger(__name__)


class _CallerGoneError(Exception):
    """Nobody waits for the answer any more."""


class Figures(Protocol):
    """What the process knows about itself."""

    async def health(self) -> tuple[bool, Mapping[str, Any]]:
        """Return whether all is well, and the document that says so."""
        ...

    async def stats(self) -> Mapping[str, Any]:
        """Return counters."""
        ...


class Application:
    """The ASGI application.

    Args:
        engine: answers queries.
        database: the one database's name; requests that name no database mean it.
        figures: for health and counters.
    """

    def __init__(self, engine: Engine, database: str, figures: Figures) -> None:
        self._engine = engine
        self._database = database
        self._figures = figures
        self._results = ResultsCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = headers.get("x-ms-client-request-id", str(uuid.uuid4()))[:200]
        try:
            _refuse_browsers(headers)
            status, body = await self._route(f"{scope['method']} {scope['path']}", receive, request_id)
        except QueryError as error:
            status = error.status
            render = failed_data_set if error.partial else error_document
            body = render(error, request_id)
        except _CallerGoneError:
            _LOGGER.info("a caller hung up; its query is stopped")
            return
        except Exception:  # whatever it is, the caller gets an error document, not a closed connection
            _LOGGER.exception("a request failed")
            status, body = 500, error_document(internal_error(), request_id)
        await _reply(send, status, body, request_id)

    async def _route(self, route: str, receive: Receive, request_id: str) -> tuple[int, bytes]:
        match route:
            case "POST /v2/rest/query":
                return 200, await self._query(receive, request_id)
            case "POST /v1/rest/mgmt":
                raise not_read_only()
            case "GET /v1/rest/auth/metadata":
                return 200, orjson.dumps(_CLOUD)
            case "GET /healthz":
                well, document = await self._figures.health()
                return 200 if well else 503, orjson.dumps(document)
            case "GET /stats":
                return 200, orjson.dumps(await self._figures.stats())
        raise QueryError(
            status=404, code="NotFound", type_name="KustoBadRequestException", message=f"There is no {route[:200]}."
        )

    async def _query(self, receive: Receive, request_id: str) -> bytes:
        request = _document(await _body(receive))
        text, database = request.get("csl"), request.get("db")
        if not isinstance(text, str):
            raise bad_request("csl: the query text is expected")
        if database not in (None, "", self._database):
            raise unknown_database(str(database))
        properties = _properties(request.get("properties"))
        options = read_options(_mapping(properties, "Options"))
        return await self._answered(receive, text, _mapping(properties, "Parameters"), options, request_id)

    async def _answered(
        self, receive: Receive, text: str, parameters: Mapping[str, Any], options: RequestOptions, request_id: str
    ) -> bytes:
        """Return the frames of the query's answer, which may be one of an earlier request that is young enough."""
        origin = Origin(request_id, datetime.now(UTC))
        key = self._results.key(text, parameters, options) if options.cached_seconds else None
        if key is not None and not options.refresh_cache:
            kept = self._results.find(key, timedelta(seconds=options.cached_seconds))
            if kept is not None:
                return data_set(kept.answer, request_id, kept.origin)
        asked = self._engine.query(text, parameters, options)
        answer = await _unless_gone(receive, asyncio.ensure_future(asked))
        if key is not None:
            self._results.keep(key, KeptAnswer(answer, origin))
        return data_set(answer, request_id)


def _refuse_browsers(headers: Mapping[str, str]) -> None:
    """Pass for clients; a page in a browser must not reach the endpoint, not even by a name that resolves to it."""
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    if host not in _HOSTS or "origin" in headers:
        raise QueryError(
            status=403, code="Forbidden", type_name="KustoRequestDeniedException", message="Browsers are not served."
        )


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _CallerGoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise QueryError(
                status=413,
                code="Payload too large",
                type_name="KustoRequestPayloadTooLargeException",
                message=f"A request is at most {MAX_BODY_BYTES} bytes.",
            )
        if not message.get("more_body"):
            return b"".join(parts)


async def _unless_gone[T](receive: Receive, work: "asyncio.Future[T]") -> T:
    """Return the result, or stop the work when the caller hangs up."""
    gone: asyncio.Future[Any] = asyncio.ensure_future(receive())
    either: set[asyncio.Future[Any]] = {work, gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise _CallerGoneError
        return work.result()
    finally:
        gone.cancel()
        work.cancel()


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request("the body is not JSON") from None
    if not isinstance(document, dict):
        raise bad_request("the body is not a JSON object")
    return document


def _properties(value: Any) -> Mapping[str, Any]:
    """Return the request properties, which the clients send as JSON text within the JSON body."""
    if value in (None, ""):
        return {}
    if isinstance(value, str):
        return _document(value.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return value
    raise bad_request("properties: a JSON object is expected")


def _mapping(properties: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = properties.get(name)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise bad_request(f"properties.{name}: a JSON object is expected")


async def _reply(send: Send, status: int, body: bytes, request_id: str) -> None:
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-ms-client-request-id", request_id.encode("latin-1", "replace")),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
