"""Execution of a statement on a container, page by page."""

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from emulators.cosmos.containers import CosmosContainer, CosmosItem, ItemList
from emulators.cosmos.partition_keys import PartitionKey
from emulators.cosmos.sort_index import sort_entry
from emulators.cosmos.sql_statement import SqlStatement
from emulators.cosmos.sql_values import UNDEFINED, compare_sort_keys
from emulators.cosmos.wire import CosmosError

_MAX_PAGE_BYTES = 4 * 1024 * 1024


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
