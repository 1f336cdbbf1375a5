"""Tests of operators and functions that use the names of columns and tables."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

PEOPLE = "datatable(Name:string, Age:int, City:string, Country:string)['Peter', 39, 'New York', 'USA']"
LOOKUP = (
    f"let LookupTable = {PEOPLE};"
    "let LookupColumns = (Source:(Name:string), names:dynamic) { Source | lookup LookupTable on Name"
    " | project-by-names column_names_of(Source), names };"
    "datatable(Name:string, Data:string)['Peter', 'Source-data'] | invoke LookupColumns(dynamic({names}))"
)


@pytest.mark.parametrize(
    ("specifiers", "expected"),
    [
        ('"Name", "City"', {"Name": "Peter", "City": "New York"}),
        ('dynamic(["Name", "Country"])', {"Name": "Peter", "Country": "USA"}),
        ('"C*"', {"City": "New York", "Country": "USA"}),
        ('"C*", Nope, Age, "City"', {"City": "New York", "Country": "USA", "Age": 39}),
    ],
)
def test_project_by_names_selects_the_named_columns(
    endpoint: Endpoint, specifiers: str, expected: dict[str, object]
) -> None:
    """The result has the named columns in the order of the given names; names without a column are ignored."""
    table = endpoint.query_table(f"{PEOPLE} | project-by-names {specifiers}")
    assert [(each.column_name) for each in table.columns] == list(expected)
    assert table.raw_rows == [list(expected.values())]


@pytest.mark.parametrize("names", ["['Country']", "['Country', 'NonExistent']"])
def test_column_names_of_a_tabular_parameter_are_those_of_the_argument(endpoint: Endpoint, names: str) -> None:
    """``column_names_of`` a function's tabular parameter returns the columns of the table that the call passes."""
    table = endpoint.query_table(LOOKUP.replace("{names}", names))
    assert [each.column_name for each in table.columns] == ["Name", "Data", "Country"]
    assert table.raw_rows == [["Peter", "Source-data", "USA"]]


def test_column_names_of_returns_an_array(endpoint: Endpoint) -> None:
    """``column_names_of`` returns the names of a table's columns as an array."""
    assert endpoint.query_rows(f"let T = {PEOPLE}; print column_names_of(T)") == [[["Name", "Age", "City", "Country"]]]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("(a:long, b:string)", None),
        ("(a:int, b:string)", "the column a is not of type int"),
        ("(b:string, a:long)", "the input must have the columns (b:string, a:long)"),
        ("(a:long)", "the input must have the columns (a:long)"),
        ("(a:decimal, b:string)", "the column a is not of type decimal"),
    ],
)
def test_assert_schema_fails_if_the_columns_differ(endpoint: Endpoint, schema: str, message: str | None) -> None:
    """``assert-schema`` fails if a column has another name, position or type."""
    query = f"print a = 1, b = 'x' | assert-schema {schema}"
    if message is None:
        assert endpoint.query_rows(query) == [[1, "x"]]
    else:
        assert message in str(endpoint.query_error(query))


def test_assert_schema_accepts_columns_of_every_type(endpoint: Endpoint) -> None:
    """``assert-schema`` accepts a column of each type, also the sum of whole numbers as long."""
    query = (
        "print b = true, i = int(1), l = 1, r = 1.5, d = decimal(1.5), s = 'x', t = datetime(2024-01-01), p = 1h, "
        "g = new_guid(), y = dynamic([1]) | extend q = d / 3 | summarize take_any(*), n = sum(l) | assert-schema "
        "(b:bool, i:int, l:long, r:real, d:decimal, s:string, t:datetime, p:timespan, g:guid, y:dynamic, q:decimal, "
        "n:long) | project l, n, d"
    )
    assert endpoint.query_rows(query) == [[1, 1, "1.5"]]


def test_the_operator_consume_returns_no_rows(endpoint: Endpoint) -> None:
    """``consume`` reads all rows and returns no rows."""
    assert endpoint.query_rows("range i from 1 to 9 step 1 | consume") == []
    assert "no_such" in str(endpoint.query_error("print a = 1 | where no_such == 2 | consume"))


@pytest.mark.parametrize(
    "query",
    [
        'table("X") | count',
        'let name = "X"; table(name) | count',
        "materialized_view('X', 1d) | count",
        'print n = 1 | union (table("X") | where false) | count',
    ],
)
def test_table_functions_return_the_table_with_the_given_name(endpoint: Endpoint, query: str) -> None:
    """``table()`` and ``materialized_view()`` return the table of this name, also from a let statement."""
    assert endpoint.query_rows(f"let X = print n = 1; {query}") == [[1]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('table("nope")', "Failed to resolve table or column expression named 'nope'"),
        ("table(1)", "table(): the name must be a constant string"),
        ("materialized_view()", "expects 1 or 2 arguments"),
        ("print a = 1 | project-by-names 5", "a name must be a constant string"),
        ("print column_names_of()", "expects 1 argument"),
    ],
)
def test_invalid_calls_with_column_names_are_rejected(endpoint: Endpoint, query: str, message: str) -> None:
    """The error about an invalid call names the function and the rule."""
    assert message in str(endpoint.query_error(query))


@pytest.mark.parametrize(
    ("aggregate", "cells"),
    [
        ("sum(v)", [0, 3, 0]),
        ("count()", [1, 2, 0]),
        ("max(v)", [None, 2, None]),
        ("dcount(v)", [0, 2, 0]),
        ("make_list(v)", [[], [1, 2], []]),
    ],
)
def test_cells_of_pivot_without_rows_have_the_aggregate_of_no_rows(
    endpoint: Endpoint, aggregate: str, cells: list[object]
) -> None:
    """A cell of ``pivot`` without rows has the value that the aggregate has over no rows."""
    rows = "datatable(k:string, n:int, v:long)['a',1,1, 'a',1,2, 'a',int(null),long(null), 'b',2,5]"
    query = f"{rows} | extend s = strcat('n', n) | evaluate pivot(s, {aggregate}, k) | where k == 'a'"
    assert endpoint.query_rows(f"{query} | project n, n1, n2") == [cells]


def test_pivot_of_an_empty_value_gets_a_free_name(endpoint: Endpoint) -> None:
    """The column of the empty value of a pivot has the first name ``Column1``, ``Column2`` and so on that is free."""
    source = 'datatable(s:string, k:long)["a", 1, "", 2, "", 2]'
    table = endpoint.query_table(f"{source} | evaluate pivot(s, count(), k) | order by k asc").to_dict()["data"]
    assert table == [{"k": 1, "Column1": 0, "a": 1}, {"k": 2, "Column1": 2, "a": 0}]
    source = 'datatable(s:string)["Column1", ""]'
    table = endpoint.query_table(f"{source} | evaluate pivot(s, count())").to_dict()["data"]
    assert table == [{"Column2": 1, "Column1": 1}]


def test_pivot_without_rows_returns_no_rows(endpoint: Endpoint) -> None:
    """A pivot of no rows has its fixed columns, or an empty column if there are none."""
    source = "datatable(s:string, k:long)[]"
    assert endpoint.query_rows(f"{source} | evaluate pivot(s, count(), k)") == []
    table = endpoint.query_table(f"{source} | project s | evaluate pivot(s, count())")
    assert [column.column_name for column in table.columns] == ["Column1"]
    assert list(table.rows) == []
