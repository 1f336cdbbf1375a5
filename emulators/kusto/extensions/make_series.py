"""The ``make-series`` operator: aggregates along an axis, in arrays without gaps.

Documentation: "make-series operator" of the Kusto Query Language.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.parser import parse
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.make_series_sql import Axis, Series, series_sql
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.tabular import bound_value
from emulators.kusto.extensions.tree import children, find, position

SUPPORTED: tuple[str, ...] = (
    "make-series (from, to, step, by, default, kind=nonempty)",
    "make-series in range(start, stop, step)",
)
AGGREGATES = frozenset(
    {"avg", "count", "dcount", "max", "min", "stdev", "sum", "variance", "percentile", "take_any"}
    | {"avgif", "countif", "dcountif", "maxif", "minif", "stdevif", "sumif", "varianceif"}
)
"""What the documentation lists; others do not return numbers."""

macros: tuple[str, ...] = (
    """CREATE OR REPLACE MACRO kql_array(numbers) AS list_transform([numbers], lambda _l:
        CASE WHEN typeof(_l) IN ('DOUBLE[]', 'BIGINT[]', 'INTEGER[]', 'HUGEINT[]', 'FLOAT[]')
        OR typeof(_l) LIKE 'DECIMAL%' THEN kql_series(_l)
        ELSE error('make-series of values that are no numbers is not supported') END)[1]""",
    # Instants and timespans of a dynamic, from their microseconds, as texts.
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
    """One ``make-series``.

    Attributes:
        aggregates: what stands in the arrays.
        defaults: one for each aggregate: what stands where there is no row.
        axis: what the arrays run along.
        start: the first element, None for the first bin that has a row.
        stop: the end, None for the last bin that has a row.
        step: the distance between elements.
        by: one row of arrays for each combination of these.
        through: ``stop`` belongs to the axis, and bins are those of ``bin()``.
        nonempty: an empty input gives arrays of defaults.
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
        """Return the arrays as one SELECT."""
        names = self.columns(cols)
        keys, values = names[: len(self.by)], names[len(self.by) : -1]
        aggregated = [
            Series(name, translate.render_aggregate(aggregate), _default(default))
            for name, aggregate, default in zip(values, self.aggregates, self.defaults, strict=True)
        ]
        grouped = [(name, render(key.expr)) for name, key in zip(keys, self.by, strict=True)]
        return series_sql(prev, grouped, aggregated, self._axis(names[-1]), nonempty=self.nonempty)

    def columns(self, cols: list[str]) -> list[str]:
        """Return the keys, the arrays and the axis, named as ``summarize`` names."""
        named = [*self.by, *self.aggregates, self.axis]
        namer = naming.Namer(naming.declared([each for each in named if each.name], "make-series"), skip=cols)
        return [namer.name(each) for each in named]

    def substituted(self, substitute: Substitute) -> "MakeSeries":
        """Return the operator with its expressions replaced; the bounds of the axis can mean no column."""
        return dataclasses.replace(
            self,
            aggregates=_replaced(self.aggregates, substitute),
            defaults=tuple(bound_value(substitute(default)) for default in self.defaults),
            axis=_replaced((self.axis,), substitute)[0],
            start=None if self.start is None else bound_value(substitute(self.start)),
            stop=None if self.stop is None else bound_value(substitute(self.stop)),
            step=bound_value(substitute(self.step)),
            by=_replaced(self.by, substitute),
        )

    def _axis(self, name: str) -> Axis:
        bounds = [expr for expr in (self.start, self.stop, self.step) if expr is not None]
        if any(writer.referenced_columns(expr) for expr in bounds):
            raise unsupported("make-series bounds that read columns")
        start, stop = (None if expr is None else render(expr) for expr in (self.start, self.stop))
        temporal = any(writer.is_timespan_expr(expr) or writer.is_datetime_expr(expr) for expr in bounds)
        return Axis(
            name, render(self.axis.expr), start, stop, render(self.step), temporal=temporal, through=self.through
        )


def install() -> None:
    """Teach the translator the operator."""
    add_operator("MakeSeriesOperator", _make_series)


def _replaced(named: tuple[ir.NamedExpr, ...], substitute: Substitute) -> tuple[ir.NamedExpr, ...]:
    return tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in named)


def _default(expr: ir.Expr) -> str:
    """Return a default's SQL; a null of any type leaves the type to the aggregate."""
    return "NULL" if isinstance(expr, ir.Literal) and expr.value is None else render(expr)


def _make_series(node: Any) -> MakeSeries:
    parameters = [each for each in node.Parameters if _is_parameter(each)]
    swallowed = node.Parameters[len(parameters) :]
    written = enumerate(node.Aggregations)
    aggregates, defaults = zip(*(_aggregate(each, () if index else swallowed) for index, each in written), strict=True)
    between = node.InRangeClause or node.FromToStepClause
    by = [] if node.ByClause is None else children(node.ByClause)
    series = MakeSeries(
        aggregates,
        defaults,
        reader.lower_named(node.OnClause.Expression),
        _bound(between.FromExpression),
        _bound(between.ToExpression),
        reader.lower_expr(between.StepExpression),
        tuple(reader.lower_named(key) for key in by),
        through=node.InRangeClause is not None,
        nonempty=any(_is_nonempty(parameter) for parameter in parameters),
    )
    if series.nonempty and (series.by or series.start is None or series.stop is None):
        raise unsupported("make-series kind=nonempty with by, or without from and to", position=position(node))
    return series


def _bound(node: Any) -> ir.Expr | None:
    return None if node is None else reader.lower_expr(node)


def _aggregate(node: Any, swallowed: Sequence[Any]) -> tuple[ir.NamedExpr, ir.Expr]:
    last = node.Expression
    named: ir.NamedExpr = _reread(swallowed[0], last) if swallowed else reader.lower_named(last)
    call = named.expr
    if not isinstance(call, ir.FunctionCall) or call.name.lower() not in AGGREGATES:
        name = f"{call.name}()" if isinstance(call, ir.FunctionCall) else "an expression"
        raise unsupported(f"make-series of {name}", position=position(node))
    if node.Default is None:
        return named, ir.Literal(0, "long")
    return named, reader.lower_expr(children(node.Default)[-1])


def _reread(first: Any, last: Any) -> ir.NamedExpr:
    """Return ``name = f(x)``, which the grammar reads as the parameter ``name = f`` before ``(x)``."""
    text = first.start.getInputStream().getText(first.start.start, last.stop.stop)
    (written,) = find(parse(f"print {text}").tree, "PrintOperator")
    (named,) = children(written)
    lowered: ir.NamedExpr = reader.lower_named(named)
    return lowered


def _parameter(node: Any) -> tuple[str, str]:
    name, _, value = node.getText().partition("=")
    return name.strip().lower(), value.strip().lower()


def _is_parameter(node: Any) -> bool:
    name, _ = _parameter(node)
    return name == "kind" or name.startswith("hint.")


def _is_nonempty(parameter: Any) -> bool:
    name, value = _parameter(parameter)
    if name == "kind" and value != "nonempty":
        raise unsupported(f"make-series kind={value[:50]}", position=position(parameter))
    return name == "kind"
