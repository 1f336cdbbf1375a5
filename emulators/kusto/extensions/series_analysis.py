"""KQL functions that analyse series: statistics, fits of lines, decomposition, periods, outliers, Fourier transform.

The documentation of Kusto specifies the arithmetic of the decomposition, but not the scores of periods. The functions
reproduce the documentation's examples of these scores. The module also has statistical functions of single numbers,
such as ``welch_test``.
"""

from collections.abc import Callable

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.multi_results import (
    SeriesOutput,
    add_multi_result_function,
    build_output_builder_for_bag_function,
    install_multi_result_functions,
)
from emulators.kusto.extensions.registry import add_custom_function, add_template_function
from emulators.kusto.extensions.series import (
    Argument,
    SeriesCall,
    add_series_function_with_one_output,
    add_series_function_with_output_columns,
    build_output_builder_for_internal_function,
)
from emulators.kusto.extensions.sql import Sql, render_expression
from emulators.kusto.series_functions import SeriesFunction

_STATS_OUTPUTS: tuple[SeriesOutput, ...] = (
    SeriesOutput("min", "toreal"),
    SeriesOutput("min_idx", "tolong"),
    SeriesOutput("max", "toreal"),
    SeriesOutput("max_idx", "tolong"),
    SeriesOutput("avg", "toreal"),
    SeriesOutput("stdev", "toreal"),
    SeriesOutput("variance", "toreal"),
)
_STATS_NAMES = ("min", "min_idx", "max", "max_idx", "avg", "stdev", "variance", "sum", "len")
_NOTHING = ", ".join(f"'{name}', NULL" for name in _STATS_NAMES[:-1])
# The standard deviation of a single number is 0, as for Kusto's stdev() and variance().
_FILLED = """'min', list_min(_x.f), 'min_idx', list_position(_x.x, list_min(_x.f)) - 1,
    'max', list_max(_x.f), 'max_idx', list_position(_x.x, list_max(_x.f)) - 1, 'avg', list_avg(_x.f),
    'stdev', coalesce(list_stddev_samp(_x.f), 0.0), 'variance', coalesce(list_var_samp(_x.f), 0.0),
    'sum', list_sum(_x.f)"""

_STATS_MACROS: tuple[str, ...] = (
    f"""CREATE OR REPLACE MACRO kql_series_stats(series, ignored) AS list_transform(list_transform(
        [struct_pack(x := kql_numbers(series), g := ignored)], lambda _n: struct_pack(x := _n.x, g := _n.g,
        f := list_filter(_n.x, lambda _e: isfinite(_e)))), lambda _x: CASE WHEN _x.x IS NULL THEN NULL
        WHEN len(_x.f) = 0 OR (NOT _x.g AND len(_x.f) < len(_x.x)) THEN json_object({_NOTHING}, 'len', len(_x.x))
        ELSE json_object({_FILLED}, 'len', len(_x.x)) END)[1]""",
)


def _install_series_stats() -> None:
    """Add ``series_stats`` and ``series_stats_dynamic`` to the KQL translator library."""
    add_custom_function("series_stats_dynamic", (1, 2), _build_macro_renderer_with_optional_flag("kql_series_stats"))
    add_multi_result_function(
        "series_stats", _STATS_OUTPUTS, (1, 2), build_output_builder_for_bag_function("series_stats_dynamic")
    )


def _build_macro_renderer_with_optional_flag(macro_name: str) -> Callable[[ir.FunctionCall], Sql]:
    """Return a function that renders a KQL call as a macro call with a series and a flag, which is false by default."""

    def render_call_sql(call: ir.FunctionCall) -> Sql:
        series, *flag = (render_expression(arg) for arg in call.args)
        return f"{macro_name}({series}, {flag[0] if flag else 'FALSE'})"

    return render_call_sql


_FIT_NAMES = ("rsquare", "slope", "variance", "rvariance", "interception", "line_fit")
_FIT_OUTPUTS = tuple(map(SeriesOutput, _FIT_NAMES))

