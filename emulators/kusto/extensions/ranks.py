"""Kusto's sort order of null, NaN and numbers, for ``sort``, ``top``, and aggregates such as ``max`` and ``arg_max``.

In Kusto a sort places NaN next to null: NaN follows the nulls if nulls are first, and precedes the nulls if nulls are
last (see "sort operator" of Kusto's documentation). In SQL, NaN is larger than all other values. Dynamic (JSON) values
cannot be sort keys.

The aggregates ``arg_max`` and ``arg_min``, and the aggregates of percentiles, can return several columns; this module
determines the names and the SQL of these columns.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql._state import State
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.known_types import can_be_nan, infer_type
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.names import NameListExpr
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import Sql, render_expression
from emulators.kusto.extensions.tabular import TakeRows
from emulators.kusto.extensions.type_checks import DYNAMICS, add_type_guard, render_error, render_type_test

_LOWEST = "CAST('-Infinity' AS DOUBLE)"
_NEXT = "CAST(-1.7976931348623157e308 AS DOUBLE)"
_OTHERS = (
    "BIGINT",
    "INTEGER",
    "HUGEINT",
    "BOOLEAN",
    "TIMESTAMP",
    "INTERVAL",
    "UUID",
    "DECIMAL(38, 9)",
    "VARCHAR",
)


def _build_macro_overloaded_for_reals(macro_name: str, real_result: Sql, other_result: Sql) -> Sql:
    """Return SQL that creates an overloaded DuckDB macro: one overload for reals, one for all other types."""
    others = ", ".join(f"(a {kind}) AS {other_result}" for kind in _OTHERS)
    return f"CREATE OR REPLACE MACRO {macro_name}(a DOUBLE) AS {real_result}, {others}"


_NAN = render_error("EMB0001", "{0} over a NaN is not supported by the embedded query engine")

_AGGREGATES = (
    ("max", "kql_max({0})", 1),
    ("min", "kql_min({0})", 1),
    ("maxif", "kql_max(CASE WHEN {1} THEN {0} END)", 2),
    ("minif", "kql_min(CASE WHEN {1} THEN {0} END)", 2),
)
_OF_ONE = frozenset({"kql_ranked", "kql_no_nan"})
_UNRANKED = frozenset({"real", None})
_DYNAMIC_KEY = "order by: key can't be of dynamic type"
_TOP_BY_DYNAMIC = ("top by a dynamic value", "convert the key first, for instance with todouble(...)")
"""Construct and hint: the language service accepts such a key, and its order is not documented."""
_IS_TOP: State[bool] = State("emulators.kusto.top", lambda: False)
"""Whether the operator that is being rendered is ``top``."""


class RankingAggregate(AggregateSpec):
    """Aggregate that returns the largest or smallest value of its first argument; it rejects dynamic values."""

    def render(self, args: list[Sql]) -> Sql:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        value = add_type_guard(
            render_type_test(args[0], DYNAMICS), _render_dynamic_value_error(f"{self.name}()"), args[0]
        )
        return super().render([value, *args[1:]])


def render_number_sort_key(sql: Sql) -> Sql:
    """Return SQL that converts a number to a sort key; with this key, SQL sorts NaN as Kusto does."""
    return f"kql_ranked({sql})"


def render_aggregate_sort_key(expr: ir.Expr, aggregate_name: str, macro_name: str = "kql_ranked") -> Sql:
    """Return SQL for the value by which the aggregate ``aggregate_name``, such as ``arg_max``, compares rows.

    ``macro_name`` is the DuckDB macro that is applied to values that can be NaN.

    Raises:
        QueryError: the expression has the type dynamic.
    """
    kind = infer_type(expr)
    if kind == "dynamic":
        raise unsupported_error(
            f"{aggregate_name}() over a dynamic value", "convert the operand first, for instance with todouble(...)"
        )
    sql = render_expression(expr)
    if kind not in _UNRANKED or (macro_name in _OF_ONE and not can_be_nan(expr)):
        return sql if macro_name in _OF_ONE else f"{macro_name.removeprefix('kql_')}({sql})"
    failure = _render_dynamic_value_error(f"{aggregate_name}()")
    return f"{macro_name}({add_type_guard(render_type_test(sql, DYNAMICS), failure, sql)})"


def _render_dynamic_value_error(construct: str) -> Sql:
    return render_error(
        "EMB0001",
        f"'{construct}' over a dynamic value is not supported by the embedded query engine "
        "(convert the operand first, for instance with todouble(...))",
    )


def _patch_operators_to_recognize_top(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    """Patch the translator library to record whether the operator that it renders is ``top``, for error messages."""

    def render_operator(op: ir.Operator, input_sql: Sql, input_columns: list[str] | None = None) -> Sql:
        with _IS_TOP.bound(isinstance(op, ir.Top) or (isinstance(op, TakeRows) and bool(op.keys))):
            return library_function(op, input_sql, input_columns)

    return render_operator


def _render_sort_keys(keys: tuple[ir.SortKey, ...]) -> Sql:
    return ", ".join(f"{sql} {direction}" for sql, direction in render_sort_keys_and_directions(keys))


def render_sort_keys_and_directions(keys: tuple[ir.SortKey, ...]) -> list[tuple[Sql, Sql]]:
    """Return the SQL and the SQL sort direction (ASC or DESC, with NULLS) of each sort key.

    The SQL of a key can raise an error for a value, so it must not be part of a window clause.

    Raises:
        QueryError: a sort key has the type dynamic.
    """
    return [(_render_sort_key(key), _render_sort_direction(key)) for key in keys]


def _render_sort_direction(key: ir.SortKey) -> Sql:
    return f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if _has_nulls_first(key) else 'LAST'}"


def _has_nulls_first(key: ir.SortKey) -> bool:
    return key.ascending if key.nulls_first is None else key.nulls_first


def _render_sort_key(key: ir.SortKey) -> Sql:
    expr = key.expr
    kind = infer_type(expr)
    if kind == "dynamic":
        raise unsupported_error(*_TOP_BY_DYNAMIC) if _IS_TOP.get() else semantic_error(_DYNAMIC_KEY, inner="SEM0001")
    sql = render_expression(expr)
    if kind not in _UNRANKED or not can_be_nan(expr) or isinstance(expr, ir.RenderedAggregate):
        return sql
    failure = _render_dynamic_value_error("top") if _IS_TOP.get() else render_error("SEM0001", _DYNAMIC_KEY)
    guarded = add_type_guard(render_type_test(sql, DYNAMICS), failure, sql)
    # NaN, the largest value of SQL, is already next to the nulls in an ascending sort with the nulls last, and the
    # reverse.
    return render_number_sort_key(guarded) if _has_nulls_first(key) is key.ascending else guarded


def _patch_aggregates_to_reject_dynamic(
    library_function: Callable[[ir.NamedExpr], Sql],
) -> Callable[[ir.NamedExpr], Sql]:
    def render_aggregate(named: ir.NamedExpr) -> Sql:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in AGGREGATE_FUNCTIONS and call.args:
            name = call.name.lower()
            if name in {each for each, _, _ in _AGGREGATES} and infer_type(call.args[0]) == "dynamic":
                raise unsupported_error(
                    f"{name}() over a dynamic value", "convert the operand first, for instance with todouble(...)"
                )
        return library_function(named)

    return render_aggregate


def _render_max_of_or_min_of(call: ir.FunctionCall, sql_function: str) -> Sql:
    """Return SQL for ``max_of`` or ``min_of``, whose arguments must be numbers, datetimes or timespans."""
    name = call.name.lower()
    for arg in call.args:
        if infer_type(arg) in ("dynamic", "string", "guid", "bool"):
            raise semantic_error(f"{name}(): function expects numbers, datetimes or timespans", inner="SEM0219")
    parts = [writer.render_arg(name, index, arg) for index, arg in enumerate(call.args)]
    tests = [render_type_test(part, ("JSON", "VARCHAR")) for part in parts]
    sql = f"{sql_function}({', '.join(parts)})"
    failure = render_error("SEM0219", f"{name}(): function expects numbers, datetimes or timespans")
    return add_type_guard(" OR ".join(test for test in tests if test), failure, sql)


type ColumnsWithSql = list[tuple[str, Sql]]
"""Name and SQL of each column that an aggregate returns."""

_EXTREMES = {"arg_max": "max", "arg_min": "min", "argmax": "max", "argmin": "min"}
_SINGLE = {"percentile": 1, "percentilew": 2}
_SEVERAL = {"percentiles": 1, "percentilesw": 2}
_ARRAYS = {"percentiles_array": 1, "percentilesw_array": 2}
_MAX_PERCENTILES = 64

macros: tuple[str, ...] = (
    # NaN becomes -inf, and -inf becomes the smallest finite value.
    _build_macro_overloaded_for_reals(
        "kql_ranked", f"CASE WHEN isnan(a) THEN {_LOWEST} WHEN a = {_LOWEST} THEN {_NEXT} ELSE a END", "a"
    ),
    _build_macro_overloaded_for_reals(
        "kql_no_nan", f"CASE WHEN isnan(a) THEN {_NAN.format('a percentile or arg_min()')} ELSE a END", "a"
    ),
    # In SQL NaN is the largest value; the negated minimum of the negated values ignores it.
    _build_macro_overloaded_for_reals("kql_max", "-min(-a)", "max(a)"),
    _build_macro_overloaded_for_reals(
        "kql_min", f"CASE WHEN isnan(max(a)) THEN {_NAN.format('min()')} ELSE min(a) END", "min(a)"
    ),
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


def install_into_translator() -> None:
    """Make ``sort``, ``top`` and aggregates use Kusto's order of NaN and null; add the aggregates of this module."""
    for name, sql, arity in _AGGREGATES:
        AGGREGATE_FUNCTIONS[name] = RankingAggregate(name, sql, (arity,))
    replace_attribute(translate, "render_sort_keys", lambda _: _render_sort_keys)
    replace_attribute(translate, "render_operator", _patch_operators_to_recognize_top)
    replace_attribute(translate, "render_aggregate", _patch_aggregates_to_reject_dynamic)
    add_custom_function("max_of", range(2, 65), lambda call: _render_max_of_or_min_of(call, "greatest"))
    add_custom_function("min_of", range(2, 65), lambda call: _render_max_of_or_min_of(call, "least"))
    for name in (*_SINGLE, *_SEVERAL, *_ARRAYS, "arg_max", "arg_min"):
        AGGREGATE_FUNCTIONS[name] = AggregateSpec(name, "")
    replace_attribute(translate, "arg_max_names", lambda _: _find_column_names_of_multi_column_aggregate)
    replace_attribute(translate, "_render_arg_max", lambda _: _find_columns_of_multi_column_aggregate)
    replace_attribute(translate, "_render_aggregate_call", _patch_aggregate_calls_for_percentiles)
    replace_attribute(naming, "_aggregate_name", _patch_default_aggregate_names)


