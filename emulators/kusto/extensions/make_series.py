"""Query operator ``make-series``, which aggregates rows into one array per key, with an element for each axis step.

See "make-series operator" of the Kusto documentation.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.parser import parse
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.make_series_sql import AxisSql, SeriesSql, render_series
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.extensions.tabular import resolve_value
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_source_position

SUPPORTED: tuple[str, ...] = (
    "make-series (from, to, step, by, default, kind=nonempty)",
    "make-series in range(start, stop, step)",
)
AGGREGATES = frozenset(
    {"avg", "count", "dcount", "max", "min", "stdev", "sum", "variance", "percentile", "take_any"}
    | {"avgif", "countif", "dcountif", "maxif", "minif", "stdevif", "sumif", "varianceif"}
)
"""Aggregates that the documentation of ``make-series`` permits; other aggregates do not return numbers."""

macros: tuple[str, ...] = (
    """CREATE OR REPLACE MACRO kql_array(numbers) AS list_transform([numbers], lambda _l:
        CASE WHEN typeof(_l) IN ('DOUBLE[]', 'BIGINT[]', 'INTEGER[]', 'HUGEINT[]', 'FLOAT[]')
        OR typeof(_l) LIKE 'DECIMAL%' THEN kql_series(_l)
        ELSE error('make-series of values that are no numbers is not supported') END)[1]""",
    # Texts of instants and timespans inside a dynamic, from their microseconds.
    """CREATE OR REPLACE MACRO kql_instants(microseconds) AS to_json(list_transform(microseconds,
        lambda _m: strftime(make_timestamp(_m), '%Y-%m-%dT%H:%M:%S.%f0Z')))""",
    """CREATE OR REPLACE MACRO kql_spans(microseconds) AS to_json(list_transform(microseconds, lambda _m:
        concat(CASE WHEN _m < 0 THEN '-' ELSE '' END,
        CASE WHEN abs(_m) >= 86400000000 THEN concat(abs(_m) // 86400000000, '.') ELSE '' END,
        strftime(make_timestamp(abs(_m) % 86400000000), '%H:%M:%S'),
        CASE WHEN _m % 1000000 = 0 THEN '' ELSE strftime(make_timestamp(abs(_m) % 1000000), '.%f0') END)))""",
)


@dataclasses.dataclass(frozen=True)
class MakeSeries(PipelineOperator):
    """Query operator ``make-series``, which aggregates rows into one array per key.

    Attributes:
        aggregates: the aggregates whose values the arrays contain.
        defaults: for each aggregate, the value for bins (steps of the axis) without rows.
        axis: expression of the axis, usually a datetime column.
        start: start of the axis; None for the first bin with a row.
        stop: end of the axis; None for the last bin with a row.
        step: distance between two elements of the axis.
        by: key expressions; the result has one row of arrays for each combination of keys.
        through: True if the axis includes ``stop`` and its bins are those of ``bin()`` (clause ``in range()``).
        nonempty: True if an empty input yields arrays of default values (``kind=nonempty``).
    """

    aggregates: tuple[ir.NamedExpr, ...]
    defaults: tuple[ir.Expr, ...]
    axis: ir.NamedExpr
    start: ir.Expr | None
    stop: ir.Expr | None
    step: ir.Expr
    by: tuple[ir.NamedExpr, ...] = ()
    through: bool = False
    nonempty: bool = False

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields one row of arrays for each combination of keys."""
        names = self.infer_columns(cols)
        keys, values = names[: len(self.by)], names[len(self.by) : -1]
        aggregated = [
            SeriesSql(name, translate.render_aggregate(aggregate), _render_default(default))
            for name, aggregate, default in zip(values, self.aggregates, self.defaults, strict=True)
        ]
        grouped = [(name, render_expression(key.expr)) for name, key in zip(keys, self.by, strict=True)]
        return render_series(prev, grouped, aggregated, self._render_axis(names[-1]), nonempty=self.nonempty)

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the output columns: keys, arrays and axis; unnamed columns get the same names as in ``summarize``."""
        named = [*self.by, *self.aggregates, self.axis]
        namer = naming.Namer(naming.declared([each for each in named if each.name], "make-series"), skip=cols)
        return [namer.name(each) for each in named]

    def replace_expressions(self, substitute: Substitute) -> "MakeSeries":
        """Return a copy of the operator with ``substitute`` applied to all expressions, including the bounds."""
        return dataclasses.replace(
            self,
            aggregates=_replace_in_expressions(self.aggregates, substitute),
            defaults=tuple(resolve_value(substitute(default)) for default in self.defaults),
            axis=_replace_in_expressions((self.axis,), substitute)[0],
            start=None if self.start is None else resolve_value(substitute(self.start)),
            stop=None if self.stop is None else resolve_value(substitute(self.stop)),
            step=resolve_value(substitute(self.step)),
            by=_replace_in_expressions(self.by, substitute),
        )

    def _render_axis(self, name: str) -> AxisSql:
        bounds = [expr for expr in (self.start, self.stop, self.step) if expr is not None]
        if any(writer.referenced_columns(expr) for expr in bounds):
            raise unsupported_error("make-series with bounds that refer to columns")
        start, stop = (None if expr is None else render_expression(expr) for expr in (self.start, self.stop))
        temporal = any(writer.is_timespan_expr(expr) or writer.is_datetime_expr(expr) for expr in bounds)
        return AxisSql(
            name,
            render_expression(self.axis.expr),
            start,
            stop,
            render_expression(self.step),
            temporal=temporal,
            through=self.through,
        )


def install() -> None:
    """Add the operator ``make-series`` to the KQL translator library."""
    add_operator("MakeSeriesOperator", _parse_make_series)


def _replace_in_expressions(named: tuple[ir.NamedExpr, ...], substitute: Substitute) -> tuple[ir.NamedExpr, ...]:
    return tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in named)


def _render_default(expr: ir.Expr) -> str:
    """Return SQL for the value of bins (axis steps) without rows; null is converted to the type of the aggregate."""
    return "NULL" if isinstance(expr, ir.Literal) and expr.value is None else render_expression(expr)


def _parse_make_series(node: Any) -> MakeSeries:
    parameters = [each for each in node.Parameters if _is_operator_parameter(each)]
    misread = node.Parameters[len(parameters) :]
    written = enumerate(node.Aggregations)
    aggregates, defaults = zip(
        *(_parse_aggregate(each, () if index else misread) for index, each in written), strict=True
    )
    between = node.InRangeClause or node.FromToStepClause
    by = [] if node.ByClause is None else get_child_rules(node.ByClause)
    series = MakeSeries(
        aggregates,
        defaults,
        reader.lower_named(node.OnClause.Expression),
        _parse_bound(between.FromExpression),
        _parse_bound(between.ToExpression),
        reader.lower_expr(between.StepExpression),
        tuple(reader.lower_named(key) for key in by),
        through=node.InRangeClause is not None,
        nonempty=any(_is_nonempty(parameter) for parameter in parameters),
    )
    if series.nonempty and (series.by or series.start is None or series.stop is None):
        raise unsupported_error(
            "make-series kind=nonempty with `by`, or without `from` and `to`", position=get_source_position(node)
        )
    return series


def _parse_bound(node: Any) -> ir.Expr | None:
    return None if node is None else reader.lower_expr(node)


def _parse_aggregate(node: Any, misread: Sequence[Any]) -> tuple[ir.NamedExpr, ir.Expr]:
    last = node.Expression
    named: ir.NamedExpr = _parse_misread_aggregate(misread[0], last) if misread else reader.lower_named(last)
    call = named.expr
    if not isinstance(call, ir.FunctionCall) or call.name.lower() not in AGGREGATES:
        name = f"{call.name}()" if isinstance(call, ir.FunctionCall) else "an expression"
        raise unsupported_error(f"make-series of {name}", position=get_source_position(node))
    if node.Default is None:
        return named, ir.Literal(0, "long")
    return named, reader.lower_expr(get_child_rules(node.Default)[-1])


def _parse_misread_aggregate(first: Any, last: Any) -> ir.NamedExpr:
    """Parse ``name = f(x)`` again, which the grammar misreads as the parameter ``name = f`` followed by ``(x)``."""
    text = first.start.getInputStream().getText(first.start.start, last.stop.stop)
    (written,) = find_rules(parse(f"print {text}").tree, "PrintOperator")
    (named,) = get_child_rules(written)
    lowered: ir.NamedExpr = reader.lower_named(named)
    return lowered


def _read_parameter(node: Any) -> tuple[str, str]:
    name, _, value = node.getText().partition("=")
    return name.strip().lower(), value.strip().lower()


def _is_operator_parameter(node: Any) -> bool:
    name, _ = _read_parameter(node)
    return name == "kind" or name.startswith("hint.")


def _is_nonempty(parameter: Any) -> bool:
    name, value = _read_parameter(parameter)
    if name == "kind" and value != "nonempty":
        raise unsupported_error(f"make-series kind={value[:50]}", position=get_source_position(parameter))
    return name == "kind"
