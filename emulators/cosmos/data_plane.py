"""Data plane: items, batches and queries of one container."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import orjson

from emulators.cosmos.containers import CosmosContainer, Transaction
from emulators.cosmos.indexing import check_sort
from emulators.cosmos.items import ItemOperation, execute_batch, failed_results
from emulators.cosmos.partition_keys import key_from_header
from emulators.cosmos.queries import PagePosition, QueryPage, QueryScope, run_query
from emulators.cosmos.sql_statement import SqlStatement, parse_statement
from emulators.cosmos.wire import CosmosError, CosmosReply, CosmosRequest, unsupported

_PAGE_ITEMS = 100
_MOST_PAGE_ITEMS = 1000


def item_reply(container: CosmosContainer, request: CosmosRequest) -> CosmosReply:
    """Execute one operation on one item.

    Raises:
        CosmosError: the operation is invalid or a condition fails.
    """
    transaction = Transaction(container)
    kind = request.operation.removesuffix("_item")
    operation = ItemOperation(
        kind=kind,
        key=key_from_header(request.header("x-ms-documentdb-partitionkey"), container.paths),
        item_id=request.item,
        body=request.json if request.body else None,
        if_match=request.header("if-match") or None,
        if_none_match=request.header("if-none-match") or None,
    )
    outcome = operation.apply(transaction)
    transaction.commit()
    headers = {"x-ms-request-charge": f"{outcome.charge:.2f}"}
    if outcome.item is None:
        return CosmosReply(outcome.status, headers=headers)
    headers |= {"etag": outcome.item.etag, "x-ms-item-llsn": str(container.lsn)}
    bare = request.header("prefer") == "return=minimal" and kind != "read"
    return CosmosReply(outcome.status, None if bare else outcome.item.text, headers)


def batch_reply(container: CosmosContainer, request: CosmosRequest) -> CosmosReply:
    """Execute a transactional batch.

    Raises:
        CosmosError: the request is not a valid batch.
    """
    if not request.flag("x-ms-cosmos-batch-atomic"):
        raise unsupported("batches that are not atomic")
    key = key_from_header(request.header("x-ms-documentdb-partitionkey"), container.paths)
    minimal = request.header("prefer") == "return=minimal"
    status, results = execute_batch(container, key, request.json, minimal=minimal)
    charge = sum(result["requestCharge"] for result in results)
    return CosmosReply(status, results, {"x-ms-request-charge": f"{charge:.2f}", "x-ms-item-count": str(len(results))})


def failed_batch_reply(request: CosmosRequest, refusal: CosmosError) -> CosmosReply:
    """Return the reply to a batch with a failed first operation."""
    count = len(request.json) if isinstance(request.json, list) else 1
    return CosmosReply(207, failed_results(max(count, 1), 0, refusal), {"x-ms-request-charge": "1.0"})


def plan_reply(request: CosmosRequest) -> CosmosReply:
    """Return the reply with the query plan of a query."""
    return CosmosReply(200, _plan(_statement(request)), {"x-ms-request-charge": "1.0"})


def query_reply(container: CosmosContainer, request: CosmosRequest, page_limit: int | None) -> CosmosReply:
    """Return the reply with one page of a query or of all items.

    Args:
        container: The container.
        request: The request; without a query it reads all items.
        page_limit: The most items of a partial page, None for a full page.

    Raises:
        CosmosError: the query is invalid or not supported.
    """
    if request.header("a-im"):
        raise unsupported("the change feed")
    statement = _statement(request) if request.operation == "query" else parse_statement("SELECT * FROM c", {})
    check_sort(container.properties["indexingPolicy"], statement.sort_keys)
    scope = _scope(container, request, statement)
    requested = int(request.header("x-ms-max-item-count") or _PAGE_ITEMS)
    limit = min(requested if requested > 0 else _MOST_PAGE_ITEMS, _MOST_PAGE_ITEMS)
    identity = _identity(request, container)
    token = request.header("x-ms-continuation")
    start = PagePosition.decode(token, identity) if token else PagePosition()
    page = run_query(statement, scope, start, limit if page_limit is None else min(page_limit, limit))
    return _page_reply(container, page, identity)


def _page_reply(container: CosmosContainer, page: QueryPage, identity: str) -> CosmosReply:
    headers = {
        "x-ms-request-charge": f"{2.0 + 0.05 * page.scanned:.2f}",
        "x-ms-item-count": str(len(page.results)),
    }
    if page.position is not None:
        headers["x-ms-continuation"] = page.position.encode(identity)
    return CosmosReply(200, {"_rid": container.rid, "Documents": page.results, "_count": len(page.results)}, headers)


def _scope(container: CosmosContainer, request: CosmosRequest, statement: SqlStatement) -> QueryScope:
    key = request.header("x-ms-documentdb-partitionkey")
    if key:
        return QueryScope(container, key=key_from_header(key, container.paths))
    range_id = request.header("x-ms-documentdb-partitionkeyrangeid") or None
    if range_id is not None and range_id not in [part.id for part in container.ranges]:
        raise CosmosError(410, f"Partition key range {range_id} is gone.", substatus=1002)
    if range_id is None and request.operation == "query":
        _check_servable(request, statement)
    scope = QueryScope(container, range_id=range_id)
    low, high = request.header("x-ms-start-epk"), request.header("x-ms-end-epk")
    return dataclasses.replace(scope, low=low, high=high or "FF") if low or high else scope


def _check_servable(request: CosmosRequest, statement: SqlStatement) -> None:
    if not request.flag("x-ms-documentdb-query-enablecrosspartition"):
        raise CosmosError(
            400,
            "Cross partition query is required but disabled. Please set"
            " x-ms-documentdb-query-enablecrosspartition to true.",
        )
    if not statement.is_plain:
        raise CosmosError(400, "The provided cross partition query can not be directly served by the gateway.", 1004)


def _statement(request: CosmosRequest) -> SqlStatement:
    body = request.json
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise CosmosError(400, "A query is an object with the text in 'query'.")
    return parse_statement(body["query"], _parameters(body))


def _parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry["value"] for entry in body.get("parameters") or []}


def _plan(statement: SqlStatement) -> dict[str, Any]:
    whole = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    return {"partitionedQueryExecutionInfoVersion": 2, "queryInfo": statement.plan(), "queryRanges": [whole]}


def _identity(request: CosmosRequest, container: CosmosContainer) -> str:
    """Return the identity that a continuation token is bound to: the container, its part, and the query."""
    names = ("x-ms-documentdb-partitionkey", "x-ms-documentdb-partitionkeyrangeid")
    query = orjson.dumps(request.json).decode() if request.operation == "query" else ""
    return "\n".join([container.rid, *(request.header(name) for name in names), query])
