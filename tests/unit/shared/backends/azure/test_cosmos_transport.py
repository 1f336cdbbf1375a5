"""Tests of the trace spans of Cosmos DB requests."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from shared.backends.azure.cosmos_credentials import CosmosCredentialStore
from shared.backends.azure.cosmos_transport import build_request_attributes
from shared.observability import tracing
from tests.adapters.cosmos import COSMOS, open_accounts

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
    assert build_request_attributes(method, path, headers) == {
        "db.system.name": "azure.cosmosdb",
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": operation,
        "db.namespace": "workspace",
        "db.collection.name": "catalog",
    }


def test_the_span_of_an_account_request_has_no_container() -> None:
    """The span of a request about the account has no container."""
    told = build_request_attributes("GET", "/", {})
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
