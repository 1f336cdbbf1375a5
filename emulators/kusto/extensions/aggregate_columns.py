"""KQL aggregates that return several columns, such as ``arg_max``: names and SQL of the columns."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.names import NameListExpr
from emulators.kusto.extensions.ranks import render_rank_key
from emulators.kusto.extensions.sql import render_expression

type Columns = list[tuple[str, str]]
"""Name and SQL of each column that an aggregate returns."""

_EXTREMES = {"arg_max": "max", "arg_min": "min", "argmax": "max", "argmin": "min"}
_SINGLE = {"percentile": 1, "percentilew": 2}
_SEVERAL = {"percentiles": 1, "percentilesw": 2}
_ARRAYS = {"percentiles_array": 1, "percentilesw_array": 2}
_MAX_PERCENTILES = 64

macros: tuple[str, ...] = (
    # A percentile of int is long.
    (
        "CREATE OR REPLACE MACRO kql_long(a INTEGER) AS CAST(a AS BIGINT), (a BIGINT) AS a, (a DOUBLE) AS a, "
        "(a HUGEINT) AS a, (a DECIMAL(38, 9)) AS a, (a TIMESTAMP) AS a, (a INTERVAL) AS a, (a VARCHAR) AS a, "
        "(a BOOLEAN) AS a, (a UUID) AS a"
    ),
    # The smallest value whose cumulated weight reaches the given share of the total weight.
    (
        "CREATE OR REPLACE MACRO kql_weighted(l, p) AS list_transform([struct_pack(s := list_sort(l), "
        "t := list_sum(list_transform(l, lambda _e: _e.w)) * p / 100.0)], lambda _o: list_reduce(_o.s, lambda _a, _e: "
        "CASE WHEN _a.w >= _o.t THEN _a ELSE struct_pack(v := _e.v, w := CAST(_a.w + _e.w AS BIGINT)) END).v)[1]"
    ),
)


def install() -> None:
    """Add percentiles and the aggregates that return several columns to the KQL translator library."""
    for name in (*_SINGLE, *_SEVERAL, *_ARRAYS, "arg_max", "arg_min"):
        AGGREGATE_FUNCTIONS[name] = AggregateSpec(name, "")
    replace_attribute(translate, "arg_max_names", lambda _: _build_column_names)
    replace_attribute(translate, "_render_arg_max", lambda _: _render_columns)
    replace_attribute(translate, "_render_aggregate_call", _patch_render_aggregate_call)
    replace_attribute(naming, "_aggregate_name", _patch_aggregate_name)


def _build_column_names(agg: ir.NamedExpr, keys: list[str], cols: list[str] | None) -> list[str] | None:
    columns = _render_columns(agg, keys, cols)
    return None if columns is None else [name for name, _ in columns]


def _render_columns(agg: ir.NamedExpr, keys: list[str], cols: list[str] | None) -> Columns | None:
    expr = agg.expr
    if not isinstance(expr, ir.FunctionCall):
        _reject_name_list(agg)
        return None
    name = expr.name.lower()
    if name in _EXTREMES:
        columns = _render_extreme(expr, _EXTREMES[name], keys, cols or [], agg)
    elif name in _SEVERAL:
        columns = _render_percentiles(expr, _SEVERAL[name])
    elif name == "take_any" and (len(expr.args) > 1 or isinstance(expr.args[0], ir.Wildcard)):
        columns = [
            (each, f"first({sql})") for each, sql in _find_returned_columns(expr.args, keys, cols or [], "any_arg", 0)
        ]
    else:
        _reject_name_list(agg)
        return None
    return _rename_columns(agg, columns)


def _reject_name_list(agg: ir.NamedExpr) -> None:
    if isinstance(agg, NameListExpr) and len(agg.names) > 1:
        raise KqlUnsupportedError(
            "several column names for an aggregate", hint="this aggregate returns one column; assign one name"
        )


def _rename_columns(agg: ir.NamedExpr, columns: Columns) -> Columns:
    names: Sequence[str] = agg.names if isinstance(agg, NameListExpr) else ([agg.name] if agg.name else [])
    if len(names) > len(columns):
        raise KqlUnsupportedError(
            "more column names than an aggregate has columns", hint=f"this aggregate returns {len(columns)} columns"
        )
    return [*((new, sql) for new, (_, sql) in zip(names, columns, strict=False)), *columns[len(names) :]]


def _render_extreme(
    expr: ir.FunctionCall, extreme: str, keys: list[str], cols: list[str], agg: ir.NamedExpr
) -> Columns:
    if not expr.args or isinstance(expr.args[0], ir.Wildcard):
        raise KqlUnsupportedError(
            f"aggregate:{expr.name}", hint=f"the first argument of {expr.name}() must be the expression to compare by"
        )
    by, *rest = expr.args
    name = naming.expression_name(by)
    order = render_rank_key(by, expr.name.lower(), "kql_ranked" if extreme == "max" else "kql_no_nan")
    others = _find_returned_columns(rest, [*keys, name] if name else keys, cols, f"{extreme}_{name or ''}_arg", 1)
    named = len(agg.names) if isinstance(agg, NameListExpr) else 0
    if name is None and named <= len(rest) and any(each.endswith(f"_arg{i + 1}") for i, (each, _) in enumerate(others)):
        raise KqlUnsupportedError(f"aggregate:{expr.name}", hint="name the columns: (a, b) = arg_max(x, y)")
    # If all compared values are null, one row is chosen, and all columns must have the values of that row.
    columns = [
        (each, f"CASE WHEN count({order}) = 0 THEN first({sql}) ELSE arg_{extreme}_null({sql}, {order}) END")
        for each, sql in others
    ]
    return [(name or f"{extreme}_", render_rank_key(by, expr.name.lower(), f"kql_{extreme}")), *columns]


def _find_returned_columns(
    args: Sequence[ir.Expr], taken: list[str], cols: list[str], unnamed: str, first: int
) -> Columns:
    """Find the output columns that an aggregate's arguments select, each with its SQL; ``*`` adds all others."""
    star = any(isinstance(arg, ir.Wildcard) for arg in args)
    columns: Columns = []
    seen = set(taken) if star else set()
    for index, arg in enumerate(args, first):
        found = [ir.ColumnRef(name) for name in cols] if isinstance(arg, ir.Wildcard) else [arg]
        for each in found:
            name = naming.expression_name(each) or f"{unnamed}{index}"
            if isinstance(each, ir.ColumnRef) and name in seen:
                continue
            seen |= {name} if star else set()
            columns.append((name, render_expression(each)))
    return columns


