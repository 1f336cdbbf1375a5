"""Benchmark of KQL functions over series, compared with NumPy.

The time of NumPy includes decoding the arrays from JSON and encoding the results as JSON.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import duckdb
import numpy as np
import orjson

from bench.figures import Figure
from emulators.kusto.extensions import EXTENSIONS, create_functions_and_macros
from emulators.kusto.query_checks import install_sql_length_check
from emulators.kusto.sandbox import open_database
from emulators.kusto.series.decomposition import decompose_series, detect_periods, score_anomalies, score_outliers
from emulators.kusto.translate import translate

SERIES = 10_000
POINTS = 1_000
RUNS = 3
MOST_TIMES = 1.8
"""Maximum CPU time of a function relative to NumPy."""

type Numbers = np.ndarray[Any, np.dtype[np.float64]]
type Compute = Callable[[Numbers], Any]


def measure_kql_series() -> Iterator[Figure]:
    """Alternately run each function in KQL and in NumPy; compare the median CPU times."""
    with open_database(None) as connection:
        connection.execute("SET threads = 1")
        install_sql_length_check()
        for extension in EXTENSIONS:
            extension.install_into_translator()
        create_functions_and_macros(connection)
        connection.execute(
            "CREATE TABLE T AS SELECT CAST(to_json(list_transform(range(0, ?), lambda k: sin(k / 3.82) * 10 + "  # noqa: S608  constants
            f"((k * 7919 + i * 31) % 101) / 50.0)) AS JSON) AS y FROM range({SERIES}) AS r(i)",
            [POINTS],
        )
        for name, (call, compute) in _CASES.items():
            sql = translate(f"T | project {call}", {"T": ["y"]}, (), {"y": "JSON"}).sql
            ours, theirs = _measure_median_cpu_milliseconds(connection, sql, compute)
            detail = {"kqlMs": round(ours), "numpyMs": round(theirs), "series": SERIES, "points": POINTS}
            yield Figure(f"kql_series_{name}", ours / theirs, "ratio", at_most=MOST_TIMES, detail=detail)


class _MedianCpuMilliseconds(NamedTuple):
    """Median CPU milliseconds of the query, and of the same computation in NumPy."""

    kql: float
    numpy: float


def _measure_median_cpu_milliseconds(
    connection: duckdb.DuckDBPyConnection, sql: str, compute: Compute
) -> _MedianCpuMilliseconds:
    """Alternately run the SQL of a KQL function and the NumPy function ``compute``; return the median CPU times.

    Raises:
        RuntimeError: the two computations return different numbers of rows.
    """
    ours, theirs = [], []
    for _ in range(RUNS):
        started = time.process_time()
        count = _run_query_and_count_rows(connection, sql)
        ours.append((time.process_time() - started) * 1000)
        started = time.process_time()
        expected = _run_numpy_and_count_results(connection, compute)
        theirs.append((time.process_time() - started) * 1000)
        if count != expected:
            raise RuntimeError(f"the KQL returned {count} rows, NumPy {expected}: {sql}")
    return _MedianCpuMilliseconds(statistics.median(ours), statistics.median(theirs))


def _run_query_and_count_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    cursor = connection.execute(sql)
    count = 0
    while rows := cursor.fetchmany(1000):
        count += len(rows)
    return count


def _run_numpy_and_count_results(connection: duckdb.DuckDBPyConnection, compute: Compute) -> int:
    cursor = connection.execute("SELECT y FROM T")
    count = 0
    while rows := cursor.fetchmany(1000):
        for (text,) in rows:
            results = compute(np.array(orjson.loads(text), dtype=float))
            count += bool([orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY) for each in results.values()])
    return count


def _compute_fourier_transform(values: Numbers) -> Mapping[str, Numbers]:
    points = np.fft.fft(values)
    return {"real": points.real.copy(), "imag": points.imag.copy()}


def _fit_polynomial(values: Numbers) -> Mapping[str, Any]:
    places = np.arange(1.0, len(values) + 1)
    coefficients = np.polyfit(places, values, 3)
    fitted = np.polyval(coefficients, places)
    variance, remaining = values.var(ddof=1), np.square(values - fitted).sum() / (len(values) - 1)
    return {
        "rsquare": float(1 - remaining / variance),
        "coefficients": coefficients,
        "variance": float(variance),
        "rvariance": float(remaining),
        "poly_fit": fitted,
    }


def _compute_statistics(values: Numbers) -> Mapping[str, float]:
    return {
        "min": float(values.min()),
        "min_idx": int(values.argmin()),
        "max": float(values.max()),
        "max_idx": int(values.argmax()),
        "avg": float(values.mean()),
        "stdev": float(values.std(ddof=1)),
        "variance": float(values.var(ddof=1)),
    }


_CASES: Mapping[str, tuple[str, Compute]] = {
    "fft": ("series_fft(y)", _compute_fourier_transform),
    "fit_poly": ("series_fit_poly(y, dynamic(null), 3)", _fit_polynomial),
    "stats": ("series_stats(y)", _compute_statistics),
    "outliers": ("series_outliers(y)", lambda y: score_outliers(y, None, None, None, None, None)),
    "periods_detect": ("series_periods_detect(y, 4.0, 400.0, 2)", lambda y: detect_periods(y, 4.0, 400.0, 2)),
    "decompose_anomalies": (
        "series_decompose_anomalies(y)",
        lambda y: score_anomalies(y, None, None, None, None, None, None),
    ),
    "decompose_forecast": ("series_decompose_forecast(y, 50)", lambda y: decompose_series(y, None, None, 50, None)),
    "fir": (
        "series_fir(y, dynamic([1, 1, 1, 1, 1]))",
        lambda y: {"filtered": np.convolve(y, np.full(5, 0.2))[: len(y)]},
    ),
}
"""KQL expression, and the same computation in NumPy, by name of the measured function."""
