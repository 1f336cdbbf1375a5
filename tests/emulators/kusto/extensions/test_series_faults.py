"""Tests of series functions with missing, infinite, ill-typed and very many points."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import duckdb
import numpy as np
import pytest

from emulators.kusto.library_errors import error_from_duckdb
from emulators.kusto.sandbox import open_database
from emulators.kusto.series import filters
from emulators.kusto.series.decomposition import MAX_PERIODS
from emulators.kusto.series.regression import MAX_DEGREE
from emulators.kusto.series_functions import SeriesFunction, register_series_functions
from emulators.kusto.stop_events import ExecutionStoppedError
from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.series.outputs import require_outputs

SERIES = {
    "nan": "pack_array(real(nan), 1.0, 2.0, real(nan))",
    "infinite": "pack_array(real(+inf), 1.0, 2.0, real(-inf), 5.0)",
    "nulls": "dynamic([null, null, null])",
    "gaps": "dynamic([1, null, 3, null, 5, 6, 7, 8])",
    "empty": "dynamic([])",
    "null": "dynamic(null)",
    "one": "dynamic([1])",
    "mixed": "dynamic([1, 'a', true, null, {'a': 1}, [2], 2.5])",
    "text": "dynamic('x')",
    "number": "dynamic(5)",
    "constant": "dynamic([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7])",
    "huge": "dynamic([1e308, -1e308, 1e308, -1e308, 1e308, -1e308, 1e308, -1e308, 1e308])",
    "tiny": "dynamic([1e-320, 2e-320, 3e-320, 1e-320, 2e-320, 3e-320, 1e-320, 2e-320])",
}
CALLS = [
    *(f"series_{name}(s)" for name in ("abs", "acos", "asin", "atan", "ceiling", "cos", "exp", "floor", "log", "sign")),
    *(
        f"series_{name}(s)"
        for name in ("sin", "tan", "sum", "product", "magnitude", "fft", "ifft", "stats", "seasonal")
    ),
    *(f"series_{name}(s, s)" for name in ("divide", "pow", "equals", "less", "greater_equals", "dot_product")),
    *(f"series_{name}(s, 2.5)" for name in ("add", "subtract", "multiply", "not_equals", "greater", "less_equals")),
    *(f"series_{name}(s, s)" for name in ("cosine_similarity", "pearson_correlation", "fft", "ifft")),
    *(f"series_{name}(s)" for name in ("fill_linear", "fill_forward", "fill_backward", "outliers", "decompose")),
    *(f"series_{name}(s)" for name in ("fit_line", "fit_2lines", "fit_poly", "decompose_anomalies", "stats_dynamic")),
    *(f"series_{name}(s)" for name in ("fit_line_dynamic", "fit_2lines_dynamic")),
    "series_fill_const(s, 0)",
    "series_fir(s, s)",
    "series_fir(s, dynamic([1, 1, 1]), true, true)",
    "series_iir(s, dynamic([1]), dynamic([1, -1]))",
    "series_iir(s, dynamic([1]), dynamic([1, -1, 0.5]))",
    "series_iir(s, s, s)",
    "series_stats(s, true)",
    "series_fit_poly(s, s, 2)",
    "series_fit_poly(s, dynamic(null), 30)",
    "series_decompose(s, -1, 'linefit', 3)",
    "series_decompose(s, 1000000000000, 'none')",
    "series_decompose_anomalies(s, 1.5, -1, 'linefit', 1, 'tukey')",
    "series_decompose_anomalies(s, real(nan), 7)",
    "series_decompose_forecast(s, 2)",
    "series_decompose_forecast(s, 200000)",
    "series_decompose_forecast(s, -5)",
    "series_seasonal(s, -7)",
    "series_outliers(s, 'tukey', 0, 10, 90, 2)",
    "series_outliers(s, 'ctukey', real(nan))",
    "series_periods_detect(s, 0.0, 50.0, 2)",
    "series_periods_detect(s, 4.0, real(+inf), 64)",
    "series_periods_detect(s, real(nan), real(-inf), -1)",
    "series_periods_validate(s, 14.0, real(nan), real(+inf), -3.0)",
    "array_sort_asc(s)",
]
QUADRATIC = ("series_fir(s, s)", "series_iir(s, s, s)")
"""Calls whose effort is the square of the number of points."""
NULL_OF_LONG = {
    "series_fit_poly(s, dynamic(null), 30)",
    "series_decompose_forecast(s, 200000)",
    "series_periods_detect(s, real(nan), real(-inf), -1)",
}
"""Calls that give null for 100,000 points: doubles do not distinguish the powers, or an argument excludes a result."""


@pytest.mark.parametrize("series", SERIES)
def test_series_functions_accept_any_value(endpoint: Endpoint, series: str) -> None:
    """For a value that is no ordinary series, each series function returns a result and no error."""
    [row] = endpoint.query_rows(
        f"datatable(i: long)[1] | extend s = {SERIES[series]} | project {assign_result_names(CALLS)}"
    )
    assert len(row) > len(CALLS)


@pytest.mark.parametrize("calls", list(itertools.batched(CALLS, 8, strict=False)), ids=lambda calls: calls[0])
def test_each_series_function_accepts_100000_points(endpoint: Endpoint, calls: tuple[str, ...]) -> None:
    """Each series function accepts 100,000 points."""
    chosen = [call for call in calls if call not in QUADRATIC]
    query = f"print s = range(1, 100000) | project {assign_result_names(chosen)}"
    lengths = ", ".join(f"strlen(tostring(r{index}))" for index in range(len(chosen)))
    [row] = endpoint.query_rows(f"{query} | project {lengths}")
    assert {call for call, length in zip(chosen, row, strict=True) if not length} <= NULL_OF_LONG


def assign_result_names(calls: Iterable[str]) -> str:
    """Return KQL in which each call has a result name of its own."""
    return ", ".join(f"r{index} = {call}" for index, call in enumerate(calls))


def test_series_functions_accept_an_empty_table(endpoint: Endpoint) -> None:
    """A series function accepts an empty table."""
    assert endpoint.query_rows(f"datatable(s: dynamic)[] | project {assign_result_names(CALLS)}") == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("series_periods_detect(dynamic([1, 2, 3]), real(nan), 5.0, 2)", None),
        ("series_fill_linear(dynamic([1.0, null, 3.0, 'NaN', 5.0]))", [1.0, 2.0, 3.0, "NaN", 5.0]),
        ("series_fill_linear(pack_array(1.0, real(null), real(+inf), 5.0))", [1.0, "Infinity", "Infinity", 5.0]),
        ("series_fill_const(pack_array(real(+inf), real(null)), 0.0)", ["Infinity", 0.0]),
        ("pack_array(real(nan), real(-inf), 'NaN', 1)", ["NaN", "-Infinity", "NaN", 1]),
        ("series_fir(dynamic([1, null, 3, 4, 5]), dynamic([1, 1]))", [0.5, None, None, 3.5, 4.5]),
        ("series_fir(dynamic([1, 2]), dynamic([1, null]))", None),
        ("series_fir(dynamic([]), dynamic([1]))", []),
        ("series_iir(dynamic([1, null, 3]), dynamic([1]), dynamic([1, -1, 0.5]))", [1.0, None, None]),
        ("series_iir(dynamic([1, 2]), dynamic([1]), dynamic([0, 1]))", None),
        (f"series_periods_detect(dynamic([1]), 4.0, 9.0, {MAX_PERIODS})", [0.0] * MAX_PERIODS),
        (f"series_fit_poly(range(1, 200), dynamic(null), {MAX_DEGREE + 1})", None),
    ],
)
def test_missing_points_of_a_series_have_the_documented_effect(
    endpoint: Endpoint, expression: str, expected: Any
) -> None:
    """A missing or infinite point has the documented effect on the result."""
    assert endpoint.query_rows(f"print x = {expression}")[0][0] == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"series_periods_detect(dynamic([1]), 4.0, 9.0, {MAX_PERIODS + 1})", f"num_periods above {MAX_PERIODS}"),
        ("series_outliers(dynamic([1]), 'ctukey', 0, 1, 90)", "min_percentile must be between 2.0 and 98.0"),
        ("series_abs(dynamic({'a': 1}))", "does not accept arguments of the types (bag)"),
        ("series_decompose(dynamic([1]), -1, 'other')", "must be 'avg' or 'linefit' or 'none'"),
    ],
)
def test_the_error_about_a_series_argument_out_of_range_names_the_limit(
    endpoint: Endpoint, expression: str, message: str
) -> None:
    """The error about an argument beyond a limit contains the limit."""
    assert message in str(endpoint.query_error(f"print x = {expression}"))


@pytest.mark.parametrize(
    "compute",
    [
        lambda values: filters.apply_fir_filter(values, values, normalize=None, center=None),
        lambda values: filters.apply_iir_filter(values, values[:1], values[:3]),
    ],
)
def test_a_filter_of_a_series_can_be_cancelled(compute: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter with very many steps can be cancelled during the computation of one series."""
    checks = itertools.count(1)

    def stop_at_second_check() -> None:
        if next(checks) == 2:
            raise ExecutionStoppedError

    monkeypatch.setattr(filters, "raise_if_stopped", stop_at_second_check)
    with pytest.raises(ExecutionStoppedError):
        compute(np.ones(100_000))


def test_a_convolution_in_parts_equals_one_in_one_step() -> None:
    """A convolution that is computed in parts has the same result as a convolution that is computed at once."""
    values = np.sin(np.arange(20_000.0))
    weights = np.cos(np.arange(2_000.0))
    found = filters.apply_fir_filter(values, weights, normalize=False, center=True)
    expected = np.convolve(values, weights)[999 : 999 + len(values)]
    assert require_outputs(found)["filtered"] == pytest.approx(expected, abs=1e-9)


def raise_memory_error(_: Any) -> Any:
    """Raise MemoryError in place of a function that runs out of memory."""
    raise MemoryError


def test_a_memory_error_of_a_python_function_is_reported_as_the_memory_limit() -> None:
    """If a Python function raises MemoryError, the query is reported as over the memory limit."""
    function = SeriesFunction("greedy", ("BIGINT",), {"x": "long"}, f"{__name__}:raise_memory_error")
    with open_database(None) as connection:
        register_series_functions(connection, [function])
        with pytest.raises(duckdb.Error) as raised:
            connection.execute(f"SELECT {function.render_call_sql('range')} FROM range(1)")
    assert "E_RUNAWAY_QUERY" in error_from_duckdb(raised.value).message
