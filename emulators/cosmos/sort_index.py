"""Index of items by the value at a path, so that an ORDER BY query need not sort all items for each page."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from emulators.cosmos.sql_expressions import DocumentPath, SqlRow, build_path_expression
from emulators.cosmos.sql_values import get_type_rank

type SortEntry = tuple[int, Any, int]
"""Rank of a value's type, the value (0 if its type has no order), and the creation number of the item."""

_LAST_WITH_ORDER = 5


class SortIndex:
    """Index that sorts items by the value at a path in their documents, and items with equal values by creation.

    The index stores the creation number of each item: a number that is higher for each newer item.

    Args:
        path: path of the value in each document: property names and array indexes.
    """

    def __init__(self, path: DocumentPath) -> None:
        self._value = build_path_expression(path)
        self._entries: list[SortEntry] = []

    def add(self, creation_number: int, document: Any) -> None:
        """Add an item to the index, with its creation number and its document."""
        insort(self._entries, build_sort_entry(self._value(SqlRow(document)), creation_number))

    def remove(self, creation_number: int, document: Any) -> None:
        """Remove the item with this creation number from the index; the document must be the one that was added."""
        del self._entries[bisect_left(self._entries, build_sort_entry(self._value(SqlRow(document)), creation_number))]

    def iterate_creation_numbers_after(self, last_entry: SortEntry | None, *, descending: bool) -> Iterator[int]:
        """Yield the creation numbers of the items after an index entry, in sort order; with None, yield all."""
        if descending:
            start = len(self._entries) if last_entry is None else bisect_left(self._entries, last_entry)
            return (self._entries[index][2] for index in range(start - 1, -1, -1))
        start = 0 if last_entry is None else bisect_right(self._entries, last_entry)
        return (self._entries[index][2] for index in range(start, len(self._entries)))


def build_sort_entry(value: Any, creation_number: int) -> SortEntry:
    """Build the index entry of an item.

    Args:
        value: the item's value at the path of the index. All arrays are sorted as equal, and so are all objects.
        creation_number: creation number of the item, by which items with equal values are sorted.
    """
    kind = get_type_rank(value)
    return (kind, value if 1 < kind <= _LAST_WITH_ORDER else 0, creation_number)
