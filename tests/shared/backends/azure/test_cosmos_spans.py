"""What the span of a request to Cosmos DB tells."""

import pytest

from shared.backends.azure.cosmos_spans import attributes_of

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
def test_a_request_is_told_by_operation_and_container(
    method: str, path: str, headers: dict[str, str], operation: str
) -> None:
    """Operation, database and container are told; no item's id and no value is."""
    assert attributes_of(method, path, headers) == {
        "db.system.name": "azure.cosmosdb",
        "azure.cosmosdb.connection.mode": "gateway",
        "db.operation.name": operation,
        "db.namespace": "workspace",
        "db.collection.name": "catalog",
    }


def test_the_account_has_neither() -> None:
    """What asks for the account names no container."""
    told = attributes_of("GET", "/", {})
    assert told["db.operation.name"] == "get_account"
    assert "db.collection.name" not in told
