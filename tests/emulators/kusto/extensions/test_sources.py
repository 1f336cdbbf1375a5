"""Tests of the sources ``range`` and ``union``."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("bounds", "kind", "values"),
    [
        ("1 to 5 step 2", "long", [1, 3, 5]),
        ("5 to 1 step -2", "long", [5, 3, 1]),
        ("5 to 1 step 1", "long", []),
        ("1.0 to 2.0 step 0.25", "real", [1.0, 1.25, 1.5, 1.75, 2.0]),
        ("1h to 2h step 30m", "timespan", ["01:00:00", "01:30:00", "02:00:00"]),
        (
            "datetime(2024-01-01) to datetime(2024-01-02) step 12h",
            "datetime",
            ["2024-01-01T00:00:00.000000Z", "2024-01-01T12:00:00.000000Z", "2024-01-02T00:00:00.000000Z"],
        ),
        ("bin(1h, 30m) to 2h step 30m", "timespan", ["01:00:00", "01:30:00", "02:00:00"]),
        (
            "bin(datetime(2024-01-01), 1d) - 12h to bin(datetime(2024-01-01), 1d) step 12h",
            "datetime",
            ["2023-12-31T12:00:00.000000Z", "2024-01-01T00:00:00.000000Z"],
        ),
        (
            "toscalar(print datetime(2024-01-01)) to toscalar(print datetime(2024-01-01)) step 12h",
            "datetime",
            ["2024-01-01T00:00:00.000000Z"],
        ),
        ("n to 3 * n step n", "long", [2, 4, 6]),
    ],
)
def test_the_source_range_includes_its_bounds(endpoint: Endpoint, bounds: str, kind: str, values: list[Any]) -> None:
    """A range has the type of its bounds, and values from the start to the stop."""
    table = endpoint.query_table(f"let n = 2; range x from {bounds}")
    assert [column.column_type for column in table.columns] == [kind]
    assert table.raw_rows == [[value] for value in values]


@pytest.mark.parametrize(
    "bounds",
    [
        "1 to 5 step 0",
        "1h to 2h step 0s",
        "datetime(2024-01-01) to datetime(2024-01-02) step 0s",
        "1 to 1000000000000 step 1",
        "1.0 to 2.0 step 0.0",
        "1 to 2 step 0.5",
        "datetime(2000-01-01) to datetime(2024-01-01) step 1microsecond",
    ],
)
def test_invalid_ranges_are_rejected(endpoint: Endpoint, bounds: str) -> None:
    """A range with step zero, too many rows or mixed types is rejected."""
    assert "EMB0001" in str(endpoint.query_error(f"range x from {bounds} | count"))


Columns = list[tuple[str, str]]
TYPED: list[tuple[str, Columns, list[list[Any]]]] = [
    (
        'datatable(a:long, b:long)[1, 2] | union (datatable(c:long, a:string)[3, "x"])',
        [("a_long", "long"), ("a_string", "string"), ("b", "long"), ("c", "long")],
        [[1, "", 2, None], [None, "x", None, 3]],
    ),
    (
        "union (datatable(a:long)[1]), (datatable(a:real)[1.5]), (datatable(a:long)[2])",
        [("a_long", "long"), ("a_real", "real")],
        [[1, None], [2, None], [None, 1.5]],
    ),
    (
        'union withsource=s (print a = 1), (print a = "x")',
        [("s", "string"), ("a_long", "long"), ("a_string", "string")],
        [["union_arg0", 1, ""], ["union_arg1", None, "x"]],
    ),
    (
        "union kind=inner (print a = 1, b = 2), (print a = true, b = 3)",
        [("b", "long")],
        [[2], [3]],
    ),
    (
        'print a = 1, a_long = 2 | union (print a = "x")',
        [("a_long", "long"), ("a_string", "string"), ("a_long1", "long")],
        [[1, "", 2], [None, "x", None]],
    ),
    ("datatable(a:long)[] | union (datatable(a:string)[])", [("a_long", "long"), ("a_string", "string")], []),
    (
        'let f = (x:long) { union (print a = x), (print a = "x") }; f(1) | project a_long, a_string',
        [("a_long", "long"), ("a_string", "string")],
        [[1, ""], [None, "x"]],
    ),
    (
        "union Dev*, (print Model = 1) | where isnotnull(Model_long) | project Model_long",
        [("Model_long", "long")],
        [[1]],
    ),
    ("union *, (print DeviceId = 1) | where DeviceId_long == 1 | count", [("Count", "long")], [[1]]),
    ("union (datatable(a:dynamic)[1]), (print a = dynamic([1])) | count", [("Count", "long")], [[2]]),
]


@pytest.mark.parametrize(("query", "columns", "rows"), TYPED)
def test_a_union_has_a_column_for_each_type_of_a_name(
    endpoint: Endpoint, query: str, columns: Columns, rows: list[list[Any]]
) -> None:
    """For columns of one name but different types, ``union`` returns a column per type, with the type as suffix."""
    for _ in range(2):  # the second run uses the cached types
        table = endpoint.query_table(query)
        assert [(column.column_name, column.column_type) for column in table.columns] == columns
        assert sorted(table.raw_rows, key=str) == sorted(rows, key=str)


def test_union_types_do_not_depend_on_parameters(endpoint: Endpoint) -> None:
    """Uniting columns of different types works for any value of a query parameter."""
    query = 'declare query_parameters(n:long); union (print a = n), (print a = "x") | where isnotnull(a_long)'
    assert [endpoint.query_rows(query, {"n": n}) for n in (1, 2)] == [[[1, ""]], [[2, ""]]]


def test_unions_of_types_in_repeated_functions_are_rejected(endpoint: Endpoint) -> None:
    """If a function that unites columns of different types is called twice, the query is rejected."""
    query = 'let f = (x:long) { union (print a = x), (print a = "x") }; f(1) | union (f(2))'
    assert "EMB0001" in str(endpoint.query_error(query))


def test_union_combines_columns_of_the_same_name_and_type(endpoint: Endpoint) -> None:
    """The operator ``union`` combines columns that have the same name and type."""
    query = 'datatable(a:long)[1] | union (datatable(a:long)[2]) | union withsource=s (datatable(b:string)["x"])'
    assert sorted(endpoint.query_rows(query), key=str) == [
        ["union_arg0", 1, ""],
        ["union_arg0", 2, ""],
        ["union_arg1", None, "x"],
    ]


VIEWS = """let View_1 = view () { print x = 1 }; let View_2 = view () { print x = toint(2) };
let OtherView_1 = view () { print x_long = 3 };
"""


@pytest.mark.parametrize(
    ("query", "columns", "expected"),
    [
        (
            "union withsource=TableName View_1, View_2, OtherView_1",
            ["TableName", "x_long", "x_int", "x_long1"],
            [["View_1", 1, None, None], ["View_2", None, 2, None], ["OtherView_1", None, None, 3]],
        ),
        ("union isfuzzy=true View*, SomeView*, OtherView* | count", ["Count"], [[3]]),
        (
            "union isfuzzy=true (View_1 | where x > 0), (View_2 | where x > 0), (View_3 | where x > 0) | count",
            ["Count"],
            [[2]],
        ),
        (
            "print x = 1 | as T1 | union withsource=TableName (print x = 2 | as T2)",
            ["TableName", "x"],
            [["T1", 1], ["T2", 2]],
        ),
        (
            "union withsource=TableName (print x = 1 | as T1), (print x = 2)",
            ["TableName", "x"],
            [["T1", 1], ["union_arg1", 2]],
        ),
        ("View_1 | extend y = 1", ["x", "y"], [[1, 1]]),
        ("let a = print p = 1; let b = print p = 'q'; union a, b", ["p_long", "p_string"], [[1, ""], [None, "q"]]),
    ],
)
def test_a_view_can_be_united_by_name(
    endpoint: Endpoint, query: str, columns: list[str], expected: list[list[object]]
) -> None:
    """A view can be named in ``union``, is matched by wildcards there, and can be named with ``as``."""
    table = endpoint.query_table(VIEWS + query)
    assert [column.column_name for column in table.columns] == columns
    assert table.raw_rows == expected


def test_search_reads_views_and_tables_with_the_column(endpoint: Endpoint) -> None:
    """The operator ``search`` with a column reads all views, and the tables that have this column."""
    query = (
        "let Range10 = view () { range MyColumn from 1 to 10 step 1 };"
        "let Range20 = view () { range MyColumn from 1 to 20 step 1 }; search MyColumn == 5"
    )
    table = endpoint.query_table(query)
    assert [column.column_name for column in table.columns] == ["$table", "MyColumn"]
    assert table.raw_rows == [["Range10", 5], ["Range20", 5]]


def test_a_union_wildcard_returns_the_rows_of_a_view_once(endpoint: Endpoint) -> None:
    """If a wildcard matches a view and tables, the view's rows are returned once."""
    query = "let Devices_1 = view () { print x = 1 }; union withsource=S Devices* | where S != 'Devices' | project S, x"
    assert endpoint.query_rows(query) == [["Devices_1", 1]]
