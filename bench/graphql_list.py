"""Benchmark: list 1,000 connections with their groups and queries over GraphQL, compared with plain Ariadne."""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from bench.figures import Figure
from functions.graphql import build_graphql_reply, parse_graphql_parameters
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Connection, ConnectionType, Surface, WarmQuery, WorkspaceInfo
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.graphql_api import limits, paging
from shared.graphql_api.service import GraphQLService
from shared.http.messages import Request
from shared.telemetry.connection_status import ConnectionStatuses
from shared.telemetry.ports import ConnectionState

CONNECTIONS, SURFACES, ROUNDS = 1_000, 50, 5
QUERY = (
    "{ connections(first: 1000) { nodes { id name type status createdAt stats { messagesReceived lastMessage } "
    "surfaces { id name queries { name kql } } } totalCount } }"
)
CALLER = Principal("viewer@t", "viewer@t", "Viewer", frozenset(AccessRight), CredentialKind.JWT, "", None)
_AT = datetime(2026, 1, 5, tzinfo=UTC)


def measure_graphql_list() -> Iterator[Figure]:
    """Execute the same GraphQL request alternately with the service and with plain Ariadne; compare the median times.

    Ariadne is the GraphQL library that the service uses.
    """
    with relax_graphql_limits():
        ours, stock = asyncio.run(_measure_seconds_of_service_and_ariadne())
    ratio = statistics.median(stock) / statistics.median(ours)
    detail = {"seconds": round(statistics.median(ours), 4), "ariadneSeconds": round(statistics.median(stock), 4)}
    yield Figure("graphql_list", ratio, "ratio", at_least=1, detail={**detail, "connections": CONNECTIONS})


def build_catalog(connection_count: int = CONNECTIONS, surface_count: int = SURFACES) -> Catalog:
    """Build a workspace catalog: each connection belongs to a surface (group of connections) with two queries."""
    sources = [
        Connection(lookup=f"c-{number}", name=f"Connection {number}", type=ConnectionType.CLOUD_EVENT_HUB)
        for number in range(connection_count)
    ]
    groups = [
        Surface(
            lookup=f"s-{number}",
            name=f"Surface {number}",
            connections=tuple(one.lookup for one in sources[number::surface_count]),
        )
        for number in range(surface_count)
    ]
    queries = [
        WarmQuery(lookup=f"q-{number}", name=f"Query {number}", surface=f"s-{number % surface_count}", kql="print 1")
        for number in range(2 * surface_count)
    ]
    return Catalog(
        workspace=WorkspaceInfo(id="plant-t", name="Plant"),
        connections={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in sources},
        surfaces={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in groups},
        queries={one.lookup: CatalogEntry(one, _AT, _AT, "") for one in queries},
    )


class CountingStores:
    """Stores for the GraphQL resolvers; they count how often the resolvers read them."""

    def __init__(self, catalog: Catalog) -> None:
        self.count = 0
        self._catalog = catalog

    async def load_catalog(self) -> Catalog:
        """Return the catalog of the workspace, and count the read."""
        self.count += 1
        return self._catalog

    async def load_states_by_connection(self) -> dict[str, ConnectionState]:
        """Return the same state, connected, for every connection, and count the read."""
        self.count += 1
        return {lookup: ConnectionState("CONNECTED", 7, _AT) for lookup in self._catalog.connections}


def build_graphql_service(stores: CountingStores) -> GraphQLService:
    """Build a GraphQL service that reads the given stores; it has no query engine, so it cannot execute KQL queries."""
    return GraphQLService(
        stores.load_catalog, cast("Any", stores), ConnectionStatuses(()), cast("Any", None), cast("Any", None)
    )


@contextmanager
def relax_graphql_limits() -> Iterator[None]:
    """Context manager: raise the limits of page size and cost, so that one GraphQL request can list all connections."""
    kept = paging.MAX_SIZE, paging.MAX_SIZE, limits.MAX_COST
    try:
        _set_graphql_limits(CONNECTIONS, CONNECTIONS, 10**9)
        yield
    finally:
        _set_graphql_limits(*kept)


def _set_graphql_limits(max_page_size: int, max_weighed_page_size: int, max_cost: int) -> None:
    vars(paging)["MAX_SIZE"], vars(limits)["MAX_SIZE"], vars(limits)["MAX_COST"] = (
        max_page_size,
        max_weighed_page_size,
        max_cost,
    )


class _ServiceAndAriadneSeconds(NamedTuple):
    """Seconds of each request to the service, and of each request to Ariadne."""

    service: list[float]
    ariadne: list[float]


async def _measure_seconds_of_service_and_ariadne() -> _ServiceAndAriadneSeconds:
    reads = CountingStores(build_catalog())
    service = build_graphql_service(reads)
    body = json.dumps({"query": QUERY}).encode()
    request = Request("POST", "/v1/plant-t/graphql", "", {"content-type": "application/json"}, body)

    async def fetch_service_reply() -> bytes:
        wanted = await parse_graphql_parameters(request)
        outcome = await service.run(CALLER, wanted.query, wanted.variables, wanted.operation_name)
        return build_graphql_reply(request, outcome.body, is_executed=outcome.executed).body

    stock = await _build_ariadne_call(service, body)
    if json.loads(await fetch_service_reply()) != json.loads(await stock()):
        raise RuntimeError("the service and Ariadne return different replies")
    times = _ServiceAndAriadneSeconds([], [])
    for _ in range(ROUNDS):
        for taken, call in zip(times, (fetch_service_reply, stock), strict=True):
            started = time.perf_counter()
            await call()
            taken.append(time.perf_counter() - started)
    return times


async def _build_ariadne_call(service: GraphQLService, body: bytes) -> Callable[[], Awaitable[bytes]]:
    """Return a function that sends the request to Ariadne's ASGI application with the schema of the service."""
    from ariadne.asgi import GraphQL  # noqa: PLC0415  the service imports it lazily, too

    context = await service.build_context(CALLER, loads_states=True)
    application = GraphQL(service.schema, context_value=context)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }

    async def fetch_ariadne_reply() -> bytes:
        sent = bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.extend(message.get("body", b""))

        await application(scope, receive, send)
        return bytes(sent)

    return fetch_ariadne_reply