_FIT_MACROS: tuple[str, ...] = (
    # Parameters of the least-squares line through a list without nulls, over the positions 0, 1, 2 ...: a struct, or
    # null.
    """CREATE OR REPLACE MACRO kql_line(numbers) AS list_transform(list_transform(list_transform(
        [numbers], lambda _y: struct_pack(y := _y, n := len(_y), v := list_avg(_y), x := (len(_y) - 1) / 2.0)),
        lambda _m: struct_pack(m := _m, b := list_sum(list_transform(_m.y, lambda _e, _i:
            (_i - 1 - _m.x) * (_e - _m.v))) / (_m.n * (_m.n * _m.n - 1) / 12.0))),
        lambda _l: CASE WHEN _l.m.n > 1
            THEN struct_pack(slope := _l.b, interception := _l.m.v - _l.b * _l.m.x) END)[1]""",
    # The line through a list of numbers: a struct with all outputs but the fitted values, and the number n of values;
    # null if the list is null, has less than two numbers or a number is missing.
    """CREATE OR REPLACE MACRO kql_line_fit(numbers) AS list_transform(list_transform(
        [numbers], lambda _y: struct_pack(y := _y, l :=
            CASE WHEN len(list_filter(_y, lambda _e: isfinite(_e))) = len(_y) THEN kql_line(_y) END)),
        lambda _q: CASE WHEN _q.l IS NOT NULL THEN list_transform([struct_pack(v := list_var_samp(_q.y),
            r := list_sum(list_transform(_q.y, lambda _e, _i:
                pow(_e - (_q.l.interception + _q.l.slope * (_i - 1)), 2))) / (len(_q.y) - 1))],
            lambda _v: struct_pack(rsquare := CASE WHEN _v.v > 0 THEN 1 - _v.r / _v.v END, slope := _q.l.slope,
            variance := _v.v, rvariance := _v.r, interception := _q.l.interception, n := len(_q.y)))[1] END)[1]""",
    """CREATE OR REPLACE MACRO kql_fitted_values(line) AS list_transform([line], lambda _o:
        list_transform(range(_o.n), lambda _i: _o.interception + _o.slope * _i))[1]""",
    """CREATE OR REPLACE MACRO kql_series_fit_line(series) AS list_transform(list_transform(
        [kql_numbers(series)], lambda _y: struct_pack(y := _y, o := kql_line_fit(_y))),
        lambda _f: CASE WHEN _f.y IS NOT NULL THEN json_object('rsquare', _f.o.rsquare, 'slope', _f.o.slope,
            'variance', _f.o.variance, 'rvariance', _f.o.rvariance, 'interception', _f.o.interception,
            'line_fit', kql_series(kql_fitted_values(_f.o))) END)[1]""",
)


def _install_line_fits() -> None:
    """Add ``series_fit_line`` and ``series_fit_line_dynamic`` to the KQL translator library."""
    add_template_function("series_fit_line_dynamic", "kql_series_fit_line({0})", 1)
    internal = "series_fit_line output"  # no query can call a function whose name contains a space
    add_custom_function(internal, (2,), _render_output_of_line_fit)
    add_multi_result_function(
        "series_fit_line", _FIT_OUTPUTS, (1,), build_output_builder_for_internal_function(internal)
    )


def _render_output_of_line_fit(call: ir.FunctionCall) -> Sql:
    series, output = call.args
    assert isinstance(output, ir.Literal)  # noqa: S101  the reader adds it
    line = f"kql_line_fit(kql_numbers({render_expression(series)}))"
    if output.value == "line_fit":
        return f"kql_series(kql_fitted_values({line}))"
    return f"struct_extract({line}, '{output.value}')"


SUPPORTED: tuple[str, ...] = (
    "series_stats",
    "series_stats_dynamic",
    "series_fit_line",
    "series_fit_line_dynamic",
    "series_decompose (approximate with a detected period)",
    "series_decompose_anomalies (approximate with a detected period)",
    "series_decompose_forecast (approximate with a detected period)",
    "series_seasonal (approximate with a detected period)",
    "series_periods_detect (approximate)",
    "series_periods_validate (approximate)",
    "series_outliers (approximate with other percentiles than 10 and 90)",
    "series_fit_2lines",
    "series_fit_2lines_dynamic",
    "series_fit_poly",
    "series_fft",
    "series_ifft",
    "beta_cdf",
    "beta_inv",
    "beta_pdf",
    "erf",
    "erfc",
    "welch_test",
)

macros: tuple[str, ...] = (
    *_STATS_MACROS,
    *_FIT_MACROS,
)

_MODULE = "emulators.kusto.series"
_TRENDS = ("avg", "linefit", "none")
_METHODS = ("ctukey", "tukey")
_MAX_VALIDATED = 16
"""Maximum number of periods that series_periods_validate() accepts."""

