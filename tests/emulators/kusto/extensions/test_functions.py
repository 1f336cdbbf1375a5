"""Tests of ``let`` functions that return rows."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS: list[tuple[str, list[Any]]] = [
    ("let f=(T:(x:long), n:long=1) { let m = n + 1; T | where x >= m }; f(datatable(x:long)[1,2,3]) | count", [2]),
    ("let f=(T:(x:long), n:long=1) { T | where x >= n }; f(n=3, T=(datatable(x:long)[1,2,3])) | count", [1]),
    (
        (
            "let f=(n:long) { range x from 1 to n step 1 }; let g = (a:long) { f(a) | where x > 1 }; g(3) | "
            "union (f(2)) | summarize sum(x)"
        ),
        [8],
    ),
    (
        (
            "let f=(n:long) { range x from 1 to n step 1 }; print x = 2 | where x in (f(3)) | join kind=inner "
            "(f(5)) on x | count"
        ),
        [1],
    ),
    ("let f=(n:long) { print y = n * 2 }; let v = toscalar(f(4)); print v", [8]),
    ("let f = (a:long, b:long) { a - b }; print f(b=1, a=3)", [2]),
    ("let f = (T:(x:long)) { T | where x > 1 }; datatable(x:long)[1,2,3] | invoke f() | count", [2]),
    (
        (
            "let f = (t:(*), n:long) { let s = toscalar(t | summarize sum(a)); let u = t | where a > n; "
            "u | extend share = 10 * a / s }; range a from 1 to 4 step 1 | where a != 3 | invoke f(2) | extend b = 1"
        ),
        [4, 5, 1],
    ),
    (
        (
            "let f = (t:(*)) { let u = t | count; t | project v = a | union (u | project v = Count) }; let g = (t:(*), "
            "k:long) { let m = toscalar(t | summarize max(v)); t | where v < m * k }; range a from 1 to 3 step 1 "
            "| invoke f() | invoke g(2) | summarize sum(v)"
        ),
        [9],
    ),
    ("let f = (t:(*)) { let k = 1; t | where a > k }; let T = range a from 1 to 3 step 1; f(T) | count", [2]),
    ("let f = (t:(*)) { let k = 1; t | where a > k }; let T = range a from 1 to 3 step 1; T | invoke f() | count", [2]),
    (
        (
            "let f = (n:long) { range a from 1 to n step 1 }; let T = range a from 1 to 3 step 1; "
            "let m = toscalar(T | summarize max(a)); f(m) | count"
        ),
        [3],
    ),
    (
        (
            "let f = (t:(*), c:string) { t | extend v = column_ifexists(c, 0) | summarize s = sum(v) }; "
            "range a from 1 to 3 step 1 | invoke f('a')"
        ),
        [6],
    ),
]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_calls_return_the_rows_of_the_body(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A call returns the result of the function's body with the arguments."""
    assert endpoint.rows(text)[0] == row


def test_a_function_uses_the_scope_of_its_declaration(endpoint: Endpoint) -> None:
    """Names in the body have the values of the declaration; a call after their redefinition is an error."""
    query = "let n = 1; let f = (x:long) { print y = x + n }; let g = (n:long) { f(n * 10) }; g(5)"
    assert endpoint.rows(query) == [[51]]
    query = "let f = (x:long) { Devices | take x }; let Devices = Telemetry; f(1)"
    assert endpoint.code(query) == "BadRequest_NotSupported"


def test_functions_have_access_to_the_same_tables(endpoint: Endpoint) -> None:
    """Internal tables resolve neither in the body of a function nor as its argument."""
    for query in ("let f = () { pg_tables }; f()", "let f = (T:(*)) { T | count }; f(duckdb_settings)"):
        assert "Failed to resolve" in str(endpoint.error(query))


def test_invalid_arguments_are_errors(endpoint: Endpoint) -> None:
    """Missing, additional, unknown and row-dependent arguments are errors."""
    declared = "let f = (n:long) { print n }; "
    for call in ("f()", "f(1, 2)", "f(m = 1)", "f(1, n = 2)"):
        assert "f()" in str(endpoint.error(declared + call))
    assert endpoint.code(declared + "Telemetry | where Number in (f(Number))") == "BadRequest_NotSupported"
