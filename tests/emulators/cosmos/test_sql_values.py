"""Tests of the values in Cosmos SQL."""

from itertools import pairwise
from typing import Any

import pytest

from emulators.cosmos.sql_values import UNDEFINED, are_equal, evaluate_equality, get_type_rank


def test_sort_order_of_values_of_different_types() -> None:
    """Values of different types sort as undefined, null, boolean, number, string, array, object."""
    values: list[Any] = [UNDEFINED, None, True, 1, "a", [], {}]
    for one, next_one in pairwise(values):
        assert get_type_rank(one) < get_type_rank(next_one)
    assert get_type_rank(1) == get_type_rank(1.5)


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), ([{"a": 1}], [{"a": 1.0}]), ({}, {}), (None, None)])
def test_values_are_equal_if_types_and_nested_values_are_equal(left: Any, right: Any) -> None:
    """Values are equal if types and all nested values are equal; 1 and 1.0 have the same type."""
    assert are_equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"), [(1, True), (0, False), ([1], [True]), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("1", 1), (None, 0)]
)
def test_values_of_different_types_are_unequal(left: Any, right: Any) -> None:
    """Values of different types are unequal, also a boolean and a number, and also in nested values."""
    assert not are_equal(left, right)


def test_a_comparison_with_undefined_is_undefined() -> None:
    """A comparison with undefined is undefined; comparisons of defined values of one type are true or false."""
    assert evaluate_equality(UNDEFINED, 1) is UNDEFINED
    assert evaluate_equality(1, UNDEFINED) is UNDEFINED
    assert evaluate_equality(1, "1") is False