_DECOMPOSE = SeriesFunction(
    "series_decompose",
    ("DOUBLE[]", "BIGINT", "VARCHAR", "BIGINT", "DOUBLE"),
    dict.fromkeys(("baseline", "seasonal", "trend", "residual"), "series"),
    f"{_MODULE}.decomposition:decompose_series",
)
_ANOMALIES = SeriesFunction(
    "series_decompose_anomalies",
    ("DOUBLE[]", "DOUBLE", "BIGINT", "VARCHAR", "BIGINT", "VARCHAR", "DOUBLE"),
    {"ad_flag": "integers", "ad_score": "series", "baseline": "series"},
    f"{_MODULE}.decomposition:score_anomalies",
)
_SEASONAL = SeriesFunction(
    "series_seasonal",
    ("DOUBLE[]", "BIGINT", "BIGINT"),
    {"seasonal": "series"},
    f"{_MODULE}.decomposition:extract_seasonal_component",
)
_OUTLIERS = SeriesFunction(
    "series_outliers",
    ("DOUBLE[]", "VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE", "BIGINT"),
    {"scores": "series"},
    f"{_MODULE}.decomposition:score_outliers",
)
_DETECT = SeriesFunction(
    "series_periods_detect",
    ("DOUBLE[]", "DOUBLE", "DOUBLE", "BIGINT"),
    {"periods": "series", "scores": "series"},
    f"{_MODULE}.decomposition:detect_periods",
)
_VALIDATE = SeriesFunction(
    "series_periods_validate",
    ("DOUBLE[]", "DOUBLE[]"),
    {"periods": "series", "scores": "series"},
    f"{_MODULE}.decomposition:score_periods",
)

_SERIES = Argument("Series")
_SEASONALITY = Argument("Seasonality", "int")
_TREND = Argument("Trend", "string", _TRENDS)
_TEST_POINTS = Argument("Test_points", "int")
_SCORE_THRESHOLD = Argument("Seasonality_threshold", "real")

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


