"""Runs a statement over a container, page by page."""

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from emulators.cosmos.containers import Container, Item, Shelf
from emulators.cosmos.partition_keys import Key
from emulators.cosmos.sort_index import entry
from emulators.cosmos.sql_statement import Statement
from emulators.cosmos.sql_values import UNDEFINED, sort_order
from emulators.cosmos.wire import Refusal

_MAX_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Scope:
    """What a query reads: a logical partition, or physical ranges, of these the part between two hash values."""

    container: Container
    key: Key | None = None
    range_id: str | None = None
    low: str = ""
    high: str = "FF"

    def shelves(self) -> list[tuple[str, Shelf]]:
        """Gives the shelves with the ids of their ranges, in the order in which they are read."""
        if self.key is not None:
            return [("", self.container.shelf(self.key))]
        return [(part.id, part.shelf) for part in self.container.ranges if self.range_id in (None, part.id)]

    def holds(self, item: Item) -> bool:
        """Says whether an item of the shelves lies between the hash values."""
        return self.low <= item.epk < self.high


@dataclass(frozen=True)
class Position:
    """Where a page ended.

    Attributes:
        range_id: The range of the last item.
        number: Its place in the order of creation.
        keys: Its sort keys; None before the first item.
        skipped: How many results have been left out so far.
        given: How many have been given so far.
    """

    range_id: str = ""
    number: int = 0
    keys: list[Any] | None = None
    skipped: int = 0
    given: int = 0

    def encode(self, query: str) -> str:
        """Writes it as an opaque token that holds for one query only."""
        keys = None if self.keys is None else [[] if key is UNDEFINED else [key] for key in self.keys]
        values = [_digest(query), self.range_id, self.number, keys, self.skipped, self.given]
        return base64.urlsafe_b64encode(orjson.dumps(values)).decode()

    @classmethod
    def decode(cls, token: str, query: str) -> "Position":
        """Reads a token.

        Raises:
            Refusal: 400, it is no token, or one of another query.
        """
        try:
            digest, range_id, number, keys, skipped, given = orjson.loads(base64.urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise Refusal(400, "Invalid Continuation Token") from error
        if digest != _digest(query):
            raise Refusal(400, "Invalid Continuation Token: it belongs to another query.")
        values = None if keys is None else [key[0] if key else UNDEFINED for key in keys]
        return cls(range_id, number, values, skipped, given)


@dataclass
class Page:
    """One page of results; `position` is where it ended if there is more."""

    results: list[Any] = field(default_factory=list)
    position: Position | None = None
    scanned: int = 0


def run(statement: Statement, scope: Scope, start: Position, max_items: int) -> Page:
    """Runs a statement from a position on.

    Args:
        statement: The statement.
        scope: What it reads.
        start: Where the page before ended.
        max_items: The most results of the page; 0 gives an empty page with a position.
    """
    if statement.aggregates:
        documents = [item.document for _, item in _matching(statement, scope, Position())]
        return Page(statement.aggregate(documents), None, len(documents))
    read = (_matching, _by_one_key, _by_several_keys)[min(len(statement.sort_keys), 2)]
    return _page(statement, read(statement, scope, start), start, max_items)


def _matching(statement: Statement, scope: Scope, start: Position) -> Iterator[tuple[str, Item]]:
    for range_id, shelf in scope.shelves():
        # Ranges are numbered in their order; those before the position's are done.
        if start.range_id and int(range_id or 0) < int(start.range_id):
            continue
        for item in shelf.after(start.number if range_id == start.range_id else 0):
            if scope.holds(item) and statement.matches(item.document):
                yield range_id, item


def _by_one_key(statement: Statement, scope: Scope, start: Position) -> Iterator[tuple[str, Item]]:
    key = statement.sort_keys[0]
    last = None if start.keys is None else entry(start.keys[0], start.number)
    # A query with an order is never sent over several ranges at once.
    ((range_id, shelf),) = scope.shelves()
    for item in shelf.sorted_after(key.path, last, descending=key.descending):
        if scope.holds(item) and statement.matches(item.document):
            yield range_id, item


def _by_several_keys(statement: Statement, scope: Scope, start: Position) -> Iterator[tuple[str, Item]]:
    descending = [key.descending for key in statement.sort_keys]

    def compare(left: tuple[Sequence[Any], int], right: tuple[Sequence[Any], int]) -> int:
        return sort_order(left[0], right[0], descending) or left[1] - right[1]

    rows = [
        ((statement.keys(item.document), item.number), range_id, item)
        for range_id, item in _matching(statement, scope, Position())
    ]
    if start.keys is not None:
        last = (start.keys, start.number)
        rows = [row for row in rows if compare(row[0], last) > 0]
    order = functools.cmp_to_key(compare)
    rows.sort(key=lambda row: order(row[0]))
    return ((range_id, item) for _, range_id, item in rows)


def _page(statement: Statement, found: Iterator[tuple[str, Item]], start: Position, max_items: int) -> Page:
    page, size, end = Page(), 0, start
    for range_id, item in found:
        if statement.most is not None and end.given >= statement.most:
            return page
        if len(page.results) >= max_items or size > _MAX_PAGE_BYTES:
            page.position = end
            return page
        skip = end.skipped < statement.skipped
        keys = statement.keys(item.document) if statement.sort_keys else None
        end = Position(range_id, item.number, keys, end.skipped + skip, end.given + (not skip))
        page.scanned += 1
        if not skip:
            page.results.extend(statement.results(item.document))
            size += len(item.text)
    return page


def _digest(query: str) -> str:
    return hashlib.sha256(query.encode()).hexdigest()[:16]