def _render_percentiles(expr: ir.FunctionCall, first: int) -> Columns:
    values = _read_percentiles(expr, first)
    prefix = f"percentile_{naming.expression_name(expr.args[0]) or ''}_"
    listed = _render_quantiles(expr, first, values)
    return [
        (f"{prefix}{format_percentile_suffix(value)}", f"{listed}[{index}]") for index, value in enumerate(values, 1)
    ]


def _read_percentiles(expr: ir.FunctionCall, first: int) -> list[float]:
    values: list[Any] = []
    for arg in expr.args[first:]:
        if not isinstance(arg, ir.Literal) or arg.value is None:
            raise KqlUnsupportedError(f"aggregate:{expr.name}", hint="percentiles must be literals")
        values += json.loads(str(arg.value)) if arg.kind == "dynamic" else [arg.value]
    if not 0 < len(values) <= _MAX_PERCENTILES or not all(_is_percentage(value) for value in values):
        raise KqlUnsupportedError(f"aggregate:{expr.name}", hint="percentiles must be numbers from 0 to 100")
    return values


def _is_percentage(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100  # noqa: PLR2004


def _render_quantiles(expr: ir.FunctionCall, first: int, values: Sequence[float]) -> str:
    value = render_rank_key(expr.args[0], expr.name.lower(), "kql_no_nan")
    if infer_type(expr.args[0]) in ("int", None):
        value = f"kql_long({value})"
    if first == 1:
        return f"quantile_disc({value}, [{', '.join(str(each / 100) for each in values)}])"
    weight = render_expression(expr.args[1])
    pairs = f"list({{'v': {value}, 'w': CAST({weight} AS BIGINT)}}) FILTER (WHERE {value} IS NOT NULL AND {weight} > 0)"
    return f"[{', '.join(f'kql_weighted({pairs}, {each})' for each in values)}]"


def _patch_render_aggregate_call(default: Callable[[ir.FunctionCall], str]) -> Callable[[ir.FunctionCall], str]:
    def render_call(expr: ir.FunctionCall) -> str:
        name = expr.name.lower()
        first = _SINGLE.get(name) or _ARRAYS.get(name)
        if first is None or len(expr.args) <= first or any(map(writer.nested_aggregate, expr.args)):
            return default(expr)
        values = _read_percentiles(expr, first)
        quantiles = _render_quantiles(expr, first, values)
        return f"kql_list({quantiles})" if name in _ARRAYS else f"{quantiles}[1]"

    return render_call


def format_percentile_suffix(value: float) -> str:
    """Format a percentile for the end of a column name: ``99_9`` for ``99.9``."""
    text = str(int(value)) if float(value).is_integer() else str(value)
    return re.sub(r"\W", "_", text)


def _patch_aggregate_name(default: Callable[..., str]) -> Callable[..., str | None]:
    def name_aggregate(spec: AggregateSpec, expr: ir.FunctionCall) -> str | None:
        if spec.name_is_argument and expr.args and naming.expression_name(expr.args[0]) is None:
            return "any_arg0" if spec.name == "take_any" else None
        argument = naming.expression_name(expr.args[0]) or "" if expr.args else ""
        if spec.name in _SINGLE and len(expr.args) == _SINGLE[spec.name] + 1:
            return f"percentile_{argument}_{format_percentile_suffix(_read_percentiles(expr, _SINGLE[spec.name])[0])}"
        return f"percentiles_{argument}" if spec.name in _ARRAYS else default(spec, expr)

    return name_aggregate
