"""KQL functions that find seasons, trends and anomalies in series: decomposition, periods and outliers.

The documentation of Kusto specifies the arithmetic of the decomposition, but not the scores of periods. The functions
reproduce the documentation's examples of these scores.
"""

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.multi_results import SeriesOutput, add_multi_result_function
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.series_calls import (
    Argument,
    SeriesCall,
    add_series_multi_result,
    add_series_scalar,
)
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.series_functions import SeriesFunction

_MODULE = "emulators.kusto.series"
_TRENDS = ("avg", "linefit", "none")
_METHODS = ("ctukey", "tukey")
_MAX_VALIDATED = 16
"""Maximum number of periods that series_periods_validate() accepts."""

_DECOMPOSE = SeriesFunction(
    "series_decompose",
    ("DOUBLE[]", "BIGINT", "VARCHAR", "BIGINT", "DOUBLE"),
    dict.fromkeys(("baseline", "seasonal", "trend", "residual"), "series"),
    f"{_MODULE}.decomposition:decompose",
)
_ANOMALIES = SeriesFunction(
    "series_decompose_anomalies",
    ("DOUBLE[]", "DOUBLE", "BIGINT", "VARCHAR", "BIGINT", "VARCHAR", "DOUBLE"),
    {"ad_flag": "integers", "ad_score": "series", "baseline": "series"},
    f"{_MODULE}.decomposition:find_anomalies",
)
_SEASONAL = SeriesFunction(
    "series_seasonal",
    ("DOUBLE[]", "BIGINT", "BIGINT"),
    {"seasonal": "series"},
    f"{_MODULE}.decomposition:extract_season",
)
_OUTLIERS = SeriesFunction(
    "series_outliers",
    ("DOUBLE[]", "VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE", "BIGINT"),
    {"scores": "series"},
    f"{_MODULE}.outliers:score_outliers",
)
_DETECT = SeriesFunction(
    "series_periods_detect",
    ("DOUBLE[]", "DOUBLE", "DOUBLE", "BIGINT"),
    {"periods": "series", "scores": "series"},
    f"{_MODULE}.periods:detect_periods",
)
_VALIDATE = SeriesFunction(
    "series_periods_validate",
    ("DOUBLE[]", "DOUBLE[]"),
    {"periods": "series", "scores": "series"},
    f"{_MODULE}.periods:validate_periods",
)

_SERIES = Argument("Series")
_SEASONALITY = Argument("Seasonality", "int")
_TREND = Argument("Trend", "string", _TRENDS)
_TEST_POINTS = Argument("Test_points", "int")
_SCORE_THRESHOLD = Argument("Seasonality_threshold", "real")

series_functions: tuple[SeriesFunction, ...] = (_DECOMPOSE, _ANOMALIES, _SEASONAL, _OUTLIERS, _DETECT, _VALIDATE)
"""Functions in Python that the KQL functions of this module call."""

_DECOMPOSE_CALL = SeriesCall(
    "series_decompose", (_SERIES, _SEASONALITY, _TREND, _TEST_POINTS, _SCORE_THRESHOLD), 1, _DECOMPOSE
)
_MULTI_RESULT_CALLS = (
    _DECOMPOSE_CALL,
    SeriesCall(
        "series_decompose_anomalies",
        (
            _SERIES,
            Argument("Threshold", "real"),
            _SEASONALITY,
            _TREND,
            _TEST_POINTS,
            Argument("AD_method", "string", _METHODS),
            _SCORE_THRESHOLD,
        ),
        1,
        _ANOMALIES,
    ),
    SeriesCall(
        "series_periods_detect",
        (_SERIES, Argument("min_period", "real"), Argument("max_period", "real"), Argument("num_periods", "int")),
        4,
        _DETECT,
    ),
)
_OUTLIERS_CALL = SeriesCall(
    "series_outliers",
    (
        Argument("series"),
        Argument("kind", "string", _METHODS),
        Argument("ignore_val", "real"),
        Argument("min_percentile", "real"),
        Argument("max_percentile", "real"),
        Argument("test_points", "int"),
    ),
    1,
    _OUTLIERS,
)
_PERCENTILE_LIMITS = (2.0, 98.0)


def _reorder_forecast(values: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """Return the arguments of ``series_decompose()`` for the arguments of ``series_decompose_forecast()``."""
    null = ir.Literal(None, "null")
    series, points, *rest = values
    seasonality, trend, threshold = (rest[index] if index < len(rest) else null for index in range(3))
    return (series, seasonality, trend, points, threshold)


def _read_forecast(values: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
    return ir.FunctionCall("series_decompose output", (*_reorder_forecast(values), ir.Literal(output.name, "string")))


def _install_forecast() -> None:
    arities = range(2, 6)
    add_custom_function(
        "series_decompose_forecast",
        arities,
        lambda node: _DECOMPOSE_CALL.render_output(_reorder_forecast(node.args), "baseline"),
    )
    outputs = [SeriesOutput(name) for name in _DECOMPOSE.outputs]
    add_multi_result_function("series_decompose_forecast", outputs, arities, _read_forecast)


def _install_validate() -> None:
    outputs = [SeriesOutput(name) for name in _VALIDATE.outputs]
    arities = range(2, _MAX_VALIDATED + 2)
    add_custom_function("series_periods_validate output", range(3, _MAX_VALIDATED + 3), _render_validate)

    def read_output(values: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
        return ir.FunctionCall("series_periods_validate output", (*values, ir.Literal(output.name, "string")))

    add_multi_result_function("series_periods_validate", outputs, arities, read_output)


def _render_validate(node: ir.FunctionCall) -> str:
    series, *periods, output = node.args
    assert isinstance(output, ir.Literal)  # noqa: S101  the reader adds it
    values = ", ".join(f"CAST({render_expression(each)} AS DOUBLE)" for each in periods)
    call = _VALIDATE.render_call(f"kql_numbers({render_expression(series)})", f"[{values}]")
    return f"kql_series(struct_extract({call}, '{output.value}'))"


def _render_outliers(node: ir.FunctionCall) -> str:
    for index, name in ((3, "min_percentile"), (4, "max_percentile")):
        value = node.args[index] if len(node.args) > index else None
        number = value.value if isinstance(value, ir.Literal) else None
        if isinstance(number, int | float) and not _PERCENTILE_LIMITS[0] <= number <= _PERCENTILE_LIMITS[1]:
            raise semantic_error(f"series_outliers(): the argument {name} must be between 2.0 and 98.0")
    return _OUTLIERS_CALL.render_output(node.args, "scores")


SUPPORTED: tuple[str, ...] = (
    "series_decompose (approximate with a detected period)",
    "series_decompose_anomalies (approximate with a detected period)",
    "series_decompose_forecast (approximate with a detected period)",
    "series_seasonal (approximate with a detected period)",
    "series_periods_detect (approximate)",
    "series_periods_validate (approximate)",
    "series_outliers (approximate with other percentiles than 10 and 90)",
)

macros: tuple[str, ...] = ()


def install() -> None:
    """Add decomposition, detection of periods and scores of outliers to the KQL translator library."""
    for call in _MULTI_RESULT_CALLS:
        add_series_multi_result(call)
    _install_forecast()
    _install_validate()
    seasonal = (_SERIES, Argument("period", "int"), Argument("test_points", "int"))
    add_series_scalar(SeriesCall("series_seasonal", seasonal, 1, _SEASONAL), "seasonal")
    add_custom_function("series_outliers", range(1, 7), _render_outliers)
