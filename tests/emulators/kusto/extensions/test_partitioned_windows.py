"""Tests that window functions over partitions return the same results as window functions over all sorted rows."""

import pytest
from duckdb_kql.lower import lower
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.kusto.extensions.known_types import bind_known_types
from emulators.kusto.extensions.partitioned_windows import PartitionedWindows, merge_sorts_with_extends
from tests.emulators.kusto.endpoints import Endpoint
from tests.random_examples import scale_examples

CUMSUM = "sort by k asc, n asc | extend c = row_cumsum(v, k != prev(k))"
RANKS = "sort by k desc, v asc | extend c = row_rank_dense(v, k != prev(k)), m = row_rank_min(v, prev(k) != k)"
ROWS = "datatable(k:string, n:long, v:long, d:real)[{}]"
ROW = "'a',1,1,0.5"
MERGED = [
    f"{CUMSUM} | summarize max(c) by k",
    f"{CUMSUM} | where c > 2 | project k, c | count",
    f"{RANKS} | summarize sum(c), max(m), dcount(m) by k",
    (
        "sort by k asc, v desc, n asc | extend c = row_rank_min(v, k != prev(k)), s = row_cumsum(n * 2, k != prev(k))"
        " | summarize sum(c), max(s), min(s) by k"
    ),
    (
        "sort by k asc nulls last, v asc nulls first, n desc | extend c = row_cumsum(n, k != prev(k) or v != prev(v))"
        " | summarize sum(c), count() by k, v"
    ),
    "sort by k asc, n asc | extend c = row_cumsum(d, k != prev(k)) | summarize max(c), sum(c) by k",
]
SEPARATE = [
    CUMSUM,
    f"{CUMSUM} | summarize make_list(c) by k",
    f"{CUMSUM} | summarize take_any(c) by k",
    f"{CUMSUM} | take 3 | count",
    f"{CUMSUM} | extend p = prev(c) | summarize max(p)",
    "sort by n asc, k asc | extend c = row_cumsum(v, k != prev(k)) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(v, n != prev(n)) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(v, k != prev(k, 2)) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(v, k == prev(k)) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(v) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(rand(), k != prev(k)) | summarize max(c)",
    "sort by k asc, n asc | extend c = row_cumsum(v, k != prev(k)), g = next(v) | summarize max(c), max(g)",
    "sort by k asc, n asc | extend c = row_rank_min(v, k != prev(k)) | summarize max(c)",
    "sort by d asc, n asc | extend c = row_cumsum(v, d != prev(d)) | summarize max(c)",
    "sort by strcat(k, 'x') asc | extend c = row_cumsum(v, k != prev(k)) | summarize max(c)",
]


def _uses_partitions(query: str) -> bool:
    lowered = lower(f"{ROWS.format(ROW)} | {query}")
    with bind_known_types(lowered, {}):
        return any(isinstance(each, PartitionedWindows) for each in merge_sorts_with_extends(lowered.operators))


@pytest.mark.parametrize("query", MERGED)
def test_functions_that_restart_with_a_sorted_column_use_partitions(query: str) -> None:
    """A sort becomes PARTITION BY if functions restart at changes of a sort key and nothing later needs the order."""
    assert _uses_partitions(query)


@pytest.mark.parametrize("query", SEPARATE)
def test_window_functions_with_other_restarts_use_the_sorted_rows(query: str) -> None:
    """All rows are sorted if the restarts differ from the sort keys, or if the order of the rows matters later."""
    assert not _uses_partitions(query)


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["'a'", "'b'", "''"]),
            st.sampled_from(["1", "2", "-3", "long(null)"]),
            st.sampled_from(["0.5", "-2.0", "real(null)", "real(+inf)", "real(nan)"]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(MERGED),
)
def test_window_functions_give_equal_results_with_and_without_partitions(
    endpoint: Endpoint, rows: list[tuple[str, str, str]], query: str
) -> None:
    """Sums and ranks are equal with and without PARTITION BY, also for null, NaN, infinity and empty strings."""
    values = ", ".join(f"{key},{number},{value},{real}" for number, (key, value, real) in enumerate(rows))
    sort, rest = query.split(" | ", 1)
    partitioned, sorted_rows = (
        endpoint.query_rows(f"{ROWS.format(values)} | {sort} | {between}{rest}") for between in ("", "serialize | ")
    )
    assert sorted(map(repr, partitioned)) == sorted(map(repr, sorted_rows))


@pytest.mark.parametrize(
    "query", ["sort by q asc | extend c = row_cumsum(v, q != prev(q))", CUMSUM.replace("(v", "(q")]
)
def test_unknown_columns_in_window_queries_are_rejected(endpoint: Endpoint, query: str) -> None:
    """A query with an unknown column as sort key or argument is rejected."""
    assert "SEM0100" in str(endpoint.query_error(f"{ROWS.format(ROW)} | {query} | count"))