def _find_column_names_of_multi_column_aggregate(
    aggregate: ir.NamedExpr, key_columns: list[str], input_columns: list[str] | None
) -> list[str] | None:
    columns = _find_columns_of_multi_column_aggregate(aggregate, key_columns, input_columns)
    return None if columns is None else [name for name, _ in columns]


def _find_columns_of_multi_column_aggregate(
    aggregate: ir.NamedExpr, key_columns: list[str], input_columns: list[str] | None
) -> ColumnsWithSql | None:
    expr = aggregate.expr
    if not isinstance(expr, ir.FunctionCall):
        _reject_name_list(aggregate)
        return None
    name = expr.name.lower()
    if name in _EXTREMES:
        columns = _render_arg_max_or_arg_min(expr, _EXTREMES[name], key_columns, input_columns or [], aggregate)
    elif name in _SEVERAL:
        columns = _render_percentile_columns(expr, _SEVERAL[name])
    elif name == "take_any" and (len(expr.args) > 1 or isinstance(expr.args[0], ir.Wildcard)):
        columns = [
            (each, f"first({sql})")
            for each, sql in _render_returned_columns(expr.args, key_columns, input_columns or [], "any_arg", 0)
        ]
    else:
        _reject_name_list(aggregate)
        return None
    return _apply_assigned_column_names(aggregate, columns)


