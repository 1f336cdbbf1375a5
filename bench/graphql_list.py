"""List of 1,000 connections with surfaces and queries over GraphQL, against plain Ariadne over the same schema."""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from bench.figures import Figure
from functions.graphql import build_graphql_reply, read_parameters
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Connection, ConnectionType, Surface, WarmQuery, WorkspaceInfo
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.graphql_api import limits, paging
from shared.graphql_api.service import GraphQLService
from shared.http.messages import Request
from shared.telemetry.ports import ConnectionState

CONNECTIONS, SURFACES, ROUNDS = 1_000, 50, 5
QUERY = (
    "{ connections(first: 1000) { nodes { id name type status createdAt stats { messagesReceived lastMessage } "
    "surfaces { id name queries { name kql } } } totalCount } }"
)
CALLER = Principal("viewer@t", "viewer@t", "Viewer", frozenset(AccessRight), CredentialKind.JWT, "", None)
_AT = datetime(2026, 1, 5, tzinfo=UTC)


def graphql_list() -> Iterator[Figure]:
    """Execute the same request with both in turn, several times, and compare medians."""
    with lift_limits():
        ours, stock = asyncio.run(_measure())
    ratio = statistics.median(stock) / statistics.median(ours)
    detail = {"seconds": round(statistics.median(ours), 4), "ariadneSeconds": round(statistics.median(stock), 4)}
    yield Figure("graphql_list", ratio, "ratio", at_least=1, detail={**detail, "connections": CONNECTIONS})


def build_catalog(connections: int = CONNECTIONS, surfaces: int = SURFACES) -> Catalog:
    """Return a workspace in which each connection has a surface, and each surface two queries."""
    sources = [
        Connection(lookup=f"c-{number}", name=f"Connection {number}", type=ConnectionType.CLOUD_EVENT_HUB)
        for number in range(connections)
    ]
    groups = [
        Surface(
            lookup=f"s-{number}",
            name=f"Surface {number}",
            connections=tuple(one.lookup for one in sources[number::surfaces]),
        )
        for number in range(surfaces)
    ]
    queries = [
        WarmQuery(lookup=f"q-{number}", name=f"Query {number}", surface=f"s-{number % surfaces}", kql="print 1")
        for number in range(2 * surfaces)
    ]
    return Catalog(
        workspace=WorkspaceInfo(id="plant-t", name="Plant"),
        connections={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in sources},
        surfaces={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in groups},
        queries={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in queries},
    )


class CountingStores:
    """Stores of a request that count its reads."""

    def __init__(self, catalog: Catalog) -> None:
        self.count = 0
        self._catalog = catalog

    async def current(self) -> Catalog:
        """Return the workspace."""
        self.count += 1
        return self._catalog

    async def states(self) -> dict[str, ConnectionState]:
        """Return the state of every connection."""
        self.count += 1
        return {lookup: ConnectionState("CONNECTED", 7, _AT) for lookup in self._catalog.connections}


def build_service(reads: CountingStores) -> GraphQLService:
    """Return the GraphQL service over these stores, without an engine."""
    return GraphQLService(reads.current, cast("Any", reads), cast("Any", None), cast("Any", None))


@contextmanager
def lift_limits() -> Iterator[None]:
    """Allow pages of any size and cost while the block runs."""
    kept = paging.MAX_SIZE, paging.MAX_SIZE, limits.MAX_COST
    try:
        _set_limits(CONNECTIONS, CONNECTIONS, 10**9)
        yield
    finally:
        _set_limits(*kept)


def _set_limits(page: int, weighed: int, cost: int) -> None:
    vars(paging)["MAX_SIZE"], vars(limits)["MAX_SIZE"], vars(limits)["MAX_COST"] = page, weighed, cost


async def _measure() -> tuple[list[float], list[float]]:
    reads = CountingStores(build_catalog())
    service = build_service(reads)
    body = json.dumps({"query": QUERY}).encode()
    request = Request("POST", "/v1/plant-t/graphql", "", {"content-type": "application/json"}, body)

    async def ours() -> bytes:
        wanted = await read_parameters(request)
        outcome = await service.run(CALLER, wanted.query, wanted.variables, wanted.operation_name)
        return build_graphql_reply(request, outcome.body, executed=outcome.executed).body

    stock = await _build_ariadne_call(service, body)
    if json.loads(await ours()) != json.loads(await stock()):
        raise RuntimeError("the replies differ")
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for taken, call in zip(times, (ours, stock), strict=True):
            started = time.perf_counter()
            await call()
            taken.append(time.perf_counter() - started)
    return times


async def _build_ariadne_call(service: GraphQLService, body: bytes) -> Callable[[], Awaitable[bytes]]:
    """Return the same request through Ariadne's ASGI application, with the same resolvers and context."""
    from ariadne.asgi import GraphQL  # noqa: PLC0415  the service imports it lazily, too

    context = await service.build_context(CALLER, states=True)
    application = GraphQL(service.schema, context_value=context)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }

    async def call() -> bytes:
        sent = bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.extend(message.get("body", b""))

        await application(scope, receive, send)
        return bytes(sent)

    return call
