"""Items in the order of one path's values, kept as items come and go, so that a page costs no sort of the whole."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from emulators.cosmos.sql_expressions import SqlRow, path_expression
from emulators.cosmos.sql_values import type_rank

type SortEntry = tuple[int, Any, int]
"""The type of a value, the value where it has an order, and the item's number."""

_LAST_WITH_ORDER = 5


class SortIndex:
    """The numbers of items by the value at a path, then by number.

    Args:
        path: The path: names and places in arrays.
    """

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self._value = path_expression(path)
        self._entries: list[SortEntry] = []

    def add(self, number: int, document: Any) -> None:
        """Adds an item."""
        insort(self._entries, sort_entry(self._value(SqlRow(document)), number))

    def remove(self, number: int, document: Any) -> None:
        """Takes an item away, with the document that it was added with."""
        del self._entries[bisect_left(self._entries, sort_entry(self._value(SqlRow(document)), number))]

    def after(self, last_entry: SortEntry | None, *, descending: bool) -> Iterator[int]:
        """Gives the numbers that follow an entry, which need not be there any more; all if there is none."""
        if descending:
            start = len(self._entries) if last_entry is None else bisect_left(self._entries, last_entry)
            return (self._entries[index][2] for index in range(start - 1, -1, -1))
        start = 0 if last_entry is None else bisect_right(self._entries, last_entry)
        return (self._entries[index][2] for index in range(start, len(self._entries)))


def sort_entry(value: Any, number: int) -> SortEntry:
    """Gives the entry of a value; arrays and objects, like null and undefined, are equal among themselves."""
    kind = type_rank(value)
    return (kind, value if 1 < kind <= _LAST_WITH_ORDER else 0, number)
