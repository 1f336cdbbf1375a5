"""Tests of the operators ``mv-apply`` and ``partition``, also with a subquery that reads another table."""

import re
from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ARRAYS = "datatable(id:int, a:dynamic)[0, dynamic([1,2]), 1, dynamic([6,11,7])]"
PAIRS = 'datatable(k:string, v:long)["a",1,"a",5,"b",3,"b",2,"c",9]'
MV_APPLY: list[tuple[str, list[list[Any]]]] = [
    (f"{ARRAYS} | mv-apply b = a to typeof(long) on (top 1 by b)", [[0, [1, 2], 2], [1, [6, 11, 7], 11]]),
    (f"{ARRAYS} | mv-apply a to typeof(long) on (where a > 6)", [[1, 11], [1, 7]]),
    (
        f"{ARRAYS} | mv-apply with_itemindex=i b = a to typeof(long) on (where i == 1)",
        [[0, [1, 2], 2, 1], [1, [6, 11, 7], 11, 1]],
    ),
    (
        f"{ARRAYS} | mv-apply a to typeof(long) on (where a > 5 | summarize n = count(), s = sum(a))",
        [[0, 0, 0], [1, 3, 24]],
    ),
    (f"{ARRAYS} | mv-apply a to typeof(long) on (where a > 5 | count)", [[0, 0], [1, 3]]),
    (
        f"{ARRAYS} | mv-apply a to typeof(long) on (top 2 by a | summarize l = make_list(a))",
        [[0, [2, 1]], [1, [11, 7]]],
    ),
    (f"{ARRAYS} | mv-apply a to typeof(long) limit 1 on (project c = a * 2)", [[0, 2], [1, 12]]),
    (
        f"let t = 7; {ARRAYS} | mv-apply a to typeof(long) on (where a >= t | extend d = a * t)",
        [[1, 11, 77], [1, 7, 49]],
    ),
    (f"let T = datatable(x:long)[11,1]; {ARRAYS} | mv-apply a to typeof(long) on (where a in (T))", [[0, 1], [1, 11]]),
    (
        f"{ARRAYS} | mv-apply a to typeof(long) on (serialize | extend d = a - prev(a), r = row_number())",
        [[0, 1, None, 1], [0, 2, 1, 2], [1, 6, None, 1], [1, 11, 5, 2], [1, 7, -4, 3]],
    ),
    (
        (
            "datatable(v:int, x:dynamic, y:dynamic)[1, dynamic(['A1','A2']), dynamic(['B1','B2','B3'])] "
            "| mv-apply p = x, q = y on (extend o = strcat(p, '_', q) | summarize o = make_list(o))"
        ),
        [[1, ["A1", "A2"], ["B1", "B2", "B3"], ["A1_B1", "A2_B2", "_B3"]]],
    ),
    (
        (
            "datatable(a:dynamic)[dynamic([[1,2],[3]])] | mv-apply a on (mv-apply b = a to typeof(long) on "
            "(summarize s = sum(b)) | summarize t = sum(s))"
        ),
        [[6]],
    ),
]
PARTITION: list[tuple[str, list[list[Any]]]] = [
    ("hint.strategy=native by k (top 1 by v desc)", [["a", 5], ["b", 3], ["c", 9]]),
    ("hint.strategy=shuffle by k (summarize s = sum(v) by k)", [["a", 6], ["b", 5], ["c", 9]]),
    ("by k (sort by v asc | extend d = v - prev(v) | where isnotnull(d) | project k, d)", [["a", 4], ["b", 1]]),
    ("hint.strategy=legacy by k (sort by v asc | take 1)", [["a", 1], ["b", 2], ["c", 9]]),
    ("by k (where v > 3 | project-rename w = v | project-reorder w)", [[5, "a"], [9, "c"]]),
]


@pytest.mark.parametrize(("query", "rows"), MV_APPLY)
def test_mv_apply_runs_its_subquery_for_the_elements_of_each_row(
    endpoint: Endpoint, query: str, rows: list[list[Any]]
) -> None:
    """``mv-apply`` runs its subquery over the elements of each row; results also have the row's other columns."""
    assert sorted(endpoint.query_rows(query), key=str) == sorted(rows, key=str)


VALUES = [
    "[]",
    "null",
    "['a','b','A']",
    "['',null,'ab']",
    "[1,2.5,true,null]",
    "[['a'],{'a':1}]",
    "{'a':1,'b':2}",
    "'a'",
]
COUNTS = [
    "(where e == 'a' | summarize n = count())",
    "(where e != 'a' | summarize count())",
    "(where e startswith 'a' | where e != k | summarize n = count())",
    "(where not(e has 'a') or e =~ k | summarize k = count())",
    "(where e contains '' | summarize d = count())",
    "limit 2 on (where e in ('a', '') | summarize n = count())",
]


