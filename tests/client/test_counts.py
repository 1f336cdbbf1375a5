"""Tests of the texts of counts."""

import pytest
from oi.counts import format_count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_count(0, "record"), "0 records"),
        (format_count(1, "record"), "1 record"),
        (format_count(1234, "record"), "1234 records"),
        (format_count(2, "query", "queries"), "2 queries"),
        (format_count(1, "query", "queries"), "1 query"),
        (format_count(1234, "row", separator=","), "1,234 rows"),
    ],
)
def test_the_noun_agrees_with_the_count(text: str, expected: str) -> None:
    """The noun is in the singular only for the count 1."""
    assert text == expected
