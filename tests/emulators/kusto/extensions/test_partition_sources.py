"""Tests of the operator ``partition`` with a subquery that reads another table."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

SOURCES: list[tuple[str, list[list[Any]]]] = [
    ("{T | where w == toscalar(v)}", [["x", 1], ["y", 2]]),
    ("{T | where v == w | count}", [[1], [1]]),
    ("{T | top 1 by w desc | project w, k = toscalar(v) * 10}", [[3, 10], [3, 20]]),
    ("{range i from 1 to 3 step 1 | where i > toscalar(v) | summarize s = sum(i)}", [[3], [5]]),
    ("{T | where w > 5 | count}", [[0], [0]]),
]


@pytest.mark.parametrize(("body", "rows"), SOURCES)
def test_partition_with_a_source(endpoint: Endpoint, body: str, rows: list[list[Any]]) -> None:
    """A subquery in braces can read any table, and runs once for each value of the column."""
    table = "let T = datatable(n:string, w:long)['x', 1, 'y', 2, 'z', 3]"
    query = f"{table}; range v from 1 to 2 step 1 | partition hint.strategy=legacy by v {body}"
    assert sorted(endpoint.rows(query), key=str) == sorted(rows, key=str)
