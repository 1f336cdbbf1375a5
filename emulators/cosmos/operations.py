"""Names what a request asks for, from its method, path and headers."""

from collections.abc import Mapping

_BY_PATH = {
    ("GET", ""): "read_account",
    ("GET", "dbs"): "list_databases",
    ("POST", "dbs"): "create_database",
    ("GET", "dbs/*"): "read_database",
    ("DELETE", "dbs/*"): "delete_database",
    ("GET", "dbs/*/colls"): "list_containers",
    ("POST", "dbs/*/colls"): "create_container",
    ("GET", "dbs/*/colls/*"): "read_container",
    ("PUT", "dbs/*/colls/*"): "replace_container",
    ("DELETE", "dbs/*/colls/*"): "delete_container",
    ("GET", "dbs/*/colls/*/pkranges"): "read_ranges",
    ("GET", "dbs/*/colls/*/docs"): "read_feed",
    ("POST", "dbs/*/colls/*/docs"): "create_item",
    ("GET", "dbs/*/colls/*/docs/*"): "read_item",
    ("PUT", "dbs/*/colls/*/docs/*"): "replace_item",
    ("PATCH", "dbs/*/colls/*/docs/*"): "patch_item",
    ("DELETE", "dbs/*/colls/*/docs/*"): "delete_item",
    ("POST", "offers"): "query_offers",
    ("GET", "offers"): "list_offers",
    ("PUT", "offers/*"): "replace_offer",
}

_QUERIES = {"create_database": "query_databases", "create_container": "query_containers", "create_item": "query"}


def classify_request(method: str, segments: tuple[str, ...], headers: Mapping[str, str]) -> str:
    """Names the operation.

    Args:
        method: The HTTP method.
        segments: The path's parts.
        headers: The headers, names in lower case.

    Returns:
        Its name, or `unknown`.
    """
    pattern = "/".join(part if index % 2 == 0 else "*" for index, part in enumerate(segments))
    operation = _BY_PATH.get((method, pattern), "unknown")
    if _is_true(headers, "x-ms-cosmos-is-query-plan-request"):
        return "query_plan"
    if _is_true(headers, "x-ms-documentdb-isquery"):
        return _QUERIES.get(operation, operation)
    if operation != "create_item":
        return operation
    if _is_true(headers, "x-ms-cosmos-is-batch-request"):
        return "batch"
    return "upsert_item" if _is_true(headers, "x-ms-documentdb-is-upsert") else "create_item"


def _is_true(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "true"
