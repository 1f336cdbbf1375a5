"""Data plane: items, batches and queries of one container, whose results are returned page by page.

It knows neither connections nor faults, which belong to the server.
"""

import base64
import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from emulators.cosmos.containers import CosmosContainer, CosmosItem, ItemList, Transaction
from emulators.cosmos.indexing import check_sort
from emulators.cosmos.items import ItemOperation, execute_batch, failed_results
from emulators.cosmos.partition_keys import PartitionKey, key_from_header
from emulators.cosmos.sort_index import sort_entry
from emulators.cosmos.sql_statement import SqlStatement, parse_statement
from emulators.cosmos.sql_values import UNDEFINED, compare_sort_keys
from emulators.cosmos.wire import CosmosError, CosmosReply, CosmosRequest, unsupported

_MAX_PAGE_BYTES = 4 * 1024 * 1024
_PAGE_ITEMS = 100
_MOST_PAGE_ITEMS = 1000


@dataclass(frozen=True)
class QueryScope:
    """Scope of a query: a logical partition, or the part of physical ranges between two hash values."""

    container: CosmosContainer
    key: PartitionKey | None = None
    range_id: str | None = None
    low: str = ""
    high: str = "FF"

    def item_lists(self) -> list[tuple[str, ItemList]]:
        """Return the item lists with the ids of their ranges, in read order."""
        if self.key is not None:
            return [("", self.container.partition_items(self.key))]
        return [(part.id, part.items) for part in self.container.ranges if self.range_id in (None, part.id)]

    def contains(self, item: CosmosItem) -> bool:
        """Return whether an item is between the hash values."""
        return self.low <= item.epk < self.high


@dataclass(frozen=True)
class PagePosition:
    """End position of a page.

    Attributes:
        range_id: The range of the last item.
        number: Its creation number.
        keys: Its sort keys; None before the first item.
        skipped: The number of skipped results so far.
        returned: The number of returned results so far.
    """

    range_id: str = ""
    number: int = 0
    keys: list[Any] | None = None
    skipped: int = 0
    returned: int = 0

    def encode(self, query: str) -> str:
        """Encode the position as an opaque token for one query."""
        keys = None if self.keys is None else [[] if key is UNDEFINED else [key] for key in self.keys]
        values = [_digest(query), self.range_id, self.number, keys, self.skipped, self.returned]
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode()

    @classmethod
    def decode(cls, token: str, query: str) -> "PagePosition":
        """Decode a token.

        Raises:
            CosmosError: 400 if it is invalid or belongs to another query.
        """
        try:
            digest, range_id, number, keys, skipped, returned = orjson.loads(base64.urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise CosmosError(400, "Invalid Continuation Token") from error
        if digest != _digest(query):
            raise CosmosError(400, "Invalid Continuation Token: it belongs to another query.")
        values = None if keys is None else [key[0] if key else UNDEFINED for key in keys]
        return cls(range_id, number, values, skipped, returned)


@dataclass
class QueryPage:
    """Page of results; `position` is its end if more results follow."""

    results: list[Any] = field(default_factory=list)
    position: PagePosition | None = None
    scanned: int = 0


def run_query(statement: SqlStatement, scope: QueryScope, start: PagePosition, max_items: int) -> QueryPage:
    """Run a statement after a position.

    Args:
        statement: The statement.
        scope: The scope of the query.
        start: The end of the previous page.
        max_items: The most results of the page; 0 gives an empty page with a position.
    """
    if statement.aggregates:
        documents = [item.document for _, item in _scan(statement, scope, PagePosition())]
        return QueryPage(statement.aggregate(documents), None, len(documents))
    read = (_scan, _scan_sorted, _scan_and_sort)[min(len(statement.sort_keys), 2)]
    return _page(statement, read(statement, scope, start), start, max_items)


def _scan(statement: SqlStatement, scope: QueryScope, start: PagePosition) -> Iterator[tuple[str, CosmosItem]]:
    for range_id, items in scope.item_lists():
        # Range ids are ordered; earlier ranges are complete.
        if start.range_id and int(range_id or 0) < int(start.range_id):
            continue
        for item in items.iterate_after(start.number if range_id == start.range_id else 0):
            if scope.contains(item) and statement.matches(item.document):
                yield range_id, item


def _scan_sorted(statement: SqlStatement, scope: QueryScope, start: PagePosition) -> Iterator[tuple[str, CosmosItem]]:
    key = statement.sort_keys[0]
    last_entry = None if start.keys is None else sort_entry(start.keys[0], start.number)
    # Clients send a sorted query to one range at a time.
    ((range_id, items),) = scope.item_lists()
    for item in items.iterate_sorted_after(key.path, last_entry, descending=key.descending):
        if scope.contains(item) and statement.matches(item.document):
            yield range_id, item


def _scan_and_sort(statement: SqlStatement, scope: QueryScope, start: PagePosition) -> Iterator[tuple[str, CosmosItem]]:
    descending = [key.descending for key in statement.sort_keys]

    def compare(left: tuple[Sequence[Any], int], right: tuple[Sequence[Any], int]) -> int:
        return compare_sort_keys(left[0], right[0], descending) or left[1] - right[1]

    rows = [
        ((statement.keys(item.document), item.number), range_id, item)
        for range_id, item in _scan(statement, scope, PagePosition())
    ]
    if start.keys is not None:
        last_entry = (start.keys, start.number)
        rows = [row for row in rows if compare(row[0], last_entry) > 0]
    order = functools.cmp_to_key(compare)
    rows.sort(key=lambda row: order(row[0]))
    return ((range_id, item) for _, range_id, item in rows)


def _page(
    statement: SqlStatement, found: Iterator[tuple[str, CosmosItem]], start: PagePosition, max_items: int
) -> QueryPage:
    page, size, end = QueryPage(), 0, start
    for range_id, item in found:
        if statement.max_results is not None and end.returned >= statement.max_results:
            return page
        if len(page.results) >= max_items or size > _MAX_PAGE_BYTES:
            page.position = end
            return page
        skip = end.skipped < statement.skipped
        keys = statement.keys(item.document) if statement.sort_keys else None
        end = PagePosition(range_id, item.number, keys, end.skipped + skip, end.returned + (not skip))
        page.scanned += 1
        if not skip:
            page.results.extend(statement.results(item.document))
            size += len(item.text)
    return page


def _digest(query: str) -> str:
    return hashlib.sha256(query.encode()).hexdigest()[:16]


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