def _reject_name_list(aggregate: ir.NamedExpr) -> None:
    if isinstance(aggregate, NameListExpr) and len(aggregate.names) > 1:
        raise KqlUnsupportedError(
            "several column names for an aggregate", hint="this aggregate returns one column; assign one name"
        )


def _apply_assigned_column_names(aggregate: ir.NamedExpr, columns: ColumnsWithSql) -> ColumnsWithSql:
    names: Sequence[str] = (
        aggregate.names if isinstance(aggregate, NameListExpr) else ([aggregate.name] if aggregate.name else [])
    )
    if len(names) > len(columns):
        raise KqlUnsupportedError(
            "more column names than columns of the aggregate",
            hint=f"this aggregate returns {len(columns)} columns",
        )
    return [*((new, sql) for new, (_, sql) in zip(names, columns, strict=False)), *columns[len(names) :]]


def _render_arg_max_or_arg_min(
    expr: ir.FunctionCall, max_or_min: str, key_columns: list[str], input_columns: list[str], aggregate: ir.NamedExpr
) -> ColumnsWithSql:
    if not expr.args or isinstance(expr.args[0], ir.Wildcard):
        raise KqlUnsupportedError(
            f"aggregate:{expr.name}",
            hint=f"the first argument of {expr.name}() must be the expression to compare by, such as Timestamp, not *",
        )
    by, *rest = expr.args
    name = naming.expression_name(by)
    order = render_aggregate_sort_key(by, expr.name.lower(), "kql_ranked" if max_or_min == "max" else "kql_no_nan")
    others = _render_returned_columns(
        rest, [*key_columns, name] if name else key_columns, input_columns, f"{max_or_min}_{name or ''}_arg", 1
    )
    named = len(aggregate.names) if isinstance(aggregate, NameListExpr) else 0
    if name is None and named <= len(rest) and any(each.endswith(f"_arg{i + 1}") for i, (each, _) in enumerate(others)):
        hint = "assign a name to each column, for instance (a, b) = arg_max(x, y)"
        raise KqlUnsupportedError(f"aggregate:{expr.name}", hint=hint)
    # If all compared values are null, one row is chosen, and all columns must have the values of that row.
    columns = [
        (each, f"CASE WHEN count({order}) = 0 THEN first({sql}) ELSE arg_{max_or_min}_null({sql}, {order}) END")
        for each, sql in others
    ]
    return [(name or f"{max_or_min}_", render_aggregate_sort_key(by, expr.name.lower(), f"kql_{max_or_min}")), *columns]


