"""Plugin ``new_activity_metrics``: how many of the new ids of a window occur in each later window."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import Substitute, get_known_tables, replace_in_query
from emulators.kusto.extensions.plugins import add_plugin, check_column
from emulators.kusto.extensions.sql import quote_name, render_expression
from emulators.kusto.extensions.timeline_plugins import TimelinePlugin
from emulators.kusto.extensions.tree import get_rule_name, get_source_position
from emulators.kusto.extensions.window_plan import find_free_prefix

SUPPORTED: tuple[str, ...] = ("evaluate new_activity_metrics (windows of a fixed size, and weeks)",)

macros: tuple[str, ...] = ()
_METRICS = ("dcount_new_values", "dcount_retained_values", "dcount_churn_values", "retention_rate", "churn_rate")
_REQUIRED = 5


@dataclasses.dataclass(frozen=True)
class NewActivityMetrics(TimelinePlugin):
    """Plugin ``new_activity_metrics``: how many of the new ids of a window occur in each later window.

    Attributes:
        optional: arguments after the window: a cohort, dimensions, and a table, in the order of the call.
        lookback: query that returns the ids of earlier periods; None without one.
        by_week: True if the windows are calendar weeks, which begin on Sunday.
    """

    optional: tuple[ir.Expr, ...] = ()
    lookback: ir.Query | None = None
    by_week: bool = False

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the plugin as SQL that yields a row for each pair of windows."""
        cohort, dimensions = self._sort_arguments(cols)
        plugin = dataclasses.replace(self, dimensions=dimensions)
        plugin.check_columns(cols)
        p = find_free_prefix([*cols, *self.infer_columns(cols)])
        since, end, size = plugin.render_constants()
        begin = render_expression(ir.FunctionCall("startofweek", self.constants[:1])) if self.by_week else since
        name, time = map(quote_name, self.columns)
        grouped = plugin.render_dimensions()
        events = (
            f"(SELECT DISTINCT {plugin.render_window(begin, size)} AS {p}w, {name} AS {p}i{grouped} FROM {prev} "  # noqa: S608
            f"WHERE {time} BETWEEN {since} AND {end})"
        )
        earlier = self._render_lookback()
        known = f"{p}i IN ({earlier})" if earlier else "false"
        first = (
            f"(SELECT *, CASE WHEN {known} THEN -1 ELSE min({p}w) OVER (PARTITION BY {p}i{grouped}) END AS {p}f "  # noqa: S608
            f"FROM {events})"
        )
        last = f"CAST(floor((kql_axis({end}) - kql_axis({begin})) / kql_axis({size})) AS BIGINT)"
        new = f"(SELECT {p}f AS {p}a, count(DISTINCT {p}i) AS {p}n{grouped} FROM {first} WHERE {p}f >= 0 GROUP BY ALL)"  # noqa: S608
        pairs = f"(SELECT *, unnest(generate_series({p}a, {last})) AS {p}b FROM {new})"  # noqa: S608
        same = "".join(f" AND c.{quote_name(each)} IS NOT DISTINCT FROM e.{quote_name(each)}" for each in dimensions)
        shown = "".join(f", c.{quote_name(each)}" for each in dimensions)
        counts = (
            f"count(e.{p}i) FILTER (WHERE e.{p}f > c.{p}a OR c.{p}a = c.{p}b AND e.{p}f = c.{p}a) AS {p}v, "
            f"count(e.{p}i) FILTER (WHERE e.{p}f = c.{p}a) AS {p}r"
        )
        joined = (
            f"(SELECT c.{p}a, c.{p}b, c.{p}n{shown}, {counts} FROM {pairs} AS c LEFT JOIN {first} AS e "  # noqa: S608
            f"ON e.{p}w = c.{p}b{same} GROUP BY ALL)"
        )
        values = [f"{begin} + {size} * {p}a", f"{begin} + {size} * {p}b", *map(quote_name, dimensions)]
        share = f"{{0}} / CAST({p}n AS DOUBLE)"
        values += [f"{p}v", f"{p}r", f"{p}n - {p}r", share.format(f"{p}r"), share.format(f"({p}n - {p}r)")]
        named = ", ".join(
            f"{value} AS {quote_name(each)}" for value, each in zip(values, self.infer_columns(cols), strict=True)
        )
        where = "" if cohort is None else f" WHERE {begin} + {size} * {p}a = {render_expression(cohort)}"
        return f"SELECT {named} FROM {joined}{where} ORDER BY {p}a, {p}b{grouped}"  # noqa: S608

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the names of the output columns: both ends of the period, dimensions and metrics."""
        _, dimensions = self._sort_arguments(cols)
        return [f"from_{self.columns[1]}", f"to_{self.columns[1]}", *dimensions, *_METRICS]

    def replace_expressions(self, substitute: Substitute) -> "NewActivityMetrics":
        """Return a copy in which the function ``substitute`` has replaced the constants."""
        lookback = None if self.lookback is None else replace_in_query(self.lookback, substitute)
        return dataclasses.replace(
            self,
            constants=tuple(map(substitute, self.constants)),
            optional=tuple(map(substitute, self.optional)),
            lookback=lookback,
        )

    def _sort_arguments(self, cols: Sequence[str]) -> tuple[ir.Expr | None, tuple[str, ...]]:
        """Split the last arguments of the plugin into the cohort (None if it is missing) and the dimensions."""
        cohort: ir.Expr | None = None
        dimensions = []
        for index, each in enumerate(self.optional):
            if isinstance(each, ir.ColumnRef | ir.LetRef) and each.name in cols:
                dimensions.append(each.name)
            elif index == 0 and not isinstance(each, ir.ColumnRef):
                cohort = each
            else:
                raise semantic_error(f"evaluate {self.plugin}(): a dimension must be a column", inner="SEM0219")
        return cohort, tuple(dimensions)

    def _render_lookback(self) -> str:
        if self.lookback is None:
            return ""
        known = get_known_tables()
        columns = schema.output_columns(self.lookback, known)
        check_column(self.columns[0], columns)
        return f"SELECT {quote_name(self.columns[0])} FROM ({translate.to_sql(self.lookback, known)})"  # noqa: S608


def _parse_metrics(node: Any, arguments: Sequence[Any], clause: Any) -> ir.Operator:
    plugin, position = "new_activity_metrics", get_source_position(node)
    if clause is not None:
        raise unsupported_error(f"evaluate {plugin} with an output schema", position=position)
    lookback = None
    if len(arguments) > _REQUIRED and get_rule_name(reader.unparenthesize(arguments[-1])) == "PipeExpression":
        lookback, arguments = reader.lower_query_node(arguments[-1]), arguments[:-1]
    lowered = [reader.lower_expr(each) for each in arguments]
    if len(lowered) < _REQUIRED or not all(isinstance(each, ir.ColumnRef) for each in lowered[:2]):
        fault = f"evaluate {plugin}() requires 2 columns and 3 constants"
        raise semantic_error(fault, inner="SEM0219", position=position)
    by_week = isinstance(lowered[4], ir.Literal) and lowered[4].value == "week"
    if by_week:
        lowered[4] = ir.Literal("7d", "timespan")
    elif isinstance(lowered[4], ir.Literal) and lowered[4].kind == "string":
        raise unsupported_error(f"evaluate {plugin} with windows of months or years", position=position)
    columns = tuple(each.name for each in lowered[:2])
    return NewActivityMetrics(plugin, columns, tuple(lowered[2:5]), (), tuple(lowered[5:]), lookback, by_week)


def _patch_resolve_in_subqueries(
    default: Callable[[ir.Query, set[str]], ir.Query],
) -> Callable[[ir.Query, set[str]], ir.Query]:
    return lambda query, names: _resolve_lookback(default(query, names), names)


def _resolve_lookback(query: ir.Query, names: set[str]) -> ir.Query:
    """Replace a last argument that is the name of a ``let`` statement with rows by a query."""
    operators: list[ir.Operator] = []
    for each in query.operators:
        last = each.optional[-1] if isinstance(each, NewActivityMetrics) and each.optional else None
        if isinstance(each, NewActivityMetrics) and isinstance(last, ir.ColumnRef) and last.name in names:
            lookback = ir.Query(ir.TableRef(last.name))
            operators.append(dataclasses.replace(each, optional=each.optional[:-1], lookback=lookback))
        else:
            operators.append(each)
    return dataclasses.replace(query, operators=operators)


def install() -> None:
    """Add the plugin to the operator ``evaluate``."""
    add_plugin("new_activity_metrics", _parse_metrics)
    replace_attribute(lower, "_resolve_in_subqueries", _patch_resolve_in_subqueries)
