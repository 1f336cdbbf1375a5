"""Tests of the plugin ``dcount_intersect``."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


def test_dcount_intersect_returns_the_documented_sizes(endpoint: Endpoint) -> None:
    """The numbers of values that sets share equal the documented numbers."""
    query = (
        "range x from 1 to 100 step 1"
        " | summarize a = hll(iff(x % 2 == 0, x, 0), 2), b = hll(iff(x % 3 == 0, x, 0)), c = hll(iff(x % 5 == 0, x, 0))"
        " | evaluate dcount_intersect(a, b, c) | project s0 - 1, s1 - 1, s2 - 1"
    )
    assert endpoint.query_rows(query) == [[50, 16, 3]]


def test_dcount_intersect_estimates_intersections_of_large_sets_closely(endpoint: Endpoint) -> None:
    """For large sets, the number of shared values is a close estimate."""
    query = (
        "range x from 1 to 10000 step 1 | summarize a = hll(x), b = hll(iff(x <= 5000, x, 1))"
        " | evaluate dcount_intersect(a, b) | project s0, s1"
    )
    ((first, both),) = endpoint.query_rows(query)
    assert first == pytest.approx(10_000, rel=0.03)
    assert both == pytest.approx(5_000, rel=0.06)
