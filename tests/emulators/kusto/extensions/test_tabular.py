"""Tests of tabular operators that select columns or rows."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.kusto.extensions.tabular import ColumnPattern
from tests.emulators.kusto.endpoints import Endpoint

ROWS: list[tuple[str, list[Any]]] = [
    ("print b='b', a2='a2', a3='a3', a1='a1' | project-reorder a* asc", ["a1", "a2", "a3", "b"]),
    ("print a=1, b=2, ab=3 | project-away a*", [2]),
    ("print a=1, b=2, ab=3 | project-keep b, a*", [1, 2, 3]),
    ("let n = 1; datatable(x:long)[1,2] | take n | count", [1]),
    ("let n = toscalar(print 1); datatable(x:long)[1,2] | limit n | count", [1]),
    ("let n = 1; datatable(x:long)[1,2] | top n by x asc", [1]),
    ("datatable(x:long,n:long)[1,5,2,5] | top 1+1 by x | count", [2]),
    ("datatable(x:long)[1,1,2] | distinct * | count", [2]),
    ("datatable(x:long)[1,1,2] | sample-distinct 5 of x | count", [2]),
]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_tabular_operators_return_the_documented_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A tabular operator that selects columns or rows returns the documented rows."""
    assert endpoint.query_rows(text)[0] == row


def test_row_counts_and_bin_sizes_can_be_query_parameters(endpoint: Endpoint) -> None:
    """The number of rows and the size of a bin may be query parameters."""
    declared = "declare query_parameters(_n:long, _w:timespan = 1h); "
    assert endpoint.query_rows(declared + "Telemetry | take _n | count", {"_n": 7}) == [[7]]
    query = (
        declared + "Telemetry | top _n by Number asc | summarize count() by bin(Timestamp, _w) | order by Timestamp asc"
    )
    assert endpoint.query_rows(query, {"_n": 90, "_w": "00:45:00"}) == [
        ["2026-01-01T00:00:00.000000Z", 45],
        ["2026-01-01T00:45:00.000000Z", 45],
    ]
    assert endpoint.query_rows(declared + "Telemetry | sample _n | count", {"_n": -1}) == [[0]]


def test_a_sample_contains_distinct_rows(endpoint: Endpoint) -> None:
    """A sample has the requested number of rows without duplicates."""
    assert endpoint.query_rows("Telemetry | sample 50 | summarize count(), dcount(Number)") == [[50, 50]]


def test_result_columns_keep_the_order_of_the_input(endpoint: Endpoint) -> None:
    """Result columns keep the order of the input; ``project-reorder`` sorts them by its patterns."""
    source = "print b = 1, a2 = 2, a10 = 3, c = 4 | "
    wanted = {
        "project-keep c, a*": ["a2", "a10", "c"],
        "project-away a*": ["b", "c"],
        "project-reorder c, a* asc": ["c", "a10", "a2", "b"],
        "project-reorder a* desc": ["a2", "a10", "b", "c"],
        "project-reorder *2, b": ["a2", "b", "a10", "c"],
    }
    for operator, names in wanted.items():
        assert [column.column_name for column in endpoint.query_table(source + operator).columns] == names


def test_invalid_arguments_of_tabular_operators_get_a_semantic_error(endpoint: Endpoint) -> None:
    """An unknown column, or a row count that is not constant, is rejected with a semantic error."""
    for text in ("Telemetry | project-keep Nope", "Telemetry | project-away Nope", "Telemetry | take Number"):
        assert endpoint.query_error(text).is_semantic_error()


def test_an_undocumented_column_order_is_rejected(endpoint: Endpoint) -> None:
    """A column order that the documentation does not define exactly is rejected."""
    assert endpoint.query_error_code("Telemetry | project-reorder D* granny-asc") == "BadRequest_NotSupported"


@given(st.text(alphabet="ab", max_size=12), st.lists(st.text(alphabet="ab", max_size=3), min_size=2, max_size=5))
def test_a_wildcard_pattern_matches_the_same_names_as_its_regular_expression(name: str, parts: list[str]) -> None:
    """A wildcard pattern matches the same names as its regular expression."""
    is_match = re.fullmatch(".*".join(parts), name) is not None
    assert ColumnPattern("*".join(parts)).list_matching_columns([name]) == [name] * is_match


def test_many_wildcards_take_linear_time() -> None:
    """Matching a pattern of many wildcards with a long name takes linear time."""
    assert ColumnPattern("*a" * 200 + "*b").list_matching_columns(["a" * 1_000]) == []
