"""Where values rank: in ``sort`` and ``top``, and in the aggregates that pick the largest or the smallest.

Kusto sorts a NaN before -inf and after null when it sorts up, the other way round when it sorts down ("sort operator"
of its documentation); to SQL a NaN is larger than everything. A dynamic cannot be sorted by.
"""

from collections.abc import Callable

from duckdb_kql import ir, translate
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.known_types import kind_of, may_be_nan
from emulators.kusto.extensions.library import replace, writer
from emulators.kusto.extensions.raising import DYNAMICS, guarded, is_of, raising
from emulators.kusto.extensions.registry import form
from emulators.kusto.extensions.sql import render

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


def _overloads(name: str, of_reals: str, of_others: str) -> str:
    """Return a macro that DuckDB picks the form of by the argument's type, which a translation does not know."""
    others = ", ".join(f"(a {kind}) AS {of_others}" for kind in _OTHERS)
    return f"CREATE OR REPLACE MACRO {name}(a DOUBLE) AS {of_reals}, {others}"


_NAN = raising("EMB0001", "{0} over a NaN is not supported by the embedded query engine")

macros: tuple[str, ...] = (
    # -inf moves up by one value to make room for NaN.
    _overloads("kql_ranked", f"CASE WHEN isnan(a) THEN {_LOWEST} WHEN a = {_LOWEST} THEN {_NEXT} ELSE a END", "a"),
    _overloads("kql_no_nan", f"CASE WHEN isnan(a) THEN {_NAN.format('a percentile or arg_min()')} ELSE a END", "a"),
    # To SQL a NaN is the largest: what is left out of the largest is in the smallest of the negated.
    _overloads("kql_max", "-min(-a)", "max(a)"),
    _overloads("kql_min", f"CASE WHEN isnan(max(a)) THEN {_NAN.format('min()')} ELSE min(a) END", "min(a)"),
)

_AGGREGATES = (
    ("max", "kql_max({0})", 1),
    ("min", "kql_min({0})", 1),
    ("maxif", "kql_max(CASE WHEN {1} THEN {0} END)", 2),
    ("minif", "kql_min(CASE WHEN {1} THEN {0} END)", 2),
)
_OF_ONE = frozenset({"kql_ranked", "kql_no_nan"})
_UNRANKED = frozenset({"real", None})


class RankingAggregate(AggregateSpec):
    """An aggregate that compares its first argument."""

    def render(self, args: list[str]) -> str:
        """Return the SQL over rendered arguments."""
        value = guarded(is_of(args[0], DYNAMICS), _unconverted(f"{self.name}()"), args[0])
        return super().render([value, *args[1:]])


def install() -> None:
    """Rank as Kusto does."""
    for name, sql, arity in _AGGREGATES:
        AGGREGATE_FUNCTIONS[name] = RankingAggregate(name, sql, (arity,))
    replace(translate, "render_sort_keys", lambda _: _sort_keys)
    replace(translate, "render_aggregate", _aggregate)
    form("max_of", range(2, 65), lambda call: _of(call, "greatest"))
    form("min_of", range(2, 65), lambda call: _of(call, "least"))


def ranked(sql: str) -> str:
    """Return a value, of whichever type, as one that SQL sorts where Kusto does."""
    return f"kql_ranked({sql})"


def ranked_by(expr: ir.Expr, name: str, macro: str = "kql_ranked") -> str:
    """Return the SQL of the expression that an aggregate compares by.

    Raises:
        QueryError: it is a dynamic.
    """
    kind = kind_of(expr)
    if kind == "dynamic":
        raise unsupported(f"{name}() over a dynamic value", "convert it first, as in todouble(...)")
    sql = render(expr)
    if kind not in _UNRANKED or (macro in _OF_ONE and not may_be_nan(expr)):
        return sql if macro in _OF_ONE else f"{macro.removeprefix('kql_')}({sql})"
    return f"{macro}({guarded(is_of(sql, DYNAMICS), _unconverted(f'{name}()'), sql)})"


def _unconverted(what: str) -> str:
    return raising(
        "EMB0001", f"'{what}' over a dynamic value is not supported by the embedded query engine (convert it first)"
    )


def _sort_keys(keys: tuple[ir.SortKey, ...]) -> str:
    return ", ".join(f"{sql} {direction}" for sql, direction in sort_keys(keys))


def sort_keys(keys: tuple[ir.SortKey, ...]) -> list[tuple[str, str]]:
    """Return the SQL of each key, which may fail and so stand in no window, and its direction.

    Raises:
        QueryError: a key is a dynamic.
    """
    return [(_key(key.expr), _direction(key)) for key in keys]


def _direction(key: ir.SortKey) -> str:
    first = key.ascending if key.nulls_first is None else key.nulls_first
    return f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if first else 'LAST'}"


def _key(expr: ir.Expr) -> str:
    kind = kind_of(expr)
    message = "order by: key can't be of dynamic type"
    if kind == "dynamic":
        raise semantic_error(message, inner="SEM0001")
    sql = render(expr)
    if kind not in _UNRANKED or not may_be_nan(expr) or isinstance(expr, ir.RenderedAggregate):
        return sql
    return ranked(guarded(is_of(sql, DYNAMICS), raising("SEM0001", message), sql))


def _aggregate(default: Callable[[ir.NamedExpr], str]) -> Callable[[ir.NamedExpr], str]:
    def render_aggregate(named: ir.NamedExpr) -> str:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in AGGREGATE_FUNCTIONS and call.args:
            name = call.name.lower()
            if name in {each for each, _, _ in _AGGREGATES} and kind_of(call.args[0]) == "dynamic":
                raise unsupported(f"{name}() over a dynamic value", "convert it first, as in todouble(...)")
        return default(named)

    return render_aggregate


def _of(call: ir.FunctionCall, function: str) -> str:
    """Write ``max_of`` and ``min_of``, which compare numbers, instants or timespans."""
    name = call.name.lower()
    for arg in call.args:
        if kind_of(arg) in ("dynamic", "string", "guid", "bool"):
            raise semantic_error(f"{name}(): function expects numbers, instants or timespans", inner="SEM0219")
    parts = [writer.render_arg(name, index, arg) for index, arg in enumerate(call.args)]
    tests = [is_of(part, ("JSON", "VARCHAR")) for part in parts]
    sql = f"{function}({', '.join(parts)})"
    failure = raising("SEM0219", f"{name}(): function expects numbers, instants or timespans")
    return guarded(" OR ".join(test for test in tests if test), failure, sql)
