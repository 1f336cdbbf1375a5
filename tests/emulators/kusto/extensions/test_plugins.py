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


def test_bag_unpack_reads_properties_of_any_name(endpoint: Endpoint) -> None:
    """``bag_unpack`` reads a property named ``*``; the column of a property without a name gets a free name."""
    bag = """parse_json(@'{"*":5,"":7,"Column1":8,"a\\"b":9}')"""
    table = endpoint.query_table(f"print d = {bag} | evaluate bag_unpack(d)").to_dict()["data"]
    assert table == [{"*": 5, "Column2": 7, "Column1": 8, 'a"b': 9}]
    table = endpoint.query_table(f"print d = {bag} | evaluate bag_unpack(d, 'p_')").to_dict()["data"]
    assert table == [{"p_*": 5, "p_": 7, "p_Column1": 8, 'p_a"b': 9}]


@pytest.mark.parametrize("ignored", ["'abc'", "'5'", "5", "dynamic({'a': 1})", "dynamic(['a', 1])"])
def test_ignored_properties_of_bag_unpack_must_be_an_array_of_strings(endpoint: Endpoint, ignored: str) -> None:
    """``bag_unpack`` rejects ``ignoredProperties`` that are not an array of strings."""
    error = endpoint.query_error(f"print d = dynamic({{'a': 1}}) | evaluate bag_unpack(d, 'p', 'error', {ignored})")
    assert "ignoredProperties must be an array of strings" in str(error)


def test_bag_unpack_without_properties_returns_a_placeholder_column(endpoint: Endpoint) -> None:
    """A result of ``bag_unpack`` without columns has an empty column, and as many rows as the input."""
    source = "datatable(d:dynamic)[dynamic({}), dynamic({})]"
    assert endpoint.query_rows(f"{source} | evaluate bag_unpack(d)") == [[""], [""]]
    assert endpoint.query_rows(f"{source} | where false | evaluate bag_unpack(d)") == []
