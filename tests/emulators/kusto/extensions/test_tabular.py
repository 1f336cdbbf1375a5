"""Operators that choose columns or rows."""

from typing import Any

import pytest

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
def test_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """An operator that chooses columns or rows answers what its documentation says."""
    assert endpoint.rows(text)[0] == row


def test_rows_by_parameter(endpoint: Endpoint) -> None:
    """A query parameter may say how many rows are taken, and how wide a bin is."""
    declared = "declare query_parameters(_n:long, _w:timespan = 1h); "
    assert endpoint.rows(declared + "Telemetry | take _n | count", {"_n": 7}) == [[7]]
    query = (
        declared + "Telemetry | top _n by Number asc | summarize count() by bin(Timestamp, _w) | order by Timestamp asc"
    )
    assert endpoint.rows(query, {"_n": 90, "_w": "00:45:00"}) == [
        ["2026-01-01T00:00:00.000000Z", 45],
        ["2026-01-01T00:45:00.000000Z", 45],
    ]
    assert endpoint.rows(declared + "Telemetry | sample _n | count", {"_n": -1}) == [[0]]


def test_a_sample_is_of_the_rows(endpoint: Endpoint) -> None:
    """A sample holds as many rows as asked for, none of them twice."""
    assert endpoint.rows("Telemetry | sample 50 | summarize count(), dcount(Number)") == [[50, 50]]


def test_the_order_of_columns(endpoint: Endpoint) -> None:
    """Columns are kept in the order of the input, and reordered in the order of the patterns."""
    source = "print b = 1, a2 = 2, a10 = 3, c = 4 | "
    wanted = {
        "project-keep c, a*": ["a2", "a10", "c"],
        "project-away a*": ["b", "c"],
        "project-reorder c, a* asc": ["c", "a10", "a2", "b"],
        "project-reorder a* desc": ["a2", "a10", "b", "c"],
        "project-reorder *2, b": ["a2", "b", "a10", "c"],
    }
    for operator, names in wanted.items():
        assert [column.column_name for column in endpoint.table(source + operator).columns] == names


def test_mistakes_are_named(endpoint: Endpoint) -> None:
    """An unknown column and a number of rows that depends on the row are semantic errors."""
    for text in ("Telemetry | project-keep Nope", "Telemetry | project-away Nope", "Telemetry | take Number"):
        assert endpoint.error(text).is_semantic_error()


def test_an_undocumented_order_is_refused(endpoint: Endpoint) -> None:
    """What the documentation does not settle is refused by name."""
    assert endpoint.code("Telemetry | project-reorder D* granny-asc") == "BadRequest_NotSupported"
