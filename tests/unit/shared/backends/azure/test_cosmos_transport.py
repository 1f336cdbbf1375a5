"""Tests of the transport to Cosmos DB: trace spans of requests, and connections after a failover."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONNECTIONS
from shared.backends.azure.cosmos_credentials import CosmosCredentialStore
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.backends.azure.cosmos_transport import build_trace_attributes_of_request
from shared.data_stores.models import DocumentKey
from shared.errors import WorkspaceError
from shared.observability import tracing
from tests.adapters.cosmos import COSMOS, open_accounts
from tests.unit.shared.backends.azure.cosmos_accounts import TABLES, create_tables, open_document_store
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

WRITERS = 4
ITEMS = "/dbs/workspace/colls/catalog/docs"


@pytest.mark.parametrize(
    ("method", "path", "headers", "operation"),
    [
        ("GET", f"{ITEMS}/a%2Fb", {}, "read_item"),
        ("PUT", f"{ITEMS}/a", {}, "replace_item"),
        ("DELETE", f"{ITEMS}/a/", {}, "delete_item"),
        ("PATCH", f"{ITEMS}/a", {}, "patch_item"),
        ("POST", f"{ITEMS}/", {}, "create_item"),
        ("POST", f"{ITEMS}/", {"x-ms-documentdb-is-upsert": "True"}, "upsert_item"),
        ("POST", f"{ITEMS}/", {"X-Ms-Documentdb-Isquery": "true"}, "query_items"),
        ("POST", f"{ITEMS}/", {"x-ms-cosmos-is-batch-request": "True"}, "execute_batch"),
        ("GET", f"{ITEMS}/", {}, "read_all_items"),
        ("GET", "/dbs/workspace/colls/catalog/pkranges/", {}, "get_pkranges"),
        ("GET", "/dbs/workspace/colls/catalog/", {}, "get_colls"),
    ],
)
def test_the_span_of_a_request_has_operation_and_container(
    method: str, path: str, headers: dict[str, str], operation: str
) -> None:
    """A span has operation, database and container, but no item id or value."""
    assert build_trace_attributes_of_request(method, path, headers) == {
        "db.system.name": "azure.cosmosdb",
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": operation,
        "db.namespace": "workspace",
        "db.collection.name": "catalog",
    }


def test_the_span_of_an_account_request_has_no_container() -> None:
    """The span of a request about the account has no container."""
    told = build_trace_attributes_of_request("GET", "/", {})
    assert told["db.operation.name"] == "get_account"
    assert "db.collection.name" not in told


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Provide the exporter that collects the spans."""
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(tracing, "get_tracer", lambda: provider.get_tracer("test"))
    monkeypatch.setattr(tracing, "is_signal_enabled", lambda _: True)
    yield spans
    provider.shutdown()


async def test_request_spans_are_children_of_the_current_span(exporter: InMemorySpanExporter) -> None:
    """The span of a request is a child of the current span; a missing item does not mark it as failed."""
    async with open_accounts(COSMOS) as opened:
        store = CosmosCredentialStore(opened())
        exporter.clear()
        assert await store.find_token("none") is None
        assert not exporter.get_finished_spans()
        with tracing.open_span("request"):
            assert await store.find_token("none") is None
        *requests, around = exporter.get_finished_spans()
    assert requests
    for request in requests:
        assert request.parent is not None
        assert around.context is not None
        assert (request.parent.span_id, request.kind) == (around.context.span_id, SpanKind.CLIENT)
        told = dict(request.attributes or {})
        assert (told["db.system.name"], told["db.response.status_code"]) == ("azure.cosmosdb", "404")
        assert float(str(told["azure.cosmosdb.operation.request_charge"])) > 0
        assert request.status.status_code is StatusCode.UNSET


@asynccontextmanager
async def open_server_and_store() -> AsyncIterator[tuple[CosmosServer, CosmosItemStore]]:
    """Open an emulator that needs some time for each request, and a store of items on it."""
    async with CosmosServer(latency=0.02) as server:
        await create_database(server)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        try:
            yield server, CosmosItemStore(account, CONNECTIONS, "CODE", "it", retry_seconds=1)
        finally:
            await account.close()


async def write_together(store: CosmosItemStore, name: str, *, return_exceptions: bool = False) -> list[object]:
    """Write several items at once, each over a connection of its own."""
    writes = (store.put_if_unchanged(None, {"id": f"{name}-{number}"}) for number in range(WRITERS))
    return list(await asyncio.gather(*writes, return_exceptions=return_exceptions))


async def test_connections_leave_a_region_that_rejects_writes() -> None:
    """After a failover the first rejected write replaces all connections, and later writes reach the new region."""
    async with open_server_and_store() as (server, store):
        await write_together(store, "before")
        server.move_write_region()
        with pytest.raises(WorkspaceError):
            await store.put_if_unchanged(None, {"id": "lost"})
        await write_together(store, "after")
        statuses = [exchange.status for exchange in server.requests.list_by_operation("batch")]
        assert statuses == [*[200] * WRITERS, 403, *[200] * WRITERS]
        assert await store.read("lost", "lost") is None


async def test_connections_in_use_leave_the_region_after_their_replies() -> None:
    """A connection that is in use during a failover is closed after its reply and not used again."""
    async with open_server_and_store() as (server, store):
        await write_together(store, "before")
        server.move_write_region()
        results = await write_together(store, "lost", return_exceptions=True)
        assert all(isinstance(result, WorkspaceError) for result in results)
        await write_together(store, "after")


async def test_connections_to_data_stores_leave_a_region_that_rejects_writes() -> None:
    """Connections to the accounts of data stores follow the write region, too."""
    async with CosmosServer() as server:
        await create_tables(server)
        async with open_document_store(server) as store:
            table = TABLES["/id"]
            await store.create(table, DocumentKey("a", "a"), b'{"id": "a"}')
            server.move_write_region()
            with pytest.raises(WorkspaceError) as caught:
                await store.create(table, DocumentKey("b", "b"), b'{"id": "b"}')
            assert caught.value.code == "DATA_STORE_UNAVAILABLE"
            await store.create(table, DocumentKey("b", "b"), b'{"id": "b"}')