def _render_returned_columns(
    args: Sequence[ir.Expr], taken_names: list[str], input_columns: list[str], unnamed_prefix: str, first_index: int
) -> ColumnsWithSql:
    """Return the output columns that an aggregate's arguments select, with their SQL; ``*`` adds all other columns.

    Args:
        args: arguments of the aggregate that select columns.
        taken_names: names of columns that ``*`` must not add.
        input_columns: names of the columns of the input.
        unnamed_prefix: prefix of the name for an argument without a default name, such as ``any_arg`` for ``any_arg0``.
        first_index: number after the prefix for the first argument; it increases by 1 for each argument.
    """
    star = any(isinstance(arg, ir.Wildcard) for arg in args)
    columns: ColumnsWithSql = []
    seen = set(taken_names) if star else set()
    for index, arg in enumerate(args, first_index):
        found = [ir.ColumnRef(name) for name in input_columns] if isinstance(arg, ir.Wildcard) else [arg]
        for each in found:
            name = naming.expression_name(each) or f"{unnamed_prefix}{index}"
            if isinstance(each, ir.ColumnRef) and name in seen:
                continue
            seen |= {name} if star else set()
            columns.append((name, render_expression(each)))
    return columns


def _render_percentile_columns(expr: ir.FunctionCall, first_percentile_index: int) -> ColumnsWithSql:
    values = _read_percentile_arguments(expr, first_percentile_index)
    prefix = f"percentile_{naming.expression_name(expr.args[0]) or ''}_"
    listed = _render_quantiles(expr, first_percentile_index, values)
    return [
        (f"{prefix}{format_percentile_suffix(value)}", f"{listed}[{index}]") for index, value in enumerate(values, 1)
    ]