def _convert_forecast_to_decompose_arguments(values: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """Convert the arguments of ``series_decompose_forecast()`` to those of ``series_decompose()``."""
    null = ir.Literal(None, "null")
    series, points, *rest = values
    seasonality, trend, threshold = (rest[index] if index < len(rest) else null for index in range(3))
    return (series, seasonality, trend, points, threshold)


def _build_forecast_output_call(values: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
    return ir.FunctionCall(
        "series_decompose output",
        (*_convert_forecast_to_decompose_arguments(values), ir.Literal(output.name, "string")),
    )


def _install_series_forecast() -> None:
    arities = range(2, 6)
    add_custom_function(
        "series_decompose_forecast",
        arities,
        lambda node: _DECOMPOSE_CALL.render_output(_convert_forecast_to_decompose_arguments(node.args), "baseline"),
    )
    outputs = [SeriesOutput(name) for name in _DECOMPOSE.outputs]
    add_multi_result_function("series_decompose_forecast", outputs, arities, _build_forecast_output_call)


def _install_series_periods_validate() -> None:
    outputs = [SeriesOutput(name) for name in _VALIDATE.outputs]
    arities = range(2, _MAX_VALIDATED + 2)
    add_custom_function("series_periods_validate output", range(3, _MAX_VALIDATED + 3), _render_series_periods_validate)

    def build_output_expression(values: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
        return ir.FunctionCall("series_periods_validate output", (*values, ir.Literal(output.name, "string")))

    add_multi_result_function("series_periods_validate", outputs, arities, build_output_expression)


def _render_series_periods_validate(node: ir.FunctionCall) -> Sql:
    series, *periods, output = node.args
    assert isinstance(output, ir.Literal)  # noqa: S101  the reader adds it
    values = ", ".join(f"CAST({render_expression(each)} AS DOUBLE)" for each in periods)
    call = _VALIDATE.render_call_sql(f"kql_numbers({render_expression(series)})", f"[{values}]")
    return f"kql_series(struct_extract({call}, '{output.value}'))"


def _render_series_outliers(node: ir.FunctionCall) -> Sql:
    for index, name in ((3, "min_percentile"), (4, "max_percentile")):
        value = node.args[index] if len(node.args) > index else None
        number = value.value if isinstance(value, ir.Literal) else None
        if isinstance(number, int | float) and not _PERCENTILE_LIMITS[0] <= number <= _PERCENTILE_LIMITS[1]:
            raise semantic_error(f"series_outliers(): the argument {name} must be between 2.0 and 98.0")
    return _OUTLIERS_CALL.render_output(node.args, "scores")


_SIDE = ("rsquare", "slope", "interception", "variance", "rvariance")
_TWO_LINES = SeriesFunction(
    "series_fit_2lines",
    ("DOUBLE[]",),
    {
        "rsquare": "real",
        "split_idx": "long",
        "variance": "real",
        "rvariance": "real",
        "line_fit": "series",
        **{f"{side}_{name}": "real" for side in ("right", "left") for name in _SIDE},
    },
    f"{_MODULE}.regression:fit_two_lines",
)
_POLYNOMIAL = SeriesFunction(
    "series_fit_poly",
    ("DOUBLE[]", "DOUBLE[]", "BIGINT"),
    {"rsquare": "real", "coefficients": "series", "variance": "real", "rvariance": "real", "poly_fit": "series"},
    f"{_MODULE}.regression:fit_polynomial",
)
_PARTS = {"real": "series", "imag": "series"}
_FFT = SeriesFunction("series_fft", ("DOUBLE[]", "DOUBLE[]"), _PARTS, f"{_MODULE}.fourier:compute_fourier_transform")
_IFFT = SeriesFunction(
    "series_ifft", ("DOUBLE[]", "DOUBLE[]"), _PARTS, f"{_MODULE}.fourier:compute_inverse_fourier_transform"
)

_TWO_LINES_CALL = SeriesCall("series_fit_2lines", (Argument("series"),), 1, _TWO_LINES)
_POLYNOMIAL_CALL = SeriesCall(
    "series_fit_poly",
    (Argument("y_series"), Argument("x_series"), Argument("degree", "int")),
    1,
    _POLYNOMIAL,
)


def _render_two_line_fit_as_json(node: ir.FunctionCall) -> Sql:
    """Return SQL for all outputs of ``series_fit_2lines()`` as one JSON object, with one object for each line."""
    sides = ", ".join(
        f"'{side}', json_object(" + ", ".join(f"'{name}', _f.{side}_{name}" for name in _SIDE) + ")"
        for side in ("right", "left")
    )
    whole = ", ".join(f"'{name}', _f.{name}" for name in ("rsquare", "split_idx", "variance", "rvariance"))
    return (
        f"list_transform([{_TWO_LINES_CALL.render(node.args)}], lambda _f: CASE WHEN _f IS NOT NULL THEN "
        f"json_object({whole}, 'line_fit', kql_series(_f.line_fit), {sides}) END)[1]"
    )


_STATISTICS_MODULE = "emulators.kusto.series.significance"
_VALUE = {"value": "real"}
_ERF = SeriesFunction("erf", ("DOUBLE",), _VALUE, f"{_STATISTICS_MODULE}:compute_erf")
_ERFC = SeriesFunction("erfc", ("DOUBLE",), _VALUE, f"{_STATISTICS_MODULE}:compute_erfc")
_WELCH = SeriesFunction("welch_test", ("DOUBLE",) * 6, _VALUE, f"{_STATISTICS_MODULE}:compute_welch_test")
_WELCH_ARGUMENTS = ("mean1", "variance1", "count1", "mean2", "variance2", "count2")

_BETAS: tuple[tuple[SeriesFunction, str], ...] = tuple(
    (SeriesFunction(name, ("DOUBLE",) * 3, _VALUE, f"{_STATISTICS_MODULE}:compute_{name}"), first)
    for name, first in (("beta_cdf", "x"), ("beta_inv", "probability"), ("beta_pdf", "x"))
)

series_functions: tuple[SeriesFunction, ...] = (
    _DECOMPOSE,
    _ANOMALIES,
    _SEASONAL,
    _OUTLIERS,
    _DETECT,
    _VALIDATE,
    _TWO_LINES,
    _POLYNOMIAL,
    _FFT,
    _IFFT,
    _ERF,
    _ERFC,
    _WELCH,
    *(function for function, _ in _BETAS),
)


def install_into_translator() -> None:
    """Add the functions that analyse series to the KQL translator library."""
    install_multi_result_functions()
    _install_series_stats()
    _install_line_fits()
    for call in _MULTI_RESULT_CALLS:
        add_series_function_with_output_columns(call)
    _install_series_forecast()
    _install_series_periods_validate()
    seasonal = (_SERIES, Argument("period", "int"), Argument("test_points", "int"))
    add_series_function_with_one_output(SeriesCall("series_seasonal", seasonal, 1, _SEASONAL), "seasonal")
    add_custom_function("series_outliers", range(1, 7), _render_series_outliers)
    add_series_function_with_output_columns(_TWO_LINES_CALL)
    add_series_function_with_output_columns(_POLYNOMIAL_CALL)
    for function in (_FFT, _IFFT):
        parts = (Argument("x_real"), Argument("x_imaginary"))
        add_series_function_with_output_columns(SeriesCall(function.name, parts, 1, function))
    add_custom_function("series_fit_2lines_dynamic", (1,), _render_two_line_fit_as_json)
    for function in (_ERF, _ERFC):
        add_series_function_with_one_output(SeriesCall(function.name, (Argument("x", "real"),), 1, function), "value")
    arguments = tuple(Argument(name, "real") for name in _WELCH_ARGUMENTS)
    add_series_function_with_one_output(SeriesCall("welch_test", arguments, len(arguments), _WELCH), "value")
    for beta, first in _BETAS:
        named = tuple(Argument(name, "real") for name in (first, "alpha", "beta"))
        add_series_function_with_one_output(SeriesCall(beta.name, named, len(named), beta), "value")
