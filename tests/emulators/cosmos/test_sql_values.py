"""Tests of the values in Cosmos SQL."""

from itertools import pairwise
from typing import Any

import pytest

from emulators.cosmos.sql_values import UNDEFINED, are_equal, compare_equal, find_type_rank


def test_types_have_an_order() -> None:
    """Values of different types are sorted in this order: undefined, null, boolean, number, string, array, object."""
    values: list[Any] = [UNDEFINED, None, True, 1, "a", [], {}]
    for one, next_one in pairwise(values):
        assert find_type_rank(one) < find_type_rank(next_one)
    assert find_type_rank(1) == find_type_rank(1.5)


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), ([{"a": 1}], [{"a": 1.0}]), ({}, {}), (None, None)])
def test_equal_values(left: Any, right: Any) -> None:
    """Values are equal if their types and all nested values are equal; integers and fractions have the same type."""
    assert are_equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"), [(1, True), (0, False), ([1], [True]), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("1", 1), (None, 0)]
)
def test_different_values(left: Any, right: Any) -> None:
    """Values of different types are unequal, even a boolean and a number, also if they are nested in other values."""
    assert not are_equal(left, right)


def test_a_comparison_with_undefined_is_undefined() -> None:
    """A comparison with undefined is undefined; any other comparison is a boolean."""
    assert compare_equal(UNDEFINED, 1) is UNDEFINED
    assert compare_equal(1, UNDEFINED) is UNDEFINED
    assert compare_equal(1, "1") is False
