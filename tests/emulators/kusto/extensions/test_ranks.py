"""Tests of the order of values in sorts and aggregates."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

REALS = "datatable(v:real)[1.0, real(nan), real(null), real(+inf), real(-inf), 2]"


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("sort by v desc", ["Infinity", 2.0, 1.0, "-Infinity", "NaN", None]),
        ("sort by v asc", [None, "NaN", "-Infinity", 1.0, 2.0, "Infinity"]),
        ("sort by v desc nulls first", [None, "NaN", "Infinity", 2.0, 1.0, "-Infinity"]),
        ("sort by v asc nulls last", ["-Infinity", 1.0, 2.0, "Infinity", "NaN", None]),
        ("sort by v asc nulls first", [None, "NaN", "-Infinity", 1.0, 2.0, "Infinity"]),
        ("sort by v desc nulls last", ["Infinity", 2.0, 1.0, "-Infinity", "NaN", None]),
        ("top 2 by v asc nulls last", ["-Infinity", 1.0]),
        ("top 2 by v", ["Infinity", 2.0]),
        ("top 3 by v asc", [None, "NaN", "-Infinity"]),
        ("extend g = 1 | partition hint.strategy=native by g (top 2 by v) | project v", ["Infinity", 2.0]),
        ("where v < 9 | summarize v = max(v)", [2.0]),
        ("where isnan(v) or v < 9 | summarize arg_max(v, *)", [2.0]),
        ("where isnan(v) or v < 9 | summarize v = maxif(v, true)", [2.0]),
    ],
)
def test_nan_is_sorted_next_to_null(endpoint: Endpoint, operator: str, values: list[Any]) -> None:
    """A sort places NaN next to null; in an aggregate of the largest value, NaN is smaller than each number."""
    assert endpoint.query_rows(f"{REALS} | {operator}") == [[value] for value in values]


@pytest.mark.parametrize("aggregate", ["min(v)", "percentile(v, 50)", "percentiles(v, 5, 95)", "arg_min(v, *)"])
def test_aggregates_over_nan_without_documented_result_are_rejected(endpoint: Endpoint, aggregate: str) -> None:
    """An aggregate over NaN is rejected if Kusto does not document the result."""
    assert "EMB0001" in str(endpoint.query_error(f"{REALS} | summarize {aggregate}"))


@pytest.mark.parametrize(
    "operator",
    ["sort by d asc", "sort by e.a", "project x = e.a | sort by x"],
)
def test_a_dynamic_cannot_be_a_sort_key(endpoint: Endpoint, operator: str) -> None:
    """Sorting by a dynamic is rejected, as in Data Explorer."""
    error = str(endpoint.query_error(f'print d = dynamic(10), e = dynamic({{"a": 1}}) | {operator}'))
    assert "key can't be of dynamic type" in error


@pytest.mark.parametrize("operator", ["top 1 by d", "top 1 by e.a", "project x = e.a | top 1 by x"])
def test_top_by_a_dynamic_is_rejected(endpoint: Endpoint, operator: str) -> None:
    """``top`` by a dynamic is rejected, because Data Explorer does not document the order."""
    assert "EMB0001" in str(endpoint.query_error(f'print d = dynamic(10), e = dynamic({{"a": 1}}) | {operator}'))


@pytest.mark.parametrize(
    "aggregate",
    ["max(d)", "min(d)", "maxif(d, true)", "percentile(d, 50)", "arg_max(d, *)", "arg_min(e.a, *)", "max(e.a)"],
)
def test_the_maximum_of_dynamics_is_rejected(endpoint: Endpoint, aggregate: str) -> None:
    """An aggregate that compares dynamics is rejected with the name of the aggregate."""
    error = str(endpoint.query_error(f'print d = dynamic(10), e = dynamic({{"a": 1}}) | summarize {aggregate}'))
    assert "EMB0001" in error or "SEM0219" in error
    assert aggregate.partition("(")[0] in error


@pytest.mark.parametrize("call", ["max_of(d, 9)", "min_of(e.a, 9)", 'max_of("a", "b")'])
def test_max_of_rejects_strings_and_dynamics(endpoint: Endpoint, call: str) -> None:
    """``max_of`` and ``min_of`` reject string and dynamic arguments."""
    assert "SEM0219" in str(endpoint.query_error(f'print d = dynamic(10), e = dynamic({{"a": 1}}) | extend x = {call}'))


def test_the_maximum_of_values_has_the_type_of_the_values(endpoint: Endpoint) -> None:
    """The maximum of values of any type except dynamic has the type of the values."""
    query = "range x from 1 to 3 step 1 | summarize max(x), max(x * 2.5), max(tostring(x)), min(x * 1h), max(x > 1)"
    assert endpoint.query_rows(query) == [[3, 7.5, "3", "01:00:00", 1]]


def test_the_percentiles_in_a_dynamic_value_must_be_an_array(endpoint: Endpoint) -> None:
    """``percentiles_array`` rejects a dynamic value that is not an array."""
    error = endpoint.query_error("print v = 1 | summarize percentiles_array(v, dynamic(5))")
    assert "a dynamic percentile must be an array" in str(error)
