"""Tests of functions that a query declares with ``let``."""

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
def test_calls_of_declared_functions_return_the_rows_of_the_body(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A call returns the result of the function's body for its arguments."""
    assert endpoint.query_rows(text)[0] == row


def test_a_declared_function_uses_names_as_they_are_at_its_declaration(endpoint: Endpoint) -> None:
    """A function of a ``let`` statement uses the names as they are at its declaration.

    If such a name is redefined later, a call of the function is rejected.
    """
    query = "let n = 1; let f = (x:long) { print y = x + n }; let g = (n:long) { f(n * 10) }; g(5)"
    assert endpoint.query_rows(query) == [[51]]
    query = "let f = (x:long) { Devices | take x }; let Devices = Telemetry; f(1)"
    assert endpoint.query_error_code(query) == "BadRequest_NotSupported"


def test_declared_functions_cannot_read_internal_tables(endpoint: Endpoint) -> None:
    """A function cannot read internal tables, in its body or through an argument."""
    for query in ("let f = () { pg_tables }; f()", "let f = (T:(*)) { T | count }; f(duckdb_settings)"):
        assert "Failed to resolve" in str(endpoint.query_error(query))


def test_invalid_arguments_of_declared_functions_are_rejected(endpoint: Endpoint) -> None:
    """A call with a missing, additional or unknown argument, or one that depends on a row, is rejected."""
    declared = "let f = (n:long) { print n }; "
    for call in ("f()", "f(1, 2)", "f(m = 1)", "f(1, n = 2)"):
        assert "f()" in str(endpoint.query_error(declared + call))
    assert endpoint.query_error_code(declared + "Telemetry | where Number in (f(Number))") == "BadRequest_NotSupported"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "let f = (x:long) { let k = 5; let g = (y:long) { let h = 2; x * k + y + h }; g(1) + g(2) }; print f(10)",
            107,
        ),
        ("let f = (x:long) { let g = (x:long) { x * 2 }; g(x + 1) + x }; print f(3)", 11),
        ("let f = (x:long) { let k = 10 * x; let g = (k:long) { k + x }; g(1) + k }; print f(3)", 34),
        ("let f = () { let g = (y:long) { y * 2 }; print b = g(4) }; f()", 8),
    ],
)
def test_a_declared_function_can_declare_inner_functions(endpoint: Endpoint, text: str, value: int) -> None:
    """A function can declare inner functions, which can read its parameters and constants."""
    assert endpoint.query_rows(text) == [[value]]


def test_an_inner_function_cannot_be_called_outside_of_its_function(endpoint: Endpoint) -> None:
    """A function that is declared in another function cannot be called outside of it."""
    assert endpoint.query_error("let f = (x:long) { let g = (y:long) { y }; g(x) }; print g(1)") is not None


def test_a_function_without_parameters_needs_no_parentheses(endpoint: Endpoint) -> None:
    """A scalar function without parameters can be called by its name alone, unless a column has the same name."""
    assert endpoint.query_rows(
        "let n = () { 2 }; range x from 1 to 3 step 1 | where x == n | project x * n, x * n()"
    ) == [[4, 4]]
    assert endpoint.query_rows("let n = () { 2 }; print n = 5 | project n, m = n()") == [[5, 2]]
