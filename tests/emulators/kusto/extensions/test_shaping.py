"""Tests of operators and plugins that turn values into columns or rows."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

SALES = 'datatable(k:string, s:string, v:long)["a","x",1,"a","y",2,"b","x",5]'
BAGS = 'datatable(id:long, d:dynamic)[1, dynamic({"n":"J","age":20}), 2, dynamic({"n":"D","h":1.5})]'
STORMS = (
    'let S = datatable(st:string, ev:string, d:long)["CA","fire",10,"CA","wind",3,"CA","flood",1,"OK","ice",8,'
    '"OK","wind",2,"TX","hail",1]; S | '
)
TABLES: list[tuple[str, list[str], list[list[Any]]]] = [
    (f"{SALES} | evaluate pivot(s, sum(v)) | sort by k asc", ["k", "x", "y"], [["a", 1, 2], ["b", 5, 0]]),
    (f"{SALES} | evaluate pivot(s, max(v), k) | sort by k asc", ["k", "x", "y"], [["a", 1, 2], ["b", 5, None]]),
    (
        f"{SALES} | evaluate pivot(s) | sort by v asc",
        ["k", "v", "x", "y"],
        [["a", 1, 1, 0], ["a", 2, 0, 1], ["b", 5, 1, 0]],
    ),
    (
        f"{SALES} | evaluate pivot(s, sum(v)) : (k:string, x:long, z:long) | sort by k asc",
        ["k", "x", "z"],
        [["a", 1, 0], ["b", 5, 0]],
    ),
    (
        f"let P = {SALES} | evaluate pivot(s, sum(v), k); P | evaluate narrow() | where Row == 0 | project Column",
        ["Column"],
        [["k"], ["x"], ["y"]],
    ),
    (
        f"let T = {SALES}; T | join kind=inner (T | evaluate pivot(s, sum(v), k)) on k | where v > 4 | project k, x, y",
        ["k", "x", "y"],
        [["b", 5, 0]],
    ),
    (f"{BAGS} | evaluate bag_unpack(d)", ["id", "age", "h", "n"], [[1, 20, None, "J"], [2, None, 1.5, "D"]]),
    (f"{BAGS} | evaluate bag_unpack(d, 'p_') | project p_n", ["p_n"], [["J"], ["D"]]),
    (f"{BAGS} | evaluate bag_unpack(d, ignoredProperties=dynamic(['h','n']))", ["id", "age"], [[1, 20], [2, None]]),
    (f"{BAGS} | evaluate bag_unpack(d) : (*, n:string, age:long)", ["id", "n", "age"], [[1, "J", 20], [2, "D", None]]),
    (
        f"{BAGS} | extend n = 'old' | evaluate bag_unpack(d, columnsConflict='keep_source') | project n",
        ["n"],
        [["old"], ["old"]],
    ),
    (
        f"{BAGS} | extend n = 'old' | evaluate bag_unpack(d, columnsConflict='replace_source') | project n",
        ["n"],
        [["J"], ["D"]],
    ),
    (
        f"{STORMS}top-nested 2 of st by sum(d), top-nested 1 of ev by m = max(d) | sort by st asc",
        ["st", "aggregated_st", "ev", "m"],
        [["CA", 14, "fire", 10], ["OK", 10, "ice", 8]],
    ),
    (
        f"{STORMS}top-nested 1 of st with others='rest' by t = sum(d), top-nested 1 of ev by sum(d) | sort by st asc",
        ["st", "t", "ev", "aggregated_ev"],
        [["CA", 14, "fire", 10], ["rest", 11, "", None]],
    ),
    (
        f"{STORMS}top-nested 1 of st by t = sum(d), top-nested 1 of ev with others='rest' by sum(d) | sort by ev asc",
        ["st", "t", "ev", "aggregated_ev"],
        [["CA", 14, "fire", 10], ["CA", 14, "rest", 4]],
    ),
    (f"{STORMS}top-nested 1 of st by sum(d) asc", ["st", "aggregated_st"], [["TX", 1]]),
    (f"{STORMS}top-hitters 1 of st", ["st", "approximate_count_st"], [["CA", 3]]),
    (f"{STORMS}top-hitters 2 of ev by d", ["ev", "approximate_sum_d"], [["fire", 10], ["ice", 8]]),
    (
        (
            "print s = 'ThreadId:45, Text: The service is up' | parse-kv s as (Text:string, ThreadId:long, Gone:int) "
            "with (pair_delimiter=',', kv_delimiter=':') | project-away s"
        ),
        ["Text", "ThreadId", "Gone"],
        [["The service is up", 45, None]],
    ),
    (
        "print s = 'a=1;b=x;a=2' | parse-kv s as (a:long, b:string) with (regex='([a-z])=([0-9a-z])') | project a, b",
        ["a", "b"],
        [[1, "x"]],
    ),
    ("range x from 1 to 2 step 1 | as Rows | count", ["Count"], [[2]]),
]


@pytest.mark.parametrize(("query", "columns", "rows"), TABLES)
def test_shaping_operators_return_the_documented_tables(
    endpoint: Endpoint, query: str, columns: list[str], rows: list[list[Any]]
) -> None:
    """The result equals the documented table."""
    table = endpoint.query_table(query)
    assert [column.column_name for column in table.columns] == columns
    assert table.raw_rows == rows


def test_the_column_of_a_property_has_the_type_of_its_values(endpoint: Endpoint) -> None:
    """The column of a property has the type of the property's values, or dynamic if they have several types."""
    bags = 'datatable(d:dynamic)[dynamic({"l":1,"r":1.5,"b":true,"m":1,"o":{}}), dynamic({"m":"x","l":null})]'
    table = endpoint.query_table(f"{bags} | evaluate bag_unpack(d)")
    types = {column.column_name: column.column_type for column in table.columns}
    assert types == {"b": "bool", "l": "long", "m": "dynamic", "o": "dynamic", "r": "real"}


