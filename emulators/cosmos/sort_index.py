"""Index of items by the value at a path, so that a page requires no full sort."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from emulators.cosmos.sql_expressions import SqlRow, path_expression
from emulators.cosmos.sql_values import type_rank

type SortEntry = tuple[int, Any, int]
"""Type rank of a value, the value if it is ordered, and the item's number."""

_LAST_WITH_ORDER = 5


class SortIndex:
    """Item numbers, sorted by the value at a path and then by number.

    Args:
        path: The path: names and array indexes.
    """

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self._value = path_expression(path)
        self._entries: list[SortEntry] = []

    def add(self, number: int, document: Any) -> None:
        """Add an item."""
        insort(self._entries, sort_entry(self._value(SqlRow(document)), number))

    def remove(self, number: int, document: Any) -> None:
        """Remove an item by its number and its indexed document."""
        del self._entries[bisect_left(self._entries, sort_entry(self._value(SqlRow(document)), number))]

    def after(self, last_entry: SortEntry | None, *, descending: bool) -> Iterator[int]:
        """Return the numbers after an entry, which may have been removed; all numbers for None."""
        if descending:
            start = len(self._entries) if last_entry is None else bisect_left(self._entries, last_entry)
            return (self._entries[index][2] for index in range(start - 1, -1, -1))
        start = 0 if last_entry is None else bisect_right(self._entries, last_entry)
        return (self._entries[index][2] for index in range(start, len(self._entries)))


def sort_entry(value: Any, number: int) -> SortEntry:
    """Return the entry of a value; all arrays are equal, as are all objects, nulls and undefined values."""
    kind = type_rank(value)
    return (kind, value if 1 < kind <= _LAST_WITH_ORDER else 0, number)