@pytest.mark.parametrize("pipeline", COUNTS)
@pytest.mark.parametrize("expansion", ["e = d", "e = d.x", "d", "e = d.x[0]"])
def test_counts_in_mv_apply_are_the_same_if_an_operator_follows(
    endpoint: Endpoint, expansion: str, pipeline: str
) -> None:
    """Counts in ``mv-apply`` are the same if an operator follows, also for nulls, objects and empty arrays."""
    values = [*VALUES, *(f"{{'x':{value}}}" for value in VALUES), *(f"{{'x':[{value}]}}" for value in VALUES)]
    cells = ", ".join(f"{index}, 'a', dynamic({value.replace("'", '"')})" for index, value in enumerate(values))
    limit, _, body = pipeline.rpartition("(where")
    limit = limit.removesuffix("on ")
    condition = re.sub(r"\be\b", "d", body) if expansion == "d" else body
    query = f"datatable(i:int, k:string, d:dynamic)[{cells}] | mv-apply {expansion} to typeof(string) {limit}on (where"
    counted = endpoint.query_table(f"{query}{condition}")
    longer = endpoint.query_table(f"{query}{condition.removesuffix(')')} | extend z = 1) | project-away z")
    assert [(column.column_name, column.column_type) for column in counted.columns] == [
        (column.column_name, column.column_type) for column in longer.columns
    ]
    assert sorted(counted.raw_rows, key=str) == sorted(longer.raw_rows, key=str)
    assert len(counted.raw_rows) == len(values)


@pytest.mark.parametrize("text", ['["a", null, 1]', ' \\n[ "a",null , 1 ]'])
def test_arrays_expand_to_strings_despite_white_space(endpoint: Endpoint, text: str) -> None:
    """``mv-expand`` to strings returns the elements of an array also if its JSON begins with white space."""
    query = f"print d = parse_json('{text}') | mv-expand d to typeof(string)"
    assert endpoint.query_rows(query) == [["a"], [""], ["1"]]


@pytest.mark.parametrize(("pipeline", "rows"), PARTITION)
def test_partition_runs_its_subquery_for_each_value_of_the_column(
    endpoint: Endpoint, pipeline: str, rows: list[list[Any]]
) -> None:
    """``partition`` runs its subquery over the rows of each value of the column, with each strategy."""
    assert sorted(endpoint.query_rows(f"{PAIRS} | partition {pipeline}"), key=str) == sorted(rows, key=str)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"{ARRAYS} | mv-apply a on (join (Devices) on $left.id == $right.Model)", "EMB0001"),
        (f"{ARRAYS} | mv-apply a to typeof(long) on (extend d = prev(a))", "serialized"),
        (f"{ARRAYS} | mv-apply a on (where a in (duckdb_tables))", "Semantic error"),
        (f"{ARRAYS} | mv-apply a on (where id in ((Secret | project x)))", "Failed to resolve"),
        (f"{ARRAYS} | mv-apply nope on (take 1)", "Semantic error"),
        (f"{PAIRS} | partition by nope {{Telemetry | take 1}}", "Failed to resolve"),
        (f"{PAIRS} | partition by k {{Secret | take 1}}", "Failed to resolve"),
        (f"{PAIRS} | partition by v {{range i from 1 to toscalar(v) step 1}}", "EMB0001"),
        ("range v from 1 to 65 step 1 | partition by v {Telemetry | take 1}", "more than 64 distinct values"),
        (f"{PAIRS} | partition hint.strategy=magic by k (take 1)", "EMB0001"),
        (f"{PAIRS} | partition by nope (take 1)", "Failed to resolve"),
        (f"{PAIRS} | partition by k (union (Devices))", "EMB0001"),
        (f"{PAIRS} | partition by k (fork (count) (take 1))", "must be the last operator of the query"),
        (f"{PAIRS} | partition by k (facet by v)", "must be the last operator of the query"),
    ],
)
def test_unsupported_operators_in_subqueries_are_rejected(endpoint: Endpoint, query: str, code: str) -> None:
    """In a subquery, operators that cannot run per group, and internal tables, are rejected."""
    assert code in str(endpoint.query_error(query))


SOURCES: list[tuple[str, list[list[Any]]]] = [
    ("{T | where w == toscalar(v)}", [["x", 1], ["y", 2]]),
    ("{T | where v == w | count}", [[1], [1]]),
    ("{T | top 1 by w desc | project w, k = toscalar(v) * 10}", [[3, 10], [3, 20]]),
    ("{range i from 1 to 3 step 1 | where i > toscalar(v) | summarize s = sum(i)}", [[3], [5]]),
    ("{T | where w > 5 | count}", [[0], [0]]),
]


@pytest.mark.parametrize(("body", "rows"), SOURCES)
def test_a_partition_subquery_in_braces_can_read_any_table(
    endpoint: Endpoint, body: str, rows: list[list[Any]]
) -> None:
    """A subquery in braces can read any table and runs once for each value of the column."""
    table = "let T = datatable(n:string, w:long)['x', 1, 'y', 2, 'z', 3]"
    query = f"{table}; range v from 1 to 2 step 1 | partition hint.strategy=legacy by v {body}"
    assert sorted(endpoint.query_rows(query), key=str) == sorted(rows, key=str)
