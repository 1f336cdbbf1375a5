"""Data plane of the test server: items, batches and queries of one container, with paged results.

This module is separate from ``service``, which chooses the operation that a request needs; this module executes the
operation on a container.
The module ``server`` handles HTTP connections and the faults that tests inject.
"""

import base64
import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import orjson

from emulators.cosmos.containers import CosmosContainer, CosmosItem, ItemList, Transaction
from emulators.cosmos.indexing import check_order_by_supported
from emulators.cosmos.items import ItemOperation, build_failed_batch_results, execute_batch
from emulators.cosmos.partition_keys import PartitionKey, parse_partition_key_header
from emulators.cosmos.sort_index import build_sort_entry
from emulators.cosmos.sql_statement import SqlStatement, parse_statement
from emulators.cosmos.sql_values import UNDEFINED, compare_sort_keys
from emulators.cosmos.wire import CosmosError, CosmosReply, CosmosRequest, build_unsupported_error

_MAX_PAGE_BYTES = 4 * 1024 * 1024
_PAGE_ITEMS = 100
_MOST_PAGE_ITEMS = 1000


class PartitionItems(NamedTuple):
    """Items that a query reads together: those of one physical partition, or of one logical partition.

    ``range_id`` is the id of the physical partition; it is empty for a logical partition.
    """

    range_id: str
    items: ItemList


class LocatedItem(NamedTuple):
    """Item, and the id of the physical partition from which a query reads it."""

    range_id: str
    item: CosmosItem


class _RowPosition(NamedTuple):
    """Position of an item in sorted results: the values of its sort keys, and its creation number."""

    sort_values: Sequence[Any]
    creation_number: int


@dataclass(frozen=True)
class QueryScope:
    """Items that a query reads: one logical partition, or a range of hash values in one or all physical partitions.

    Attributes:
        container: The container with the items.
        key: The partition key of the logical partition; None for all logical partitions.
        range_id: The id of the physical partition; None for all physical partitions.
        low: The smallest effective partition key (hash of the partition key), inclusive.
        high: The largest effective partition key, exclusive.
    """

    container: CosmosContainer
    key: PartitionKey | None = None
    range_id: str | None = None
    low: str = ""
    high: str = "FF"

    def list_partitions_to_read(self) -> list[PartitionItems]:
        """Return the item lists that the query must read, in the order in which it must read them."""
        if self.key is not None:
            return [PartitionItems("", self.container.get_partition_items(self.key))]
        return [
            PartitionItems(part.id, part.items) for part in self.container.ranges if self.range_id in (None, part.id)
        ]

    def is_hash_in_range(self, item: CosmosItem) -> bool:
        """Return whether an item's effective partition key is in the range of hash values that the query reads."""
        return self.low <= item.epk < self.high


