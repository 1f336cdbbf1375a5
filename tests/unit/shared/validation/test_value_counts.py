"""Tests of the number of values in a JSON value."""

from typing import Any

import pytest

from shared.validation.value_counts import count_json_values


@pytest.mark.parametrize(
    ("value", "count"), [("text", 0), ([], 0), ([1, 2], 2), ({"a": [1, {"b": 2}], "c": None}, 5), ([[], [[]]], 3)]
)
def test_values_of_nested_arrays_and_objects_are_counted(value: Any, count: int) -> None:
    """The count contains the values of all arrays and objects, but not the outermost value."""
    assert count_json_values(value, 10) == count


def test_counting_stops_above_the_maximum() -> None:
    """The result for a larger value is some number above the maximum."""
    assert count_json_values([[1, 2], [3, 4]], 3) > 3
