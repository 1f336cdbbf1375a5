"""Tests of aggregates over intermediate results, of sorted arrays, and of the operator ``as``."""

from typing import Any

import numpy as np
import pytest

from emulators.kusto.extensions.digests import functions
from emulators.kusto.extensions.encodings import compute_hash
from emulators.kusto.series.sketches import (
    MAX_CENTROIDS,
    merge_hash_sets,
    summarize_hashes_as_set,
    summarize_values_as_digest,
)
from tests.emulators.kusto.endpoints import Endpoint

HUNDRED = "range x from 1 to 100 step 1 | summarize t = tdigest(x), h = hll(x) by g = x % 2"
BEYOND_DOUBLE = 10**309
ROWS: list[tuple[str, list[Any]]] = [
    (f"{HUNDRED} | summarize t = tdigest_merge(t) | project percentile_tdigest(t, 50)", [50.0]),
    (f"{HUNDRED} | summarize t = merge_tdigest(t) | project percentiles_array_tdigest(t, 10, 90)", [[10.0, 90.0]]),
    (
        f"{HUNDRED} | summarize t = tdigest_merge(t) | project rank_tdigest(t, 10), percentrank_tdigest(t, 10)",
        [9.0, 10.0],
    ),
    (f"{HUNDRED} | summarize h = hll_merge(h) | project dcount_hll(h)", [100]),
    ("range x from 1 to 9 step 1 | summarize h = hll_if(x, x > 5) | project dcount_hll(h)", [4]),
    ("print a = 1 | summarize t = tdigest(a, 5), h = hll(a) | project t, h[0]", [[[7], [1.0], [5]], [1024, 14]]),
    ("print a = real(null) | summarize t = tdigest(a) | project percentile_tdigest(t, 50)", [None]),
    ("datatable(x:long)[] | summarize t = tdigest(x), h = hll(x), i = hll_if(x, x > 1)", [None, None, None]),
    ("datatable(d:dynamic)[] | summarize t = tdigest_merge(d), h = hll_merge(d)", [None, None]),
    (
        (
            "union (print v = dynamic({'x': 1, 'y': 3.5})), (print v = dynamic({'x': 'a', 'z': [1, 2]})) "
            "| summarize s = buildschema(v) | project s.x, s.y, s.z"
        ),
        [["long", "string"], "double", {"`indexer`": "long"}],
    ),
    (
        (
            "let array1 = dynamic([1, 3, 4, 5, 2]); let array2 = dynamic(['a', 'b', 'c', 'd', 'e']); "
            "print array_sort_asc(array1, array2)"
        ),
        [[1, 2, 3, 4, 5], ["a", "e", "b", "c", "d"]],
    ),
    ("print x = dynamic([2, 1]), y = dynamic(['p']) | project array_sort_desc(x, y, false)", [[2, 1], None]),
    ("print (a, b) = array_sort_desc(dynamic([1, null, 2]), dynamic([1, 2, 3]))", [[2, 1, None], [3, 1, 2]]),
    ("print a = array_sort_asc(dynamic([2, 1]), dynamic(['p', 'q']))[1]", [["q", "p"]]),
    ("print x = dynamic([2, 1]) | project array_sort_asc(x, x)", [[1, 2], [1, 2]]),
    ("print d = 1h | summarize t = tdigest(d) | project rank_tdigest(t, 2h), rank_tdigest(t, 's')", [1.0, None]),
    ("print d = 5 | summarize t = tdigest(d) | project percentile_tdigest(t, 50, typeof(long))", [5]),
    ("print d = dynamic([1]) | summarize h = hll_merge(d), t = tdigest_merge(d)", [None, None]),
    ("print hll_merge(dynamic([1]), dynamic([1, 2, 3]))", [None]),
    (
        f"print x = parse_json('[{BEYOND_DOUBLE}, 1, [{BEYOND_DOUBLE}]]') | project array_sort_asc(x, x)",
        [[1, BEYOND_DOUBLE, [BEYOND_DOUBLE]]] * 2,
    ),
    (f"print d = parse_json('{BEYOND_DOUBLE}') | summarize t = tdigest_merge(d)", [None]),
    (f"print d = parse_json('[[7], [{BEYOND_DOUBLE}], [1]]') | summarize t = tdigest_merge(d)", [None]),
    (
        (
            f"union (print d = parse_json('[[7], [{'9' * 5000}], [1]]')), (print x = 2 | summarize d = tdigest(x)) "
            "| summarize t = tdigest_merge(d)"
        ),
        [[[7], [2.0], [1]]],
    ),
    (
        f"print x = parse_json('[{BEYOND_DOUBLE}, \"\u00e9\"]') | project tostring(array_sort_desc(x, x)[1])",
        [f'["\u00e9",{BEYOND_DOUBLE}]'],
    ),
    ("range x from 1 to 5 step 1 | as T | where x > 2 | union T | count", [8]),
    ("range x from 1 to 3 step 1 | as A | extend y = x | as B | union A, B | count", [9]),
]


@pytest.mark.parametrize(("query", "row"), ROWS)
def test_merging_digests_gives_the_result_of_direct_aggregation(endpoint: Endpoint, query: str, row: list[Any]) -> None:
    """Merging intermediate results gives the same rows as aggregating directly."""
    assert endpoint.query_rows(query)[-1] == row


def test_a_t_digest_of_many_values_is_small_and_exact_to_0_2_percent() -> None:
    """A t-digest of many values has at most 1,000 centroids; its percentiles have an error below 0.2 %."""
    (percentile,) = (each.run for each in functions if each.name == "kql_call_percentile_tdigest")
    text = summarize_values_as_digest(np.arange(100_000.0), None)["digest"]
    assert text.count(",") < 2 * MAX_CENTROIDS + 3
    assert float(percentile(text, 50.0)) == pytest.approx(50_000, rel=0.002)


def test_the_estimated_number_of_distinct_values_is_exact_to_3_percent() -> None:
    """The estimated number of 20,000 distinct values has an error below 3 %."""
    (count,) = (each.run for each in functions if each.name == "kql_call_dcount_hll")
    halves = [
        summarize_hashes_as_set(np.array([compute_hash("BIGINT", str(each)) for each in range(start, start + 10_000)]))
        for start in (1, 10_001)
    ]
    assert count(merge_hash_sets([each["hashes"] for each in halves])) == pytest.approx(20_000, rel=0.03)


@pytest.mark.parametrize("value", ["1", "'x'", "dynamic([1])", "dynamic([[7], [1], [1, 2], 4])", "dynamic({'a': 1})"])
def test_an_invalid_digest_gives_null(endpoint: Endpoint, value: str) -> None:
    """If a dynamic value is not a digest, a function over digests returns null."""
    query = f"print d = parse_json(tostring({value})) | project percentile_tdigest(d, 50), dcount_hll(d)"
    assert endpoint.query_rows(query) == [[None, None]]
