"""Comparison and sort order of Cosmos SQL values: JSON values and undefined."""

from collections.abc import Sequence
from typing import Any, Final


class Undefined:
    """Value of a missing property."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()

_RANKS: dict[type, int] = {Undefined: 0, type(None): 1, bool: 2, int: 4, float: 4, str: 5, list: 6}


def type_rank(value: Any) -> int:
    """Return the rank of a value's type: undefined, null, booleans, numbers, strings, arrays, objects."""
    return _RANKS.get(type(value), 7)


def compare_equal(left: Any, right: Any) -> Any:
    """Compare for equality: undefined if one side is undefined, false for different types."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return are_equal(left, right)


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two defined values are equal, including nested values."""
    if type_rank(left) != type_rank(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(are_equal(left[name], right[name]) for name in left)
    return bool(left == right)


def compare(left: Any, right: Any) -> int | None:
    """Compare for order: negative, 0 or positive; None for different or unordered types."""
    if type_rank(left) != type_rank(right) or type_rank(left) not in (1, 2, 4, 5):
        return None
    if left is None:
        return 0
    return int(left > right) - int(left < right)


def compare_sort_keys(left: Sequence[Any], right: Sequence[Any], descending: Sequence[bool]) -> int:
    """Compare two lists of sort keys, including mixed types.

    Args:
        left: The keys of one row.
        right: The keys of the other.
        descending: The direction of each key.
    """
    for one, other, down in zip(left, right, descending, strict=True):
        result = type_rank(one) - type_rank(other) or compare(one, other) or 0
        if result:
            return -result if down else result
    return 0
