"""HTTP transport to Cosmos DB that sends each request once and records a trace span for the request."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

from shared.observability.tracing import find_current_span_context, open_call_span, record_dependency_reply


def create_single_try_transport() -> AioHttpTransport:
    """Return an HTTP transport that never repeats a request; call this while the event loop runs.

    By default, aiohttp repeats a PUT or DELETE if a reused connection closes without a reply. The second request would
    conflict with the first one (412), or find that the item is already deleted (404).
    """
    session = aiohttp.ClientSession(
        trust_env=True,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        middlewares=(trace_request, _send_and_convert_lost_connection_error),
    )
    return AioHttpTransport(session=session)


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


def build_request_attributes(method: str, path: str, headers: Mapping[str, str]) -> dict[str, str | int]:
    """Return the trace attributes of a request to Cosmos DB.

    Args:
        method: HTTP method.
        path: path of the request's URL.
        headers: headers of the request, with names in upper or lower case.
    """
    # Kinds and names alternate: dbs, a database, colls, a container, docs, an item.
    segments = [segment for segment in path.split("/") if segment]
    names = dict(zip(segments[::2], segments[1::2], strict=False))
    attributes: dict[str, str | int] = {
        "db.system.name": SYSTEM,
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": _build_operation_name(method, segments, headers),
    }
    optional = {"db.namespace": names.get("dbs"), "db.collection.name": names.get("colls")}
    return attributes | {name: value for name, value in optional.items() if value}


def _build_operation_name(method: str, segments: list[str], headers: Mapping[str, str]) -> str:
    kind = segments[(len(segments) - 1) // 2 * 2] if segments else _ACCOUNT
    if kind != "docs":
        return f"{method.lower()}_{kind}"
    if len(segments) % 2 == 0:
        return _ITEM_OPERATIONS.get(method, method.lower())
    if method == "POST":
        lower = {name.lower(): value for name, value in headers.items()}
        matches = (operation for name, operation in _MARKER_HEADERS.items() if lower.get(name, "").lower() == _TRUE)
        return next(matches, "create_item")
    return "read_all_items"


async def trace_request(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request and record a trace span for it (aiohttp middleware)."""
    attributes = (
        build_request_attributes(request.method, request.url.path, request.headers)
        if find_current_span_context() is not None
        else {}
    )
    name = " ".join(str(attributes[part]) for part in ("db.operation.name", "db.collection.name") if part in attributes)
    with open_call_span(name, attributes) if attributes else nullcontext():
        reply = await handler(request)
        if attributes:
            record_dependency_reply(
                _build_reply_attributes(reply), failed=reply.status >= _FIRST_SERVER_ERROR or reply.status in _FAILED
            )
        return reply


def _build_reply_attributes(reply: aiohttp.ClientResponse) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {"db.response.status_code": str(reply.status)}
    charge, sub_status = reply.headers.get("x-ms-request-charge"), reply.headers.get("x-ms-substatus")
    if charge:
        attributes["azure.cosmosdb.operation.request_charge"] = float(charge)
    if sub_status:
        attributes["azure.cosmosdb.response.sub_status_code"] = int(sub_status)
    return attributes
