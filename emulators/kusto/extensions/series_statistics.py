"""Series functions with several results: statistics, linear regression and decomposition.

``(a, b) = f(x)`` names the results in ``extend``, ``project`` and ``print``. Without names the columns are
``f_x_result``. ``extend`` adds only the named columns, ``project`` adds all.

The decomposition follows the documentation. The seasonal series is the median of the points of each phase. The trend is
computed from the rest, the baseline is the sum of both, and the residual is the difference to the baseline. Detection
of the period is not supported, nor are functions that need it or the undocumented scores of ``series_outliers``.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from duckdb_kql import ir, lower

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import replace
from emulators.kusto.extensions.names import MULTI_RESULT_FUNCTIONS
from emulators.kusto.extensions.registry import add_form, add_template
from emulators.kusto.extensions.sql import render

_FUNCTIONS: dict[str, "_MultiResultFunction"] = {}


@dataclasses.dataclass(frozen=True)
class SeriesOutput:
    """Output of a KQL function with several outputs, such as ``series_stats``.

    Attributes:
        name: name of the property in the bag of all outputs, and end of the column name.
        conversion: KQL function that converts the property to a scalar; empty if the output remains dynamic.
    """

    name: str
    conversion: str = ""


@dataclasses.dataclass(frozen=True)
class _MultiResultFunction:
    bag: str
    outputs: tuple[SeriesOutput, ...]
    arities: Collection[int]


@dataclasses.dataclass(frozen=True)
class SeriesOutputExpr(ir.NamedExpr):
    """Named output of a function call, with the call and, for the last named output, its index."""

    call: ir.FunctionCall | None = None
    bag: ir.FunctionCall | None = None
    last: int = -1


def add_multi_result_function(name: str, bag: str, outputs: Sequence[SeriesOutput], arities: Collection[int]) -> None:
    """Add a KQL function with several outputs.

    Args:
        name: name of the function in KQL.
        bag: KQL function that returns the same outputs as one property bag; it is computed once for all columns.
        outputs: outputs in order.
        arities: accepted numbers of arguments.
    """
    _FUNCTIONS[name] = _MultiResultFunction(bag, tuple(outputs), arities)
    MULTI_RESULT_FUNCTIONS[name] = lambda named: list(_name_results(named, named.names))


def _install_outputs() -> None:
    """Expand calls of functions with several outputs in ``extend``, ``project`` and ``print`` into several columns."""
    replace(lower, "_lower_operator", _wrap_lower_operator)
    replace(lower, "_lower_source", _wrap_lower_source)


def _wrap_lower_operator(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        op = default(node)
        if isinstance(op, ir.Extend | ir.Project):
            every = isinstance(op, ir.Project)
            return dataclasses.replace(op, expressions=tuple(_expand_calls(op.expressions, every=every)))
        return op

    return lower_operator


def _wrap_lower_source(default: Callable[[Any], ir.Source]) -> Callable[[Any], ir.Source]:
    def lower_source(node: Any) -> ir.Source:
        source = default(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(source, expressions=tuple(_expand_calls(source.expressions, every=True)))
        return source

    return lower_source


def _expand_calls(expressions: Sequence[ir.NamedExpr], *, every: bool) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in _FUNCTIONS:
            names = (named.name,) if named.name else ()
            yield from _add_unnamed_results(_name_results(named, names), every=every or not names, call=call)
        elif isinstance(named, SeriesOutputExpr):
            yield from _add_unnamed_results(iter([named]), every=every and named.last >= 0, call=named.call)
        else:
            yield named


def _add_unnamed_results(
    named: Iterator["SeriesOutputExpr"], *, every: bool, call: ir.FunctionCall | None
) -> Iterator[ir.NamedExpr]:
    bag, last = None, -1
    for each in named:
        bag, last = each.bag, each.last
        yield ir.NamedExpr(each.expr, each.name)
    if not every or call is None:
        return
    function = _FUNCTIONS[call.name.lower()]
    bag = bag or _to_bag_call(call, function)
    for output in function.outputs[last + 1 :]:
        yield ir.NamedExpr(_read_property(bag, output), f"{call.name}_{_find_argument_name(call)}_{output.name}")


def _find_argument_name(call: ir.FunctionCall) -> str:
    if call.args and isinstance(call.args[0], ir.ColumnRef):
        return call.args[0].name
    raise unsupported_error(f"{call.name}() without names for its columns", "write (a, b) = ..., or pass a column")


def _name_results(named: ir.NamedExpr, names: Sequence[str]) -> Iterator[SeriesOutputExpr]:
    """Yield one expression for each name, with an output of the call; the last one contains its index."""
    call = named.expr
    assert isinstance(call, ir.FunctionCall)  # noqa: S101  the callers check it
    function = _FUNCTIONS[call.name.lower()]
    if len(names) > len(function.outputs):
        raise unsupported_error(
            "a list of names on the left of =", f"{call.name}() has {len(function.outputs)} results"
        )
    bag = _to_bag_call(call, function)
    for index, (name, output) in enumerate(zip(names, function.outputs, strict=False)):
        last = index if index + 1 == len(names) else -1
        yield SeriesOutputExpr(_read_property(bag, output), name, call, bag, last)


def _to_bag_call(call: ir.FunctionCall, function: _MultiResultFunction) -> ir.FunctionCall:
    if len(call.args) not in function.arities:
        raise unsupported_error(f"{call.name}() with {len(call.args)} arguments")
    return ir.FunctionCall(function.bag, call.args)


def _read_property(bag: ir.FunctionCall, output: SeriesOutput) -> ir.Expr:
    """Return the expression of one output; all outputs share the node of the bag, so that it is computed once."""
    value = ir.PathAccess(bag, (ir.PathStep(output.name),))
    return ir.FunctionCall(output.conversion, (value,)) if output.conversion else value


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
    """Add ``series_stats`` and ``series_stats_dynamic`` to the translator library."""
    add_form("series_stats_dynamic", (1, 2), _build_flag_renderer("kql_series_stats"))
    add_multi_result_function("series_stats", "series_stats_dynamic", _STATS_OUTPUTS, (1, 2))


def _build_flag_renderer(macro: str) -> Callable[[ir.FunctionCall], str]:
    def render_call(call: ir.FunctionCall) -> str:
        series, *flag = (render(arg) for arg in call.args)
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
    """Add ``series_fit_line`` and ``series_fit_line_dynamic`` to the translator library."""
    add_template("series_fit_line_dynamic", "kql_series_fit_line({0})", 1)
    add_multi_result_function("series_fit_line", "series_fit_line_dynamic", _FIT_OUTPUTS, (1,))


_BAG = "series_decompose as a bag"
"""Name of an internal function; it contains spaces, so that no query can call it."""
_DECOMPOSE_OUTPUTS = (
    SeriesOutput("baseline"),
    SeriesOutput("seasonal"),
    SeriesOutput("trend"),
    SeriesOutput("residual"),
)
_TRENDS = ("avg", "linefit", "none")
_REASONS = {
    "series_outliers": "the scaling of its scores is not documented",
    "series_decompose_anomalies": "it scores with series_outliers()",
    "series_decompose_forecast": "it detects the period",
    "series_periods_detect": "its scores are not documented",
    "series_periods_validate": "its scores are not documented",
    "series_fit_2lines": "the position where it splits a series is not documented",
    "series_fit_2lines_dynamic": "the position where it splits a series is not documented",
    "series_fit_poly": "the emulator does not implement it",
    "series_seasonal": "it detects the period",
    "series_fft": "the emulator does not implement it",
    "series_ifft": "the emulator does not implement it",
}

_DECOMPOSE_MACROS: tuple[str, ...] = (
    # The median of each phase over the training points, repeated along the series.
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


def _install_decompose() -> None:
    """Add ``series_decompose`` to the translator library, and reject unsupported series functions with a reason."""
    add_form(_BAG, range(1, 6), _render_decompose)
    add_multi_result_function("series_decompose", _BAG, _DECOMPOSE_OUTPUTS, range(1, 6))
    for name, reason in _REASONS.items():
        add_form(name, range(65), _build_unsupported_form(name, reason))


def _render_decompose(call: ir.FunctionCall) -> str:
    arguments = [*call.args, *(ir.Literal(None, "null") for _ in range(5 - len(call.args)))]
    period, trend, tested = (_read_literal(arg) for arg in arguments[1:4])
    if not isinstance(period, int) or period < 0:
        raise unsupported_error(
            "series_decompose() with detected seasonality", "give the period as a number of bins, or 0 for none"
        )
    if trend not in (None, *_TRENDS):
        raise unsupported_error("series_decompose() with another trend", "use 'avg', 'linefit' or 'none'")
    if not isinstance(tested, int | None) or (tested or 0) < 0:
        raise unsupported_error("series_decompose() with test points that are not a literal integer of at least 0")
    return f"kql_series_decompose({render(call.args[0])}, {period}, '{trend or 'avg'}', {tested or 0})"


def _read_literal(arg: ir.Expr) -> object:
    """Return the value of a literal; other expressions are returned unchanged and fail the caller's validation."""
    return arg.value if isinstance(arg, ir.Literal) and not isinstance(arg.value, bool) else arg


def _build_unsupported_form(name: str, reason: str) -> Callable[[ir.FunctionCall], str]:
    def reject_call(_call: ir.FunctionCall) -> str:
        raise unsupported_error(f"{name}()", reason)

    return reject_call


SUPPORTED: tuple[str, ...] = (
    "series_stats",
    "series_stats_dynamic",
    "series_fit_line",
    "series_fit_line_dynamic",
    "series_decompose (seasonality 0, or the period's length)",
)

macros: tuple[str, ...] = (
    *_STATS_MACROS,
    *_FIT_MACROS,
    *_DECOMPOSE_MACROS,
)


def install() -> None:
    """Add the series functions with several outputs to the translator library."""
    _install_outputs()
    _install_stats()
    _install_fit()
    _install_decompose()
