"""HTTP transport to Cosmos DB that sends each request once and traces it."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

from shared.observability.tracing import call_span, current_span_context, record_reply


def create_single_try_transport() -> AioHttpTransport:
    """Return a transport under which a lost connection is the caller's to judge; to be made in a running event loop.

    A repeat that nobody knows of would meet its own first try as a conflict (412) or find nothing (404).
    """
    session = aiohttp.ClientSession(
        trust_env=True, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, middlewares=(traced, _once)
    )
    return AioHttpTransport(session=session)


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        # These two are what aiohttp repeats; the class above them it leaves alone.
        raise aiohttp.ClientConnectionError("the connection was lost") from error


SYSTEM: Final = "azure.cosmosdb"
_TRUE: Final = "true"
_ACCOUNT: Final = "account"
_FAILED: Final = frozenset({408, 410, 429, 449})
"""Statuses below 500 that say that nothing was done; the others are answers."""
_FIRST_SERVER_ERROR: Final = 500
_OF_ITEMS: Final[Mapping[str, str]] = {
    "GET": "read_item",
    "PUT": "replace_item",
    "PATCH": "patch_item",
    "DELETE": "delete_item",
}
_MARKS: Final[Mapping[str, str]] = {
    "x-ms-cosmos-is-batch-request": "execute_batch",
    "x-ms-documentdb-isquery": "query_items",
    "x-ms-documentdb-is-upsert": "upsert_item",
}


def attributes_of(method: str, path: str, headers: Mapping[str, str]) -> dict[str, str | int]:
    """Return what a span tells of a request.

    Args:
        method: of the request.
        path: of its address.
        headers: their names in any case.
    """
    # Kinds and names by turns: dbs, a database, colls, a container, docs, an item.
    segments = [segment for segment in path.split("/") if segment]
    names = dict(zip(segments[::2], segments[1::2], strict=False))
    told: dict[str, str | int] = {
        "db.system.name": SYSTEM,
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": _operation(method, segments, headers),
    }
    given = {"db.namespace": names.get("dbs"), "db.collection.name": names.get("colls")}
    return told | {name: value for name, value in given.items() if value}


def _operation(method: str, segments: list[str], headers: Mapping[str, str]) -> str:
    kind = segments[(len(segments) - 1) // 2 * 2] if segments else _ACCOUNT
    if kind != "docs":
        return f"{method.lower()}_{kind}"
    if len(segments) % 2 == 0:
        return _OF_ITEMS.get(method, method.lower())
    if method == "POST":
        lower = {name.lower(): value for name, value in headers.items()}
        marked = (operation for name, operation in _MARKS.items() if lower.get(name, "").lower() == _TRUE)
        return next(marked, "create_item")
    return "read_all_items"


async def traced(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request within a span (middleware of aiohttp)."""
    told = (
        attributes_of(request.method, request.url.path, request.headers) if current_span_context() is not None else {}
    )
    name = " ".join(str(told[part]) for part in ("db.operation.name", "db.collection.name") if part in told)
    with call_span(name, told) if told else nullcontext():
        reply = await handler(request)
        if told:
            record_reply(_reply(reply), failed=reply.status >= _FIRST_SERVER_ERROR or reply.status in _FAILED)
        return reply


def _reply(reply: aiohttp.ClientResponse) -> dict[str, str | int | float]:
    told: dict[str, str | int | float] = {"db.response.status_code": str(reply.status)}
    charge, sub_status = reply.headers.get("x-ms-request-charge"), reply.headers.get("x-ms-substatus")
    if charge:
        told["azure.cosmosdb.operation.request_charge"] = float(charge)
    if sub_status:
        told["azure.cosmosdb.response.sub_status_code"] = int(sub_status)
    return told
