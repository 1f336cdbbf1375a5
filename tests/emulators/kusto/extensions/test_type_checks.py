"""Tests of type checks: arguments of calls and aggregates, conditions, keys of groups, and guards in SQL."""

from typing import Any

import duckdb
import pytest

from emulators.kusto.extensions.type_checks import (
    DYNAMICS,
    TEXTS,
    add_type_guard,
    join_tests_with_and,
    join_tests_with_or,
    render_error,
    render_number_test,
    render_type_test,
)
from emulators.kusto.library_errors import error_from_duckdb
from tests.emulators.kusto.endpoints import Endpoint

ROW = (
    "datatable(l:long, i:int, r:real, s:string, b:bool, d:datetime, w:timespan, j:dynamic, g:guid)"
    "[7, 3, 1.5, 'a', true, datetime(2024-01-02), 1h, dynamic([1, 2]), guid(74be27de-1e4e-49d9-b579-fe0b331d3642)]"
)
REJECTED = [
    "where l",
    "where j",
    "where toint(s)",
    "extend c = 3 | where c",
    "extend c = j[0] | where c",
    "extend c = 's' | where b and c",
    "where l and b",
    "where b or r > 1 or s",
    "extend x = +s",
    "extend x = l.a",
    "mv-expand l",
    "distinct j",
    "summarize count() by j",
    "summarize count() by j[0]",
    "extend tag = j[0] | summarize count() by tag",
    "summarize sum(b)",
    "summarize countif(l)",
    "summarize hll(b)",
    "summarize hll(s, 1, 2)",
    "summarize dcount(s, j)",
    "summarize tdigest_merge(l)",
    "summarize buildschema(dynamic([1, 2]))",
    "summarize make_list(s, l)",
    "extend series_fit_2lines(g)",
    "extend series_fill_const(g)",
    "extend x = series_stats(dynamic({'a': 1}))",
    "project x = series_fill_backward(j, s)",
    "project x = current_principal_is_member_of(hash_md5(s, s))",
    "project x = case(b, 1, l, 2, 3)",
    "project x = case(l, 1, 2)",
    "project x = bag_pack('a', 1, l, 2)",
    "project x = iff(b, s, l)",
    "project x = iff(b, l, b)",
    "project x = case(b, d, b, w, d)",
    "project x = coalesce(b, l)",
    "project x = coalesce(j, l)",
    "project x = max_of(l, d)",
    "project x = extract(s, 1, s)",
    "project x = replace_regex(s, s, 'a')",
    "project x = indexof_regex(s, s)",
    "project x = format_bytes(r, (-1))",
    "project x = round(r, 1 + toint((1)))",
    "project x = array_sort_asc(j, b)",
    "project x = array_sort_desc(j[0] <= 3)",
    "where pi()",
    "serialize | project x = prev(l, 1, l)",
    "serialize | extend x = row_number(1.5)",
    "serialize | extend x = row_number(1, l)",
    "serialize | extend x = 1 + row_cumsum(l, l)",
    "serialize | project x = row_cumsum(w)",
    "serialize | project x = row_rank_dense(j)",
    "serialize | where row_rank_min(l, i) > 1",
    "where g > g",
    "where g <= 'a'",
    "project x = estimate_data_size(l + 1)",
    "project x = j / 2",
    "extend k = array_concat(j) | project x = k / 2",
]
ACCEPTED: list[tuple[str, list[Any]]] = [
    ("project x = format_bytes((r), -1), y = extract('(a)', (1), s)", ["2 Bytes", "a"]),
    ("project x = round((r), 1 - toint(1))", [2.0]),
    ("extend c = l > 3 | where c and b | count", [1]),
    ("extend c = b | where c | count", [1]),
    ("project x = +l, y = -(+l)", [7, -7]),
    ("extend tag = tostring(j[0]) | summarize count() by tag", ["1", 1]),
    ("parse l with * '7' rest | project rest", [""]),
    ("parse-kv l as (a:string) | project a", [""]),
    ("project x = parse_command_line(l, 'windows')", [["7"]]),
    ("extend g = 1 | project g", [1]),
    ("project x = case(b, 1, l > 9, 2, 3), y = bag_pack('a', 1, s, 2)", [1, {"a": 2}]),
    ("project x = iff(not(b), 1, r), y = iff(b, i, l), z = coalesce(long(null), r)", [1.5, 3, 1.5]),
    ("project x = iff(b, s, j), y = iff(b, j, s), z = case(b, j, b, s, s)", ["a", [1, 2], [1, 2]]),
    ("project x = iff(b, 'a', dynamic(null)), y = array_sort_asc(j, false)", ["a", [1, 2]]),
    ("project x = strcmp(r, ingestion_time())", [1]),
    ("project x = extract('(.)', 1, s), y = indexof_regex(s, 'a')", ["a", 0]),
    ("project x = estimate_data_size(l, s, b)", [10]),
    ("project l, s | project x = estimate_data_size(*), y = pack_array(*)", [9, [7, "a"]]),
    ("serialize | project x = prev(l, 1, 5)", [5]),
    ("serialize | project x = row_number(3, b), y = row_cumsum(r, b), z = row_rank_dense(s)", [3, 1.5, 1]),
    ("where g == g and g == '74be27de-1e4e-49d9-b579-fe0b331d3642' | project i", [3]),
]


