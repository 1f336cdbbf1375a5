"""Tests of queries with several results: batches of statements, ``fork``, ``facet`` and the plugin ``preview``."""

from typing import Any

import httpx
import pytest
from azure.kusto.data import KustoClient, KustoConnectionStringBuilder

from tests.emulators.kusto.endpoints import Endpoint
from tests.plain_http import NO_TLS

NUMBERS = "range x from 1 to 4 step 1"

CASES: list[tuple[str, list[tuple[str, list[str], list[list[Any]]]]]] = [
    (
        f"let m = materialize({NUMBERS}); m | where x > 2 | count | as ['Many']; m | where x < 2; print ';'",
        [
            ("Many", ["Count"], [[2]]),
            ("PrimaryResult", ["x"], [[1]]),
            ("PrimaryResult", ["print_0"], [[";"]]),
        ],
    ),
    ("let a = 1; print b = a; let c = a + 1; print c;", [("", ["b"], [[1]]), ("", ["print_0"], [[2]])]),
    (
        f"{NUMBERS} | fork (where x > 2 | count) Small = (where x < 2) (take 1 | as Named)",
        [("PrimaryResult", ["Count"], [[2]]), ("Small", ["x"], [[1]]), ("Named", ["x"], [[1]])],
    ),
    (
        "datatable(a:string, b:long)['p', 1, 'q', 1, 'q', 2] | facet by a, b with (where b > 1 | project a)",
        [
            ("", ["a"], [["q"]]),
            ("", ["a", "count_a"], [["p", 1], ["q", 2]]),
            ("", ["b", "count_b"], [[1, 2], [2, 1]]),
        ],
    ),
    ("print a = 1 | facet by a", [("", ["a", "count_a"], [[1, 1]])]),
    (f"{NUMBERS} | evaluate preview(2)", [("", ["x"], [[1], [2]]), ("", ["Count"], [[4]])]),
    (
        "print b = dynamic({'k': 1}) | evaluate bag_unpack(b); print b = dynamic({'m': 2}) | evaluate bag_unpack(b)",
        [("", ["k"], [[1]]), ("", ["m"], [[2]])],
    ),
]


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_a_query_reply_has_one_table_for_each_result(
    endpoint: Endpoint, query: str, expected: list[tuple[str, list[str], list[list[Any]]]]
) -> None:
    """The reply has one table for each result, in the order of the query."""
    with KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        tables = client.execute_query("Telemetry", query).primary_results
    found = [
        (table.table_name, [each.column_name for each in table.columns], sorted(table.raw_rows, key=str))
        for table in tables
    ]
    assert found == [(name or "PrimaryResult", columns, rows) for name, columns, rows in expected]


def test_each_visualization_has_the_id_of_its_result_table(endpoint: Endpoint) -> None:
    """Each visualization in a reply has the id of its result table."""
    body = {"db": "Telemetry", "csl": "print a = 1 | render card; print b = 2 | render table"}
    frames = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json=body, verify=NO_TLS).json()
    annotations = [row[:2] for row in frames[1]["Rows"]]
    assert annotations == [[1, "Visualization"], [2, "Visualization"]]
    assert [frame["TableId"] for frame in frames if frame["FrameType"] == "DataTable"] == [0, 1, 2, 3]


def test_all_results_of_a_query_are_cached(endpoint: Endpoint) -> None:
    """The results cache returns all results of a query."""
    query = "print a = rand(); print b = rand()"
    body = {"db": "Telemetry", "csl": query, "properties": {"Options": {"query_results_cache_max_age": "00:05:00"}}}
    first, second = (
        [
            frame["Rows"]
            for frame in httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json=body, verify=NO_TLS).json()
            if frame.get("TableKind") == "PrimaryResult"
        ]
        for _ in range(2)
    )
    assert len(first) == 2
    assert first == second


@pytest.mark.parametrize(
    "query",
    [
        f"{NUMBERS} | fork (count) (take 1) | count",
        f"{NUMBERS} | join kind=inner ({NUMBERS} | facet by x) on x",
        f"let t = {NUMBERS} | evaluate preview(1); t",
        f"{NUMBERS} | evaluate preview('a')",
        f"{NUMBERS} | facet by x + 1",
        "print 1; print nothing",
        ";".join(["print 1"] * 65),
        f"{NUMBERS} | fork {'(count) ' * 65}",
    ],
)
def test_operators_with_several_results_must_be_last(endpoint: Endpoint, query: str) -> None:
    """An operator with several results must be the last operator of a query; the number of results is limited."""
    assert endpoint.query_error_code(query).startswith(("General_BadRequest", "BadRequest"))


@pytest.mark.parametrize(
    "query",
    ["print a = range(1, 3) | mv-apply a on (fork (take 1) (count))", f"{NUMBERS} | partition by x (facet by x)"],
)
def test_several_results_in_a_nested_query_are_rejected(endpoint: Endpoint, query: str) -> None:
    """The error about ``fork`` or ``facet`` in a nested query states where these operators are allowed."""
    message = str(endpoint.query_error(query))
    assert "fork, facet and other operators with several results must be the last operator" in message
    assert "EndOfResult" not in message
    assert endpoint.query_error_code(query) == "General_BadRequest"
