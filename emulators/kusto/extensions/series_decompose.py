"""Additive decomposition: ``series_decompose`` with a given period, or without seasonality.

In the documented order: the seasonal series is the median of the points of each phase; the trend comes out of what is
left; the baseline is both together and the residual is the rest. Detection of the period is not reproduced, nor are the
functions that build on it or on the undocumented scores of ``series_outliers``: they are refused by name.
"""

from collections.abc import Callable

from duckdb_kql import ir

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.registry import form
from emulators.kusto.extensions.series_outputs import Output, add_outputs
from emulators.kusto.extensions.sql import render

SUPPORTED: tuple[str, ...] = ("series_decompose (seasonality 0, or the period's length)",)

_BAG = "series_decompose as a bag"
"""Not a name that a query could call."""
_OUTPUTS = (Output("baseline"), Output("seasonal"), Output("trend"), Output("residual"))
_TRENDS = ("avg", "linefit", "none")
_REASONS = {
    "series_outliers": "how it scales its scores is not documented",
    "series_decompose_anomalies": "it scores with series_outliers()",
    "series_decompose_forecast": "it detects the period",
    "series_periods_detect": "its scores cannot be reproduced exactly",
    "series_periods_validate": "its scores cannot be reproduced exactly",
    "series_fit_2lines": "where it splits a series is not documented",
    "series_fit_2lines_dynamic": "where it splits a series is not documented",
    "series_fit_poly": "it is not reproduced",
    "series_seasonal": "it detects the period",
    "series_fft": "it is not reproduced",
    "series_ifft": "it is not reproduced",
}

macros: tuple[str, ...] = (
    # Phase by phase the median over the points to learn from, repeated along the series.
    """CREATE OR REPLACE MACRO kql_seasonal(numbers, learned, length) AS list_transform(list_transform(
        [struct_pack(x := numbers, m := learned, p := length)], lambda _a: struct_pack(x := _a.x, p := _a.p,
        s := list_transform(range(1, _a.p + 1), lambda _h: list_median(list_transform(
            range(_h, _a.m + 1, _a.p), lambda _j: _a.x[_j]))))),
        lambda _s: list_transform(_s.x, lambda _e, _i: CASE WHEN _s.p > 0 THEN _s.s[(_i - 1) % _s.p + 1] ELSE 0.0 END)
        )[1]""",
    """CREATE OR REPLACE MACRO kql_trend(numbers, learned, kind) AS list_transform(list_transform(
        [struct_pack(x := numbers, m := learned, k := kind)], lambda _a: struct_pack(x := _a.x, k := _a.k,
        v := list_avg(_a.x[1:_a.m]), l := CASE WHEN _a.k = 'linefit' THEN kql_line(_a.x[1:_a.m]) END)),
        lambda _t: list_transform(_t.x, lambda _e, _i: CASE _t.k WHEN 'avg' THEN _t.v
            WHEN 'linefit' THEN _t.l.interception + _t.l.slope * (_i - 1) ELSE 0.0 END))[1]""",
    """CREATE OR REPLACE MACRO kql_series_decompose(series, period, trending, tested) AS list_transform(list_transform(
        list_transform(list_transform([struct_pack(x := kql_numbers(series), p := period, k := trending, t := tested)],
        lambda _a: struct_pack(x := CASE WHEN list_count(_a.x) = len(_a.x) AND len(_a.x) > _a.t + _a.p THEN _a.x END,
            p := _a.p, k := _a.k, m := len(_a.x) - _a.t)),
        lambda _b: struct_pack(x := _b.x, k := _b.k, m := _b.m, s := kql_seasonal(_b.x, _b.m, _b.p))),
        lambda _c: struct_pack(x := _c.x, s := _c.s, t := kql_trend(
            list_transform(_c.x, lambda _e, _i: _e - _c.s[_i]), _c.m, _c.k))),
        lambda _d: json_object(
            'baseline', kql_series(list_transform(_d.x, lambda _e, _i: _d.s[_i] + _d.t[_i])),
            'seasonal', kql_series(_d.s), 'trend', kql_series(_d.t),
            'residual', kql_series(list_transform(_d.x, lambda _e, _i: _e - _d.s[_i] - _d.t[_i]))))[1]""",
)


def install() -> None:
    """Teach the translator the functions of this module, and to say what is missing of the others."""
    form(_BAG, range(1, 6), _decompose)
    add_outputs("series_decompose", _BAG, _OUTPUTS, range(1, 6))
    for name, reason in _REASONS.items():
        form(name, range(65), _refusal(name, reason))


def _decompose(call: ir.FunctionCall) -> str:
    given = [*call.args, *(ir.Literal(None, "null") for _ in range(5 - len(call.args)))]
    period, trend, tested = (_literal(arg) for arg in given[1:4])
    if not isinstance(period, int) or period < 0:
        raise unsupported(
            "series_decompose() with detected seasonality", "give the period as a number of bins, or 0 for none"
        )
    if trend not in (None, *_TRENDS):
        raise unsupported("series_decompose() with this trend", "it is 'avg', 'linefit' or 'none'")
    if not isinstance(tested, int | None) or (tested or 0) < 0:
        raise unsupported("series_decompose() with this number of test points")
    return f"kql_series_decompose({render(call.args[0])}, {period}, '{trend or 'avg'}', {tested or 0})"


def _literal(arg: ir.Expr) -> object:
    """Return the value of a literal, and something that fits nowhere for any other expression."""
    return arg.value if isinstance(arg, ir.Literal) and not isinstance(arg.value, bool) else arg


def _refusal(name: str, reason: str) -> Callable[[ir.FunctionCall], str]:
    def refuse(_call: ir.FunctionCall) -> str:
        raise unsupported(f"{name}()", reason)

    return refuse
