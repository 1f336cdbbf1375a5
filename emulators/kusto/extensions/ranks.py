"""Kusto's sort order of null, NaN and numbers, for ``sort``, ``top``, and aggregates such as ``max`` and ``arg_min``.

In Kusto a sort places NaN next to null: after the nulls if they are first, before them if they are last (see "sort
operator" of Kusto's documentation). In SQL, NaN is larger than all other values. Dynamic (JSON) values cannot be sort
keys.
"""

from collections.abc import Callable

from duckdb_kql import ir, translate
from duckdb_kql._state import State
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.known_types import can_be_nan, infer_type
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.extensions.tabular import TakeRows
from emulators.kusto.extensions.type_guards import DYNAMICS, add_guard, render_error, render_type_test

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


def _build_overloaded_macro(name: str, of_reals: str, of_others: str) -> str:
    """Return SQL that creates an overloaded DuckDB macro: one overload for reals, one for all other types."""
    others = ", ".join(f"(a {kind}) AS {of_others}" for kind in _OTHERS)
    return f"CREATE OR REPLACE MACRO {name}(a DOUBLE) AS {of_reals}, {others}"


_NAN = render_error("EMB0001", "{0} over a NaN is not supported by the embedded query engine")

macros: tuple[str, ...] = (
    # NaN becomes -inf, and -inf becomes the smallest finite value.
    _build_overloaded_macro(
        "kql_ranked", f"CASE WHEN isnan(a) THEN {_LOWEST} WHEN a = {_LOWEST} THEN {_NEXT} ELSE a END", "a"
    ),
    _build_overloaded_macro(
        "kql_no_nan", f"CASE WHEN isnan(a) THEN {_NAN.format('a percentile or arg_min()')} ELSE a END", "a"
    ),
    # In SQL NaN is the largest value; the negated minimum of the negated values ignores it.
    _build_overloaded_macro("kql_max", "-min(-a)", "max(a)"),
    _build_overloaded_macro(
        "kql_min", f"CASE WHEN isnan(max(a)) THEN {_NAN.format('min()')} ELSE min(a) END", "min(a)"
    ),
)

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

    def render(self, args: list[str]) -> str:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        value = add_guard(render_type_test(args[0], DYNAMICS), _render_unconverted_error(f"{self.name}()"), args[0])
        return super().render([value, *args[1:]])


def install() -> None:
    """Make ``sort``, ``top`` and aggregates use Kusto's order of NaN and null; add ``max_of`` and ``min_of``."""
    for name, sql, arity in _AGGREGATES:
        AGGREGATE_FUNCTIONS[name] = RankingAggregate(name, sql, (arity,))
    replace_attribute(translate, "render_sort_keys", lambda _: _render_sort_keys)
    replace_attribute(translate, "render_operator", _patch_render_operator)
    replace_attribute(translate, "render_aggregate", _patch_render_aggregate)
    add_custom_function("max_of", range(2, 65), lambda call: _render_extreme_of(call, "greatest"))
    add_custom_function("min_of", range(2, 65), lambda call: _render_extreme_of(call, "least"))


def render_ranked_value(sql: str) -> str:
    """Return SQL that converts a number to a sort key, by which SQL sorts as Kusto does."""
    return f"kql_ranked({sql})"


def render_rank_key(expr: ir.Expr, name: str, macro: str = "kql_ranked") -> str:
    """Return SQL for the value by which the aggregate ``name``, such as ``arg_max``, compares rows.

    Raises:
        QueryError: the expression has the type dynamic.
    """
    kind = infer_type(expr)
    if kind == "dynamic":
        raise unsupported_error(
            f"{name}() over a dynamic value", "convert the operand first, for instance with todouble(...)"
        )
    sql = render_expression(expr)
    if kind not in _UNRANKED or (macro in _OF_ONE and not can_be_nan(expr)):
        return sql if macro in _OF_ONE else f"{macro.removeprefix('kql_')}({sql})"
    return f"{macro}({add_guard(render_type_test(sql, DYNAMICS), _render_unconverted_error(f'{name}()'), sql)})"


def _render_unconverted_error(what: str) -> str:
    return render_error(
        "EMB0001",
        f"'{what}' over a dynamic value is not supported by the embedded query engine "
        "(convert the operand first, for instance with todouble(...))",
    )


def _patch_render_operator(default: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
        with _IS_TOP.bound(isinstance(op, ir.Top) or (isinstance(op, TakeRows) and bool(op.keys))):
            return default(op, prev, cols)

    return render_operator


def _render_sort_keys(keys: tuple[ir.SortKey, ...]) -> str:
    return ", ".join(f"{sql} {direction}" for sql, direction in render_sort_key_parts(keys))


def render_sort_key_parts(keys: tuple[ir.SortKey, ...]) -> list[tuple[str, str]]:
    """Return the SQL and the SQL sort direction (ASC or DESC, with NULLS) of each sort key.

    The SQL of a key may raise an error for a value, so it must not be part of a window clause.

    Raises:
        QueryError: a sort key has the type dynamic.
    """
    return [(_render_sort_key(key), _render_direction(key)) for key in keys]


def _render_direction(key: ir.SortKey) -> str:
    return f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if _are_nulls_first(key) else 'LAST'}"


def _are_nulls_first(key: ir.SortKey) -> bool:
    return key.ascending if key.nulls_first is None else key.nulls_first


def _render_sort_key(key: ir.SortKey) -> str:
    expr = key.expr
    kind = infer_type(expr)
    if kind == "dynamic":
        raise unsupported_error(*_TOP_BY_DYNAMIC) if _IS_TOP.get() else semantic_error(_DYNAMIC_KEY, inner="SEM0001")
    sql = render_expression(expr)
    if kind not in _UNRANKED or not can_be_nan(expr) or isinstance(expr, ir.RenderedAggregate):
        return sql
    failure = _render_unconverted_error("top") if _IS_TOP.get() else render_error("SEM0001", _DYNAMIC_KEY)
    guarded = add_guard(render_type_test(sql, DYNAMICS), failure, sql)
    # NaN, the largest value of SQL, is already next to the nulls in an ascending sort with the nulls last, and the
    # reverse.
    return render_ranked_value(guarded) if _are_nulls_first(key) is key.ascending else guarded


def _patch_render_aggregate(default: Callable[[ir.NamedExpr], str]) -> Callable[[ir.NamedExpr], str]:
    def render_aggregate(named: ir.NamedExpr) -> str:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in AGGREGATE_FUNCTIONS and call.args:
            name = call.name.lower()
            if name in {each for each, _, _ in _AGGREGATES} and infer_type(call.args[0]) == "dynamic":
                raise unsupported_error(
                    f"{name}() over a dynamic value", "convert the operand first, for instance with todouble(...)"
                )
        return default(named)

    return render_aggregate


def _render_extreme_of(call: ir.FunctionCall, function: str) -> str:
    """Return SQL for ``max_of`` or ``min_of``, whose arguments must be numbers, datetimes or timespans."""
    name = call.name.lower()
    for arg in call.args:
        if infer_type(arg) in ("dynamic", "string", "guid", "bool"):
            raise semantic_error(f"{name}(): function expects numbers, instants or timespans", inner="SEM0219")
    parts = [writer.render_arg(name, index, arg) for index, arg in enumerate(call.args)]
    tests = [render_type_test(part, ("JSON", "VARCHAR")) for part in parts]
    sql = f"{function}({', '.join(parts)})"
    failure = render_error("SEM0219", f"{name}(): function expects numbers, instants or timespans")
    return add_guard(" OR ".join(test for test in tests if test), failure, sql)