def _read_percentile_arguments(expr: ir.FunctionCall, first_percentile_index: int) -> list[float]:
    values: list[Any] = []
    for arg in expr.args[first_percentile_index:]:
        if not isinstance(arg, ir.Literal) or arg.value is None:
            raise KqlUnsupportedError(f"aggregate:{expr.name}", hint="percentiles must be literals")
        found = json.loads(str(arg.value)) if arg.kind == "dynamic" else [arg.value]
        if not isinstance(found, list):
            raise KqlUnsupportedError(f"aggregate:{expr.name}", hint="a dynamic percentile must be an array")
        values += found
    if not 0 < len(values) <= _MAX_PERCENTILES or not all(_is_percentage(value) for value in values):
        raise KqlUnsupportedError(
            f"aggregate:{expr.name}", hint=f"1 to {_MAX_PERCENTILES} percentiles are required, each from 0 to 100"
        )
    return values


def _is_percentage(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100  # noqa: PLR2004


def _render_quantiles(expr: ir.FunctionCall, first_percentile_index: int, percentiles: Sequence[float]) -> Sql:
    value = render_aggregate_sort_key(expr.args[0], expr.name.lower(), "kql_no_nan")
    if infer_type(expr.args[0]) in ("int", None):
        value = f"kql_long({value})"
    if first_percentile_index == 1:
        return f"quantile_disc({value}, [{', '.join(str(each / 100) for each in percentiles)}])"
    weight = render_expression(expr.args[1])
    pairs = f"list({{'v': {value}, 'w': CAST({weight} AS BIGINT)}}) FILTER (WHERE {value} IS NOT NULL AND {weight} > 0)"
    return f"[{', '.join(f'kql_weighted({pairs}, {each})' for each in percentiles)}]"


def _patch_aggregate_calls_for_percentiles(
    library_function: Callable[[ir.FunctionCall], Sql],
) -> Callable[[ir.FunctionCall], Sql]:
    def render_aggregate_call(expr: ir.FunctionCall) -> Sql:
        name = expr.name.lower()
        first = _SINGLE.get(name) or _ARRAYS.get(name)
        if first is None or len(expr.args) <= first or any(map(writer.nested_aggregate, expr.args)):
            return library_function(expr)
        values = _read_percentile_arguments(expr, first)
        quantiles = _render_quantiles(expr, first, values)
        return f"kql_list({quantiles})" if name in _ARRAYS else f"{quantiles}[1]"

    return render_aggregate_call


def format_percentile_suffix(percentile: float) -> str:
    """Format a percentile as the end of a column name, for instance 99.9 as ``99_9``."""
    text = str(int(percentile)) if float(percentile).is_integer() else str(percentile)
    return re.sub(r"\W", "_", text)


def _patch_default_aggregate_names(library_function: Callable[..., str]) -> Callable[..., str | None]:
    """Patch the default column names of aggregates, such as ``percentile_a_99_9`` for ``percentile(a, 99.9)``."""

    def find_default_aggregate_name(spec: AggregateSpec, expr: ir.FunctionCall) -> str | None:
        if spec.name_is_argument and expr.args and naming.expression_name(expr.args[0]) is None:
            return "any_arg0" if spec.name == "take_any" else None
        argument = naming.expression_name(expr.args[0]) or "" if expr.args else ""
        if spec.name in _SINGLE and len(expr.args) == _SINGLE[spec.name] + 1:
            (percentile, *_) = _read_percentile_arguments(expr, _SINGLE[spec.name])
            return f"percentile_{argument}_{format_percentile_suffix(percentile)}"
        return f"percentiles_{argument}" if spec.name in _ARRAYS else library_function(spec, expr)

    return find_default_aggregate_name
