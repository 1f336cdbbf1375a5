"""HTTP transport to Cosmos DB that sends each request once and records a trace span for the request.

The transport leaves a region that rejects writes: it closes its connections, so that the next ones look up the address
of the account again.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from azure.core.pipeline.transport import AioHttpTransport

from shared.observability import logs
from shared.observability.tracing import find_current_span_context, open_call_span, record_dependency_reply_on_span

_LOG = logs.get_logger("cosmos")


def create_single_try_transport() -> AioHttpTransport:
    """Return an HTTP transport that never repeats a request; call this while the event loop runs.

    By default, aiohttp repeats a PUT or DELETE if a reused connection closes without a reply. The second request would
    conflict with the first one (412), or find that the item is already deleted (404).
    """
    connector = RegionConnector()
    session = aiohttp.ClientSession(
        connector=connector,
        trust_env=True,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        middlewares=(trace_request, connector.send_and_leave_rejecting_region, _send_and_convert_lost_connection_error),
    )
    return AioHttpTransport(session=session)


REGION_SUB_STATUSES: Final = frozenset({3, 1008})
"""Cosmos DB sub-statuses of status 403 that concern the account's regions: no write region, or not in this region."""

_RENEWAL_SECONDS: Final = 1.0


class RegionConnector(aiohttp.TCPConnector):
    """aiohttp connector for one Cosmos DB account; it replaces all its connections if a region rejects a request.

    After a failover, the DNS name of the account refers to the new write region, but open connections still lead to the
    earlier region. Without this class, a connection that is always in use would never be closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._renewed_at = -_RENEWAL_SECONDS

    async def send_and_leave_rejecting_region(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request; if its region no longer accepts it, replace all connections (aiohttp middleware)."""
        reply = await handler(request)
        if reply.status == HTTPStatus.FORBIDDEN and _get_sub_status_or_zero(reply) in REGION_SUB_STATUSES:
            self._replace_connections(asyncio.get_running_loop().time())
        return reply

    def _replace_connections(self, monotonic_seconds: float) -> None:
        """Close idle connections, close active ones after their replies, and clear the cached DNS entry of the account.

        Do nothing within one second after the previous replacement. Later rejections replace the connections again,
        because the address can change long after the first rejection.
        """
        if monotonic_seconds - self._renewed_at < _RENEWAL_SECONDS:
            return
        self._renewed_at = monotonic_seconds
        _LOG.warning("a region of Cosmos DB rejects requests; the connections to it are replaced")
        self.clear_dns_cache()
        for connection in self._acquired:
            # A connection that is being opened is not a ResponseHandler yet.
            if isinstance(connection, ResponseHandler):
                connection.force_close()
        for pool in self._conns.values():
            for connection, _ in pool:
                connection.close()


async def _send_and_convert_lost_connection_error(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        # aiohttp repeats requests after these two errors, but not after their base class.
        raise aiohttp.ClientConnectionError("the connection to Cosmos DB was lost") from error


def _get_sub_status_or_zero(reply: aiohttp.ClientResponse) -> int:
    text = reply.headers.get("x-ms-substatus", "")
    return int(text) if text.isdecimal() else 0


SYSTEM: Final = "azure.cosmosdb"
_TRUE: Final = "true"
_ACCOUNT: Final = "account"
_FAILED: Final = frozenset({408, 410, 429, 449})
"""HTTP statuses below 500 that a trace marks as failures; the others are valid results."""
_FIRST_SERVER_ERROR: Final = 500
_ITEM_OPERATIONS: Final[Mapping[str, str]] = {
    "GET": "read_item",
    "PUT": "replace_item",
    "PATCH": "patch_item",
    "DELETE": "delete_item",
}
_MARKER_HEADERS: Final[Mapping[str, str]] = {
    "x-ms-cosmos-is-batch-request": "execute_batch",
    "x-ms-documentdb-isquery": "query_items",
    "x-ms-documentdb-is-upsert": "upsert_item",
}


def build_trace_attributes_of_request(method: str, url_path: str, headers: Mapping[str, str]) -> dict[str, str | int]:
    """Return the trace attributes of a request to Cosmos DB.

    Args:
        method: HTTP method.
        url_path: path of the request's URL.
        headers: headers of the request, with names in upper or lower case.
    """
    # Kinds and names alternate: dbs, a database, colls, a container, docs, an item.
    segments = [segment for segment in url_path.split("/") if segment]
    names = dict(zip(segments[::2], segments[1::2], strict=False))
    attributes: dict[str, str | int] = {
        "db.system.name": SYSTEM,
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": _build_operation_name(method, segments, headers),
    }
    optional = {"db.namespace": names.get("dbs"), "db.collection.name": names.get("colls")}
    return attributes | {name: value for name, value in optional.items() if value}


def _build_operation_name(method: str, path_segments: list[str], headers: Mapping[str, str]) -> str:
    kind = path_segments[(len(path_segments) - 1) // 2 * 2] if path_segments else _ACCOUNT
    if kind != "docs":
        return f"{method.lower()}_{kind}"
    if len(path_segments) % 2 == 0:
        return _ITEM_OPERATIONS.get(method, method.lower())
    if method == "POST":
        lower = {name.lower(): value for name, value in headers.items()}
        matches = (operation for name, operation in _MARKER_HEADERS.items() if lower.get(name, "").lower() == _TRUE)
        return next(matches, "create_item")
    return "read_all_items"


async def trace_request(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request and record a trace span for it (aiohttp middleware)."""
    attributes = (
        build_trace_attributes_of_request(request.method, request.url.path, request.headers)
        if find_current_span_context() is not None
        else {}
    )
    name = " ".join(str(attributes[part]) for part in ("db.operation.name", "db.collection.name") if part in attributes)
    with open_call_span(name, attributes) if attributes else nullcontext():
        reply = await handler(request)
        if attributes:
            record_dependency_reply_on_span(
                _build_trace_attributes_of_reply(reply),
                failed=reply.status >= _FIRST_SERVER_ERROR or reply.status in _FAILED,
            )
        return reply


def _build_trace_attributes_of_reply(reply: aiohttp.ClientResponse) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {"db.response.status_code": str(reply.status)}
    charge, sub_status = reply.headers.get("x-ms-request-charge"), reply.headers.get("x-ms-substatus")
    if charge:
        attributes["azure.cosmosdb.operation.request_charge"] = float(charge)
    if sub_status:
        attributes["azure.cosmosdb.response.sub_status_code"] = int(sub_status)
    return attributes
