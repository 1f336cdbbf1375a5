"""Tests of the comparison of JSON values."""

import pytest

from shared.text_formats.json_comparison import is_same_json


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [(1, True, False), (False, 0, False), (1, 1.0, True), (True, True, True), (1, 2, False), (None, None, True)],
)
def test_booleans_differ_from_numbers(first: object, second: object, *, is_same: bool) -> None:
    """True is not 1 and false is not 0, also in objects and lists; 1 and 1.0 are the same number."""
    assert is_same_json(first, second) is is_same
    assert is_same_json({"a": [{"b": first}]}, {"a": [{"b": second}]}) is is_same