@pytest.mark.parametrize("operators", REJECTED)
def test_arguments_conditions_and_keys_of_wrong_types_are_rejected(endpoint: Endpoint, operators: str) -> None:
    """An argument, condition or key of a wrong type is rejected as in Data Explorer, even without rows."""
    assert "SEM" in str(endpoint.query_error(f"{ROW} | {operators}"))


@pytest.mark.parametrize(
    "operators",
    [
        "where Number",
        "where DeviceId and Running",
        "where Running or Number",
        "extend series_fill_const(DeviceId)",
        "summarize avg(Running)",
        "extend Number = strlen(Number) | where Value",
    ],
)
def test_wrong_types_of_table_columns_are_rejected(endpoint: Endpoint, operators: str) -> None:
    """A stored column of a wrong type in an argument, condition or key is rejected."""
    assert "SEM" in str(endpoint.query_error(f"Telemetry | {operators}"))


@pytest.mark.parametrize(("operators", "row"), ACCEPTED)
def test_queries_with_correct_types_are_accepted(endpoint: Endpoint, operators: str, row: list[Any]) -> None:
    """A query with correct types returns its rows."""
    assert endpoint.query_rows(f"{ROW} | {operators}") == [row]


def _evaluate_sql(sql: str) -> object:
    row = duckdb.execute(f"SELECT {sql}").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("1.5", True), ("2::TINYINT", True), ("'a'", False)])
def test_number_literals_are_recognised(value: str, expected: object) -> None:
    """Whole numbers, decimals and doubles of any size are numbers, and texts are not."""
    assert _evaluate_sql(render_number_test(value)) is expected


def test_a_type_test_accepts_any_of_its_types() -> None:
    """A test for several types is true if the expression has one of them."""
    assert _evaluate_sql(render_type_test("'a'", (*TEXTS, *DYNAMICS))) is True
    assert _evaluate_sql(render_type_test("'a'::JSON", TEXTS)) is False


def test_expressions_too_long_to_be_repeated_have_no_type_test() -> None:
    """If an expression is too long to be repeated, it has no type test, and its guard adds no SQL."""
    long = "+".join(["1"] * 200)
    assert render_type_test(long, TEXTS) == ""
    assert render_number_test(long) == ""
    assert add_type_guard("", "error('x')", "1") == "1"


def test_a_guard_raises_its_error_only_for_its_type() -> None:
    """If the type test of an SQL guard is true, the guard raises its error with code and message."""
    failure = render_error("SEM0001", "it's a text")
    guarded = [add_type_guard(render_type_test(value, TEXTS), failure, value) for value in ("1", "'a'")]
    assert _evaluate_sql(guarded[0]) == 1
    with pytest.raises(duckdb.InvalidInputException) as caught:
        _evaluate_sql(guarded[1])
    error = error_from_duckdb(caught.value)
    assert (error.inner, error.sentence) == ("SEM0001", "it's a text")


def test_a_missing_type_check_is_left_out_of_or_but_not_of_and() -> None:
    """Joining type tests with OR leaves out missing tests; with AND, a missing test makes the result missing."""
    assert join_tests_with_or("a", "", "b") == "(a) OR (b)"
    assert join_tests_with_and("a", "b") == "a AND b"
    assert join_tests_with_and("a", "") == ""
