"""Tests of window functions over serialized rows."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.emulators.kusto.endpoints import Endpoint
from tests.random_examples import scale_examples

SERIALIZING = (
    "range x from 1 to 3 step 1",
    "datatable(x:long)[2,3,1] | sort by x asc",
    "datatable(x:long)[1,2,3] | serialize",
    "datatable(x:long)[1,2,3] | top 3 by x asc",
    "let T = datatable(x:long)[3,2,1] | sort by x asc; T",
    "range x from 1 to 3 step 1 | where x > 0 | extend y = 1 | project x | take 3",
)
UNSERIALIZED = (
    "datatable(x:long)[1,2,3]",
    "range x from 1 to 3 step 1 | summarize count() by x",
    "range x from 1 to 3 step 1 | distinct x",
    "range x from 1 to 3 step 1 | union (range x from 1 to 3 step 1)",
    "range x from 1 to 3 step 1 | join kind=inner (range x from 1 to 3 step 1) on x",
    "range x from 1 to 3 step 1 | sample 2",
)


@pytest.mark.parametrize("source", SERIALIZING)
def test_window_functions_accept_serialized_rows(endpoint: Endpoint, source: str) -> None:
    """Window functions work after operators that serialize rows or keep their order."""
    rows = endpoint.query_rows(
        f"{source} | extend p = prev(x), n = next(x, 1, 9), r = row_number() | project x, p, n, r"
    )
    assert rows == [[1, None, 2, 1], [2, 1, 3, 2], [3, 2, 9, 3]]


@pytest.mark.parametrize("source", UNSERIALIZED)
def test_window_functions_require_serialized_rows(endpoint: Endpoint, source: str) -> None:
    """A window function over rows that are not serialized is rejected, as in Data Explorer."""
    error = str(endpoint.query_error(f"{source} | extend p = prev(x)"))
    assert "must be serialized" in error
    assert "Semantic error" in error


def test_window_functions_after_operators_that_lose_the_order_are_rejected(endpoint: Endpoint) -> None:
    """After an operator that keeps the order only in Data Explorer, a window function is rejected."""
    query = "range x from 1 to 3 step 1 | lookup (datatable(x:long)[1]) on x | extend p = prev(x)"
    assert "EMB0001" in str(endpoint.query_error(query))


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("prev(v, 2)", [None, None, 3, 3, 5]),
        ("prev(a)", ["", "x", "x", "x", "y"]),
        ("strcat(a, prev(a, 1, '-'))", ["x-", "xx", "xx", "yx", "yy"]),
        ("next(v, 2, 0)", [5, 5, 6, 0, 0]),
        ("row_number(10)", [10, 11, 12, 13, 14]),
        ("row_number(0, a != prev(a))", [0, 1, 2, 0, 1]),
        ("row_cumsum(v)", [3, 6, 11, 16, 22]),
        ("row_cumsum(v, a != prev(a))", [3, 6, 11, 5, 11]),
        ("row_cumsum(row_number())", [1, 3, 6, 10, 15]),
        ("row_cumsum(todouble(v))", [3.0, 6.0, 11.0, 16.0, 22.0]),
        ("row_rank_dense(v)", [1, 1, 2, 2, 3]),
        ("row_rank_dense(v, a != prev(a))", [1, 1, 2, 1, 2]),
        ("row_rank_min(v)", [1, 1, 3, 3, 5]),
        ("row_rank_min(v, a != prev(a))", [1, 1, 3, 1, 2]),
        ("v - prev(v) + row_number()", [None, 2, 5, 4, 6]),
    ],
)
def test_window_functions_return_the_documented_values(endpoint: Endpoint, expression: str, values: list[Any]) -> None:
    """Each window function returns the documented values, also when it is nested in another window function."""
    table = 'datatable(a:string,v:long)["x",3,"x",3,"x",5,"y",5,"y",6]'
    assert endpoint.query_rows(f"{table} | serialize | extend w = {expression} | project w") == [
        [each] for each in values
    ]


def test_serialize_may_have_expressions(endpoint: Endpoint) -> None:
    """``serialize`` works with and without expressions, anywhere in a query."""
    assert endpoint.query_rows("datatable(x:long)[1,2] | serialize r = row_number(), 1") == [[1, 1, 1], [2, 2, 1]]
    assert endpoint.query_rows("(datatable(x:long)[1] | serialize | where x == 1) | count") == [[1]]


def test_window_functions_are_allowed_in_where_and_sort(endpoint: Endpoint) -> None:
    """Window functions are accepted in ``where`` and ``sort``, and rejected in other operators."""
    assert endpoint.query_rows("range x from 1 to 4 step 1 | where prev(x) >= 2") == [[3], [4]]
    assert endpoint.query_rows("range x from 1 to 3 step 1 | sort by row_number() desc") == [[3], [2], [1]]
    assert "EMB0001" in str(endpoint.query_error("range x from 1 to 3 step 1 | summarize sum(prev(x))"))


@pytest.mark.parametrize("call", ["prev()", "prev(x, x)", "prev(x, prev(x))", "row_rank_dense()", "row_number(x)"])
def test_invalid_window_function_arguments_are_rejected(endpoint: Endpoint, call: str) -> None:
    """A window function without a required argument, or with a column instead of a constant, is rejected."""
    assert "Semantic error" in str(endpoint.query_error(f"range x from 1 to 3 step 1 | extend y = {call}"))


def test_errors_after_serialize_have_correct_positions(endpoint: Endpoint) -> None:
    """Errors in the query text after ``serialize`` without arguments have correct positions."""
    assert "[line:position=2:16]" in str(endpoint.query_error("print x = 1 | serialize\n| extend y = 1 | extnd z = 2"))


def test_offsets_of_window_functions_can_be_constants_or_parameters(endpoint: Endpoint) -> None:
    """The offset of a window function may be a ``let`` constant or a query parameter."""
    assert endpoint.query_rows("let n = 2; range x from 1 to 3 step 1 | extend p = prev(x, n) | project p")[2] == [1]
    query = "declare query_parameters(n:int); range x from 1 to 3 step 1 | extend p = prev(x, n) | project p"
    assert endpoint.query_rows(query, {"n": "2"}) == [[None], [None], [1]]


def test_calls_of_window_functions_with_random_expressions_share_no_values(endpoint: Endpoint) -> None:
    """Calls of a window function with the same expression share its values, unless the expression is random."""
    query = "range x from 1 to 3 step 1 | extend {} | project a == b | take 1"
    assert endpoint.query_rows(query.format("a = row_cumsum(x, x != prev(x)), b = row_cumsum(x, x != prev(x))")) == [
        [True]
    ]
    assert endpoint.query_rows(query.format("a = row_cumsum(rand()), b = row_cumsum(rand())")) == [[False]]
    assert endpoint.query_rows(query.format("a = prev(new_guid(), 0), b = prev(new_guid(), 0)")) == [[False]]


def test_window_functions_over_many_sorted_rows_are_correct(endpoint: Endpoint) -> None:
    """Window functions over many sorted rows are correct, even with several threads."""
    query = (
        "range x from 1 to 300000 step 1 | extend y = (x * 7919) % 300007 | sort by y asc | where prev(y) >= y | count"
    )
    assert endpoint.query_rows(query) == [[0]]


START = datetime(2024, 1, 1)  # noqa: DTZ001  as text without a zone


def _compute_sessions(
    minutes: list[int | None], maximum_length: int, maximum_gap: int, restarts: list[bool]
) -> list[int | None]:
    """Return the session starts by the documented rules."""
    starts: list[int | None] = []
    start: int | None = None
    before: int | None = None
    for at, restart in zip(minutes, restarts, strict=True):
        if at is None:
            start = None
        elif start is None or before is None or at >= start + maximum_length or at >= before + maximum_gap or restart:
            start = at
        starts.append(start)
        before = at
    return starts


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 60)), st.booleans()), min_size=1, max_size=14),
    st.integers(1, 30),
    st.integers(1, 20),
    st.booleans(),
)
def test_session_starts_follow_the_documented_rules(
    endpoint: Endpoint,
    rows: list[tuple[int | None, bool]],
    maximum_length: int,
    maximum_gap: int,
    ascending: bool,  # noqa: FBT001  a drawn value
) -> None:
    """``row_window_session`` returns the documented session starts for sorted and unsorted values and nulls."""
    minutes = [at for at, _ in rows]
    if ascending:
        minutes = sorted(minutes, key=lambda at: -1 if at is None else at)
    restarts = [restart for _, restart in rows]
    values = ", ".join(
        f"{'datetime(null)' if at is None else f'datetime({START + timedelta(minutes=at)})'}, {str(restart).lower()}"
        for at, restart in zip(minutes, restarts, strict=True)
    )
    call = f"row_window_session(t, {maximum_length}m, {maximum_gap}m, restart)"
    answer = endpoint.query_rows(f"datatable(t:datetime, restart:bool)[{values}] | serialize s = {call} | project s")
    expected = [
        None if at is None else (START + timedelta(minutes=at)).isoformat(timespec="microseconds") + "Z"
        for at in _compute_sessions(minutes, maximum_length, maximum_gap, restarts)
    ]
    assert [row[0] for row in answer] == expected


@pytest.mark.parametrize(("maximum_length", "starts"), [("timespan(null)", [0, 0, 0]), ("0s", [0, 1, 2])])
def test_sessions_with_a_null_or_zero_length(endpoint: Endpoint, maximum_length: str, starts: list[int]) -> None:
    """With a maximum length of null, a session ends only at gaps; with zero, each row starts a session."""
    rows = "range x from 0 to 2 step 1 | extend t = datetime(2024-01-01) + x * 1m"
    query = f"{rows} | extend s = row_window_session(t, {maximum_length}, 1h) | project (s - datetime(2024-01-01)) / 1m"
    assert endpoint.query_rows(query) == [[start] for start in starts]


def test_runs_with_one_and_with_several_sessions_have_the_documented_starts(endpoint: Endpoint) -> None:
    """Value runs with one session and value runs with several sessions have the documented starts."""
    minutes = [*range(0, 50, 5), None, *range(100, 110, 5), 300, *range(400, 425, 5)]
    times = [None if at is None else START + timedelta(minutes=at) for at in minutes]
    values = ", ".join("datetime(null)" if time is None else f"datetime({time})" for time in times)
    query = f"datatable(t:datetime)[{values}] | serialize s = row_window_session(t, 20m, 10m)"
    answer = endpoint.query_rows(f"{query} | project (s - datetime({START})) / 1m")
    assert [row[0] for row in answer] == _compute_sessions(minutes, 20, 10, [False] * len(minutes))