def test_values_with_quotes_can_become_column_names(endpoint: Endpoint) -> None:
    """A value with quotes or SQL can become a column name."""
    name = "x\"' FROM (SELECT 1)); --"
    table = endpoint.query_table(
        "print k = 1, s = t | evaluate pivot(s, count(), k)".replace("= t", '= "x\\"\' FROM (SELECT 1)); --"')
    )
    assert [column.column_name for column in table.columns] == ["k", name]


def test_result_columns_follow_the_query_parameters(endpoint: Endpoint) -> None:
    """The result's columns follow the parameters of each request, even for the same query text."""
    query = f"declare query_parameters(least:long); {SALES} | where v >= least | evaluate pivot(s, count(), k)"
    for least, names in (("2", ["k", "x", "y"]), ("5", ["k", "x"]), ("2", ["k", "x", "y"])):
        columns = endpoint.query_table(query, {"least": least}).columns
        assert [column.column_name for column in columns] == names


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"{SALES} | evaluate nosuch()", "'evaluate nosuch'"),
        (f"{SALES} | evaluate pivot(nope, count())", "Failed to resolve"),
        (f"{SALES} | evaluate pivot(k, percentile(v, 5))", "EMB0001"),
        (f"{BAGS} | extend n = 1 | evaluate bag_unpack(d)", "already exists"),
        (f"{SALES} | take 1 | search 'a'", "EMB0001"),
        ("search in (duckdb_tables) 'a'", "Failed to resolve"),
        ("range x from 1 to 1001 step 1 | evaluate pivot(x)", "more than 1000 columns"),
        ("range x from 1 to 2000 step 1 | evaluate pivot(x)", "more than 1000 columns"),
        (
            "range x from 1 to 1001 step 1 | project d = bag_pack(tostring(x), x) | evaluate bag_unpack(d)",
            "more than 1000 columns",
        ),
        (f"{BAGS} | mv-apply d on (evaluate bag_unpack(d))", "EMB0001"),
        (
            f"let f = (T:(s:string)) {{ T | evaluate pivot(s) }}; {SALES} | invoke f() | union ({SALES} | invoke f())",
            "EMB0001",
        ),
    ],
)
def test_unsupported_shaping_constructs_are_rejected(endpoint: Endpoint, query: str, code: str) -> None:
    """Unsupported constructs, and searches in internal tables, are rejected."""
    assert code in str(endpoint.query_error(query))
