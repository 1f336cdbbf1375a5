"""Items, batches and queries of one container."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import orjson

from emulators.cosmos.batches import failed, run_batch
from emulators.cosmos.containers import Container, Transaction
from emulators.cosmos.indexing import check_sort
from emulators.cosmos.items import ItemOperation
from emulators.cosmos.partition_keys import key_from_header
from emulators.cosmos.queries import Page, Position, Scope, run
from emulators.cosmos.sql_statement import Statement, parse_statement
from emulators.cosmos.wire import Refusal, Reply, Request, unsupported

_PAGE_ITEMS = 100
_MOST_PAGE_ITEMS = 1000


def item_reply(container: Container, request: Request) -> Reply:
    """Does one operation on one item.

    Raises:
        Refusal: It cannot be done.
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
        return Reply(outcome.status, headers=headers)
    headers |= {"etag": outcome.item.etag, "x-ms-item-llsn": str(container.lsn)}
    bare = request.header("prefer") == "return=minimal" and kind != "read"
    return Reply(outcome.status, None if bare else outcome.item.text, headers)


def batch_reply(container: Container, request: Request) -> Reply:
    """Runs a transactional batch.

    Raises:
        Refusal: It is no batch.
    """
    if not request.flag("x-ms-cosmos-batch-atomic"):
        raise unsupported("batches that are not atomic")
    key = key_from_header(request.header("x-ms-documentdb-partitionkey"), container.paths)
    minimal = request.header("prefer") == "return=minimal"
    status, results = run_batch(container, key, request.json, minimal=minimal)
    charge = sum(result["requestCharge"] for result in results)
    return Reply(status, results, {"x-ms-request-charge": f"{charge:.2f}", "x-ms-item-count": str(len(results))})


def failed_batch_reply(request: Request, refusal: Refusal) -> Reply:
    """Gives the reply to a batch whose first operation was refused."""
    count = len(request.json) if isinstance(request.json, list) else 1
    return Reply(207, failed(max(count, 1), 0, refusal), {"x-ms-request-charge": "1.0"})


def plan_reply(request: Request) -> Reply:
    """Answers the query plan of a query."""
    return Reply(200, _plan(_statement(request)), {"x-ms-request-charge": "1.0"})


def query_reply(container: Container, request: Request, page_limit: int | None) -> Reply:
    """Answers one page of a query or of the whole container.

    Args:
        container: The container.
        request: The request; without a body it reads all items.
        page_limit: The most items of the page, if it is to be partial.

    Raises:
        Refusal: The query cannot be run, or not here.
    """
    if request.header("a-im"):
        raise unsupported("the change feed")
    statement = _statement(request) if request.operation == "query" else parse_statement("SELECT * FROM c", {})
    check_sort(container.properties["indexingPolicy"], statement.sort_keys)
    scope = _scope(container, request, statement)
    asked = int(request.header("x-ms-max-item-count") or _PAGE_ITEMS)
    most = min(asked if asked > 0 else _MOST_PAGE_ITEMS, _MOST_PAGE_ITEMS)
    identity = _identity(request, container)
    token = request.header("x-ms-continuation")
    start = Position.decode(token, identity) if token else Position()
    page = run(statement, scope, start, most if page_limit is None else min(page_limit, most))
    return _page_reply(container, page, identity)


def _page_reply(container: Container, page: Page, identity: str) -> Reply:
    headers = {
        "x-ms-request-charge": f"{2.0 + 0.05 * page.scanned:.2f}",
        "x-ms-item-count": str(len(page.results)),
    }
    if page.position is not None:
        headers["x-ms-continuation"] = page.position.encode(identity)
    return Reply(200, {"_rid": container.rid, "Documents": page.results, "_count": len(page.results)}, headers)


def _scope(container: Container, request: Request, statement: Statement) -> Scope:
    key = request.header("x-ms-documentdb-partitionkey")
    if key:
        return Scope(container, key=key_from_header(key, container.paths))
    range_id = request.header("x-ms-documentdb-partitionkeyrangeid") or None
    if range_id is not None and range_id not in [part.id for part in container.ranges]:
        raise Refusal(410, f"Partition key range {range_id} is gone.", substatus=1002)
    if range_id is None and request.operation == "query":
        _check_servable(request, statement)
    scope = Scope(container, range_id=range_id)
    low, high = request.header("x-ms-start-epk"), request.header("x-ms-end-epk")
    return dataclasses.replace(scope, low=low, high=high or "FF") if low or high else scope


def _check_servable(request: Request, statement: Statement) -> None:
    if not request.flag("x-ms-documentdb-query-enablecrosspartition"):
        raise Refusal(
            400,
            "Cross partition query is required but disabled. Please set"
            " x-ms-documentdb-query-enablecrosspartition to true.",
        )
    if not statement.is_plain:
        raise Refusal(400, "The provided cross partition query can not be directly served by the gateway.", 1004)


def _statement(request: Request) -> Statement:
    body = request.json
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise Refusal(400, "A query is an object with the text in 'query'.")
    return parse_statement(body["query"], _parameters(body))


def _parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry["value"] for entry in body.get("parameters") or []}


def _plan(statement: Statement) -> dict[str, Any]:
    whole = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    return {"partitionedQueryExecutionInfoVersion": 2, "queryInfo": statement.plan(), "queryRanges": [whole]}


def _identity(request: Request, container: Container) -> str:
    """What a continuation is bound to: the container, what is read of it, and the query."""
    names = ("x-ms-documentdb-partitionkey", "x-ms-documentdb-partitionkeyrangeid")
    query = orjson.dumps(request.json).decode() if request.operation == "query" else ""
    return "\n".join([container.rid, *(request.header(name) for name in names), query])