@dataclass(frozen=True)
class PagePosition:
    """Position in the results of a query at which the next page begins.

    Attributes:
        range_id: The id of the physical partition of the last item that was read.
        number: The position of this item in order of creation.
        keys: The values of this item for ORDER BY; None before the first item and without ORDER BY.
        skipped: The number of results skipped so far, because of OFFSET.
        returned: The number of results returned so far, for TOP and LIMIT.
    """

    range_id: str = ""
    number: int = 0
    keys: list[Any] | None = None
    skipped: int = 0
    returned: int = 0

    def to_continuation_token(self, query_identity: str) -> str:
        """Encode the position as a continuation token of the query that ``query_identity`` identifies."""
        keys = None if self.keys is None else [[] if key is UNDEFINED else [key] for key in self.keys]
        values = [
            _compute_short_query_hash(query_identity),
            self.range_id,
            self.number,
            keys,
            self.skipped,
            self.returned,
        ]
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode()

    @classmethod
    def from_continuation_token(cls, token: str, query_identity: str) -> "PagePosition":
        """Decode a continuation token of the query that ``query_identity`` identifies.

        Raises:
            CosmosError: 400 if the token is invalid or belongs to another query.
        """
        try:
            digest, range_id, number, keys, skipped, returned = orjson.loads(base64.urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise CosmosError(400, "Invalid Continuation Token") from error
        if digest != _compute_short_query_hash(query_identity):
            raise CosmosError(400, "Invalid Continuation Token: it belongs to another query.")
        values = None if keys is None else [key[0] if key else UNDEFINED for key in keys]
        return cls(range_id, number, values, skipped, returned)


@dataclass
class CosmosResultPage:
    """Page of query results.

    Attributes:
        results: The results on this page.
        next_position: The position at which the next page begins; None on the last page.
        scanned: The number of items from which the results were computed.
    """

    results: list[Any] = field(default_factory=list)
    next_position: PagePosition | None = None
    scanned: int = 0


def run_query(statement: SqlStatement, scope: QueryScope, start: PagePosition, max_items: int) -> CosmosResultPage:
    """Execute a statement and return the page of results that begins at a position.

    Args:
        statement: The parsed query.
        scope: The items that the query reads.
        start: The position at which the page begins.
        max_items: The maximum number of results in the page; 0 returns an empty page with the position `start`. For a
            query with aggregates, this is the maximum number of items in the aggregate of the page.
    """
    if statement.aggregates:
        return _compute_aggregate_page(
            statement, _iterate_items_in_creation_order(statement, scope, start), start, max_items
        )
    read = (_iterate_items_in_creation_order, _iterate_items_in_index_order, _iterate_items_sorted_by_several_keys)[
        min(len(statement.sort_keys), 2)
    ]
    return _compute_result_page(statement, read(statement, scope, start), start, max_items)


def _iterate_items_in_creation_order(
    statement: SqlStatement, scope: QueryScope, start: PagePosition
) -> Iterator[LocatedItem]:
    """Yield the matching items after a position, in order of creation."""
    for range_id, items in scope.list_partitions_to_read():
        # Partition ids are ordered, so that earlier partitions were read completely.
        if start.range_id and int(range_id or 0) < int(start.range_id):
            continue
        for item in items.iterate_items_created_after(start.number if range_id == start.range_id else 0):
            if scope.is_hash_in_range(item) and statement.matches(item.document):
                yield LocatedItem(range_id, item)


def _iterate_items_in_index_order(
    statement: SqlStatement, scope: QueryScope, start: PagePosition
) -> Iterator[LocatedItem]:
    """Yield the matching items after a position, in the order of the only ORDER BY path."""
    key = statement.sort_keys[0]
    last_entry = None if start.keys is None else build_sort_entry(start.keys[0], start.number)
    # Clients send a sorted query to one physical partition at a time.
    ((range_id, items),) = scope.list_partitions_to_read()
    for item in items.iterate_items_sorted_after(key.path, last_entry, descending=key.descending):
        if scope.is_hash_in_range(item) and statement.matches(item.document):
            yield LocatedItem(range_id, item)


def _iterate_items_sorted_by_several_keys(
    statement: SqlStatement, scope: QueryScope, start: PagePosition
) -> Iterator[LocatedItem]:
    """Yield the matching items after a position, sorted by several ORDER BY paths."""
    descending = [key.descending for key in statement.sort_keys]

    def compare_positions(left: _RowPosition, right: _RowPosition) -> int:
        return (
            compare_sort_keys(left.sort_values, right.sort_values, descending)
            or left.creation_number - right.creation_number
        )

    rows = [
        (_RowPosition(statement.compute_sort_keys(item.document), item.number), range_id, item)
        for range_id, item in _iterate_items_in_creation_order(statement, scope, PagePosition())
    ]
    if start.keys is not None:
        last_entry = _RowPosition(start.keys, start.number)
        rows = [row for row in rows if compare_positions(row[0], last_entry) > 0]
    order = functools.cmp_to_key(compare_positions)
    rows.sort(key=lambda row: order(row[0]))
    return (LocatedItem(range_id, item) for _, range_id, item in rows)


def _compute_result_page(
    statement: SqlStatement, items: Iterator[LocatedItem], start: PagePosition, max_items: int
) -> CosmosResultPage:
    """Compute the results for the items, until the page is full or all items are read."""
    page, size, end = CosmosResultPage(), 0, start
    for range_id, item in items:
        if statement.max_results is not None and end.returned >= statement.max_results:
            return page
        if len(page.results) >= max_items or size > _MAX_PAGE_BYTES:
            page.next_position = end
            return page
        skip = end.skipped < statement.results_to_skip
        keys = statement.compute_sort_keys(item.document) if statement.sort_keys else None
        end = PagePosition(range_id, item.number, keys, end.skipped + skip, end.returned + (not skip))
        page.scanned += 1
        if not skip:
            page.results.extend(statement.list_result_if_defined(item.document))
            size += len(item.text)
    return page


def _compute_aggregate_page(
    statement: SqlStatement, items: Iterator[LocatedItem], start: PagePosition, max_items: int
) -> CosmosResultPage:
    """Compute the aggregate over the first ``max_items`` items; the next page has the aggregate over the next items."""
    read = list(islice(items, max_items))
    documents = [item.document for _, item in read]
    page = CosmosResultPage(statement.list_aggregate_result_if_defined(documents), None, len(documents))
    if next(items, None) is not None:
        page.next_position = PagePosition(read[-1].range_id, read[-1].item.number) if read else start
    return page


def _compute_short_query_hash(query_identity: str) -> str:
    return hashlib.sha256(query_identity.encode()).hexdigest()[:16]


def execute_item_operation(container: CosmosContainer, request: CosmosRequest) -> CosmosReply:
    """Execute a request to create, read, replace, patch or delete one item, and return the reply.

    Raises:
        CosmosError: the operation is invalid, or the ETag does not match.
    """
    transaction = Transaction(container)
    kind = request.operation.removesuffix("_item")
    operation = ItemOperation(
        kind=kind,
        key=parse_partition_key_header(request.read_header("x-ms-documentdb-partitionkey"), container.paths),
        item_id=request.item_id,
        body=request.json_body if request.body else None,
        if_match=request.read_header("if-match") or None,
        if_none_match=request.read_header("if-none-match") or None,
    )
    outcome = operation.apply(transaction)
    transaction.commit()
    headers = {"x-ms-request-charge": f"{outcome.charge:.2f}"}
    if outcome.item is None:
        return CosmosReply(outcome.status, headers=headers)
    headers |= {"etag": outcome.item.etag, "x-ms-item-llsn": str(container.lsn)}
    bare = request.read_header("prefer") == "return=minimal" and kind != "read"
    return CosmosReply(outcome.status, None if bare else outcome.item.text, headers)


def execute_batch_request(container: CosmosContainer, request: CosmosRequest) -> CosmosReply:
    """Execute a transactional batch and return the reply.

    Raises:
        CosmosError: the request is not a valid batch.
    """
    if not request.has_true_header("x-ms-cosmos-batch-atomic"):
        raise build_unsupported_error("batches that are not atomic")
    key = parse_partition_key_header(request.read_header("x-ms-documentdb-partitionkey"), container.paths)
    minimal = request.read_header("prefer") == "return=minimal"
    status, results = execute_batch(container, key, request.json_body, omit_documents=minimal)
    charge = sum(result["requestCharge"] for result in results)
    return CosmosReply(status, results, {"x-ms-request-charge": f"{charge:.2f}", "x-ms-item-count": str(len(results))})


def build_failed_batch_reply(request: CosmosRequest, error: CosmosError) -> CosmosReply:
    """Build the reply to a batch whose first operation failed with ``error``; the batch has changed nothing."""
    count = len(request.json_body) if isinstance(request.json_body, list) else 1
    return CosmosReply(207, build_failed_batch_results(max(count, 1), 0, error), {"x-ms-request-charge": "1.0"})


def build_query_plan_reply(request: CosmosRequest) -> CosmosReply:
    """Build the reply with the plan of a query, which states how the client must merge the partitions' results."""
    return CosmosReply(200, _build_query_plan(_parse_query(request)), {"x-ms-request-charge": "1.0"})


def execute_query(container: CosmosContainer, request: CosmosRequest, max_page_items: int | None) -> CosmosReply:
    """Return the reply with one page of the results of a query, or with one page of all items of a container.

    Args:
        container: The container to read.
        request: The request with the query; a request for the operation `read_feed` lists all items.
        max_page_items: The maximum number of items if an injected fault shortens the page; None for a full page.

    Raises:
        CosmosError: the query is invalid or not supported.
    """
    if request.read_header("a-im"):
        raise build_unsupported_error("the change feed")
    statement = _parse_query(request) if request.operation == "query" else parse_statement("SELECT * FROM c", {})
    check_order_by_supported(container.properties["indexingPolicy"], statement.sort_keys)
    scope = _parse_query_scope(container, request, statement)
    requested = int(request.read_header("x-ms-max-item-count") or _PAGE_ITEMS)
    limit = min(requested if requested > 0 else _MOST_PAGE_ITEMS, _MOST_PAGE_ITEMS)
    if statement.aggregates:
        # The size of a page does not limit an aggregate; Cosmos DB splits an aggregate that takes long.
        limit = sys.maxsize
    identity = _build_query_identity(request, container)
    token = request.read_header("x-ms-continuation")
    start = PagePosition.from_continuation_token(token, identity) if token else PagePosition()
    page = run_query(statement, scope, start, limit if max_page_items is None else min(max_page_items, limit))
    return _build_page_reply(container, page, identity)


def _build_page_reply(container: CosmosContainer, page: CosmosResultPage, query_identity: str) -> CosmosReply:
    headers = {
        "x-ms-request-charge": f"{2.0 + 0.05 * page.scanned:.2f}",
        "x-ms-item-count": str(len(page.results)),
    }
    if page.next_position is not None:
        headers["x-ms-continuation"] = page.next_position.to_continuation_token(query_identity)
    return CosmosReply(200, {"_rid": container.rid, "Documents": page.results, "_count": len(page.results)}, headers)


def _parse_query_scope(container: CosmosContainer, request: CosmosRequest, statement: SqlStatement) -> QueryScope:
    key = request.read_header("x-ms-documentdb-partitionkey")
    if key:
        return QueryScope(container, key=parse_partition_key_header(key, container.paths))
    range_id = request.read_header("x-ms-documentdb-partitionkeyrangeid") or None
    if range_id is not None and range_id not in [part.id for part in container.ranges]:
        raise CosmosError(410, f"Partition key range {range_id} is gone.", substatus=1002)
    if range_id is None and request.operation == "query":
        _check_cross_partition_query_is_allowed(request, statement)
    scope = QueryScope(container, range_id=range_id)
    low, high = request.read_header("x-ms-start-epk"), request.read_header("x-ms-end-epk")
    return dataclasses.replace(scope, low=low, high=high or "FF") if low or high else scope


def _check_cross_partition_query_is_allowed(request: CosmosRequest, statement: SqlStatement) -> None:
    if not request.has_true_header("x-ms-documentdb-query-enablecrosspartition"):
        raise CosmosError(
            400,
            "Cross partition query is required but disabled. Please set"
            " x-ms-documentdb-query-enablecrosspartition to true.",
        )
    if not statement.can_concatenate_results:
        raise CosmosError(
            400,
            "The provided cross partition query can not be directly served by the gateway."  # the text of Cosmos DB
            " ORDER BY, TOP, OFFSET and aggregates require a partition key, or a client that runs the query plan.",
            1004,
        )


def _parse_query(request: CosmosRequest) -> SqlStatement:
    body = request.json_body
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise CosmosError(400, "The body of a query must be a JSON object with the text of the query in `query`.")
    return parse_statement(body["query"], _parse_query_parameters(body))


def _parse_query_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry["value"] for entry in body.get("parameters") or []}


def _build_query_plan(statement: SqlStatement) -> dict[str, Any]:
    whole = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    return {"partitionedQueryExecutionInfoVersion": 2, "queryInfo": statement.build_plan(), "queryRanges": [whole]}


def _build_query_identity(request: CosmosRequest, container: CosmosContainer) -> str:
    """Return a text that identifies a query, for its continuation tokens: container, partition and query text."""
    names = ("x-ms-documentdb-partitionkey", "x-ms-documentdb-partitionkeyrangeid")
    query = orjson.dumps(request.json_body).decode() if request.operation == "query" else ""
    return "\n".join([container.rid, *(request.read_header(name) for name in names), query])
