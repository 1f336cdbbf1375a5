"""Comparison and sort order of values in Cosmos DB SQL: JSON values, and `undefined` for a missing property."""

from collections.abc import Sequence
from typing import Any, Final


class Undefined:
    """Type of `UNDEFINED`, the value of a missing property in Cosmos DB SQL."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()

type SqlBoolean = bool | Undefined
"""Result of a condition in Cosmos DB SQL."""

_RANKS: dict[type, int] = {Undefined: 0, type(None): 1, bool: 2, int: 4, float: 4, str: 5, list: 6}


def get_type_rank(value: Any) -> int:
    """Return the rank of a value's type in the sort order: undefined, null, boolean, number, string, array, object."""
    return _RANKS.get(type(value), 7)


def evaluate_equality(left: object, right: object) -> SqlBoolean:
    """Evaluate `left = right`: undefined if an operand is undefined, false if the types differ."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return are_equal(left, right)


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two defined values are equal, including all nested values."""
    if get_type_rank(left) != get_type_rank(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(are_equal(left[name], right[name]) for name in left)
    return bool(left == right)


def compare_values_if_ordered(left: Any, right: Any) -> int | None:
    """Compare two values for `<` and `>`: negative, 0 or positive; None if the types differ or have no order."""
    if get_type_rank(left) != get_type_rank(right) or get_type_rank(left) not in (1, 2, 4, 5):
        return None
    if left is None:
        return 0
    return int(left > right) - int(left < right)


def compare_sort_keys(left: Sequence[Any], right: Sequence[Any], descending: Sequence[bool]) -> int:
    """Compare two rows by their sort keys; return a negative number, 0 or a positive number.

    Args:
        left: The sort keys of one row; the values may have different types.
        right: The sort keys of the other row.
        descending: For each sort key, True if the order is descending.
    """
    for one, other, down in zip(left, right, descending, strict=True):
        result = get_type_rank(one) - get_type_rank(other) or compare_values_if_ordered(one, other) or 0
        if result:
            return -result if down else result
    return 0
