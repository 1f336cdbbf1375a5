"""Tests of the plugins ``basket``, ``autocluster`` and ``diffpatterns``."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS = (
    "let T = range x from 1 to 100 step 1 | extend a = iff(x <= 60, 'p', iff(x <= 90, 'q', strcat('r', x))), "
    "b = x % 2, c = iff(x <= 60, 1, x), s = iff(x <= 70, 'A', 'B'), w = 2; "
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "T | project a, b, c | evaluate basket(0.2)",
            [
                [0, 60, 60.0, "p", None, 1], [1, 30, 30.0, "p", 0, 1], [2, 30, 30.0, "p", 1, 1],
                [3, 50, 50.0, "", 0, None], [4, 50, 50.0, "", 1, None], [5, 30, 30.0, "q", None, None],
            ],
        ),
        (
            "T | project a, b | evaluate basket(0.45, '~', 1, '*', -1)",
            [[0, 60, 60.0, "p", -1], [1, 50, 50.0, "*", 0], [2, 50, 50.0, "*", 1]],
        ),
        ("T | project a, b, w | evaluate basket(0.55, w)", [[0, 120, 60.0, "p", None]]),
        ("T | project a, b, w | evaluate basket(0.55, 'w')", [[0, 120, 60.0, "p", None]]),
        ("T | where x > 100 | evaluate basket()", []),
        ("print a = 1, b = 'x', c = int(null) | evaluate autocluster()", [[0, 1, 100.0, 1, "x", None]]),
        (
            "T | project a, b, s | evaluate diffpatterns(s, 'A', 'B', '~', 0.6)",
            [[0, 60, 0, 85.71, 0.0, 85.71, "p", None]],
        ),
        ("T | project a, s | evaluate diffpatterns(s, 'A', 'nothing')", []),
    ],
)  # fmt: skip
def test_patterns(endpoint: Endpoint, query: str, expected: list[list[object]]) -> None:
    """A pattern has the values that its rows share, and wildcards in place of all other values."""
    assert endpoint.rows(ROWS + query) == expected


def test_columns(endpoint: Endpoint) -> None:
    """The result has the measures before the input columns; ``diffpatterns`` omits the split column."""
    table = endpoint.table(ROWS + "T | project a, s | evaluate diffpatterns(s, 'A', 'B')")
    assert [column.column_name for column in table.columns] == [
        "SegmentId", "CountA", "CountB", "PercentA", "PercentB", "PercentDiffAB", "a",
    ]  # fmt: skip


def test_clusters_prefer_size_or_values(endpoint: Endpoint) -> None:
    """With a larger size weight, ``autocluster`` prefers patterns that have more rows and fewer values."""
    query = "T | project a, b, c | evaluate autocluster({}) | take 1 | project Count"
    assert endpoint.rows(ROWS + query.format(1)) == [[60]]
    assert endpoint.rows(ROWS + query.format(0)) == [[30]]


@pytest.mark.parametrize(
    "call",
    [
        "basket(2)", "basket('a')", "basket(0.1, nothing)", "basket(0.1, '~', 0)", "basket(0.1, '~', 1, a)",
        "autocluster(-1)", "diffpatterns(s)", "diffpatterns('s', 'A', 'B')", "diffpatterns(nothing, 'A', 'B')",
    ],
)  # fmt: skip
def test_wrong_arguments(endpoint: Endpoint, call: str) -> None:
    """An argument outside its range, or an unknown column, is rejected."""
    assert endpoint.error(f"{ROWS} T | evaluate {call}") is not None
