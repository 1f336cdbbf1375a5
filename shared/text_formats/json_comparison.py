"""Comparison of JSON values."""

from typing import Any


def is_same_json(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal; unlike with ``==``, true differs from 1, and false from 0."""
    return first is second or (first == second and _has_same_booleans(first, second))


def _has_same_booleans(first: Any, second: Any) -> bool:
    """Return whether values that are equal for ``==`` have their booleans at the same places."""
    if isinstance(first, dict):
        return all(_has_same_booleans(member, second[name]) for name, member in first.items())
    if isinstance(first, list):
        return all(map(_has_same_booleans, first, second))
    return isinstance(first, bool) is isinstance(second, bool)
