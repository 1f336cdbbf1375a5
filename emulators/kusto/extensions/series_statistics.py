"""KQL functions over series that describe a series: statistics and linear regression."""

from collections.abc import Callable

from duckdb_kql import ir

from emulators.kusto.extensions.multi_results import (
    SeriesOutput,
    add_multi_result_function,
    install_multi_results,
    read_property,
)
from emulators.kusto.extensions.registry import add_custom_function, add_template_function
from emulators.kusto.extensions.sql import render_expression

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


def _install_stats() -> None:
    """Add ``series_stats`` and ``series_stats_dynamic`` to the KQL translator library."""
    add_custom_function("series_stats_dynamic", (1, 2), _build_flag_renderer("kql_series_stats"))
    add_multi_result_function("series_stats", _STATS_OUTPUTS, (1, 2), read_property("series_stats_dynamic"))


def _build_flag_renderer(macro: str) -> Callable[[ir.FunctionCall], str]:
    def render_call(call: ir.FunctionCall) -> str:
        series, *flag = (render_expression(arg) for arg in call.args)
        return f"{macro}({series}, {flag[0] if flag else 'FALSE'})"

    return render_call


_FIT_NAMES = ("rsquare", "slope", "variance", "rvariance", "interception")
_FIT_OUTPUTS = (*(SeriesOutput(name, "toreal") for name in _FIT_NAMES), SeriesOutput("line_fit"))

_FIT_MACROS: tuple[str, ...] = (
    # Parameters of the least-squares line through a list without nulls, over the positions 0, 1, 2 ...: a struct, or
    # null.
    """CREATE OR REPLACE MACRO kql_line(numbers) AS list_transform(list_transform(list_transform(
        [numbers], lambda _y: struct_pack(y := _y, n := len(_y), v := list_avg(_y), x := (len(_y) - 1) / 2.0)),
        lambda _m: struct_pack(m := _m, b := list_sum(list_transform(_m.y, lambda _e, _i:
            (_i - 1 - _m.x) * (_e - _m.v))) / (_m.n * (_m.n * _m.n - 1) / 12.0))),
        lambda _l: CASE WHEN _l.m.n > 1
            THEN struct_pack(slope := _l.b, interception := _l.m.v - _l.b * _l.m.x) END)[1]""",
    """CREATE OR REPLACE MACRO kql_series_fit_line(series) AS list_transform(list_transform(list_transform(
        [kql_numbers(series)], lambda _y: struct_pack(y := _y, l :=
            CASE WHEN len(list_filter(_y, lambda _e: isfinite(_e))) = len(_y) THEN kql_line(_y) END)),
        lambda _p: struct_pack(y := _p.y, l := _p.l,
            f := list_transform(_p.y, lambda _e, _i: _p.l.interception + _p.l.slope * (_i - 1)))),
        lambda _q: CASE WHEN _q.y IS NULL THEN NULL WHEN _q.l IS NULL THEN json_object('rsquare', NULL, 'slope', NULL,
            'variance', NULL, 'rvariance', NULL, 'interception', NULL, 'line_fit', NULL)
        ELSE list_transform([struct_pack(v := list_var_samp(_q.y), r := list_sum(list_transform(_q.y,
            lambda _e, _i: pow(_e - _q.f[_i], 2))) / (len(_q.y) - 1))], lambda _v: json_object(
            'rsquare', CASE WHEN _v.v > 0 THEN 1 - _v.r / _v.v END, 'slope', _q.l.slope, 'variance', _v.v,
            'rvariance', _v.r, 'interception', _q.l.interception, 'line_fit', kql_series(_q.f)))[1] END)[1]""",
)


def _install_fit() -> None:
    """Add ``series_fit_line`` and ``series_fit_line_dynamic`` to the KQL translator library."""
    add_template_function("series_fit_line_dynamic", "kql_series_fit_line({0})", 1)
    add_multi_result_function("series_fit_line", _FIT_OUTPUTS, (1,), read_property("series_fit_line_dynamic"))


SUPPORTED: tuple[str, ...] = (
    "series_stats",
    "series_stats_dynamic",
    "series_fit_line",
    "series_fit_line_dynamic",
)

macros: tuple[str, ...] = (
    *_STATS_MACROS,
    *_FIT_MACROS,
)


def install() -> None:
    """Add the series functions with several outputs to the KQL translator library."""
    install_multi_results()
    _install_stats()
    _install_fit()
