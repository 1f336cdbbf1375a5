"""Query operator ``make-series``, which aggregates rows into one array per key, with an element for each axis step.

See "make-series operator" of the Kusto documentation. The SQL groups rows into numbered bins (steps of the axis), adds
missing bins, and builds the arrays. An axis of datetimes or timespans is computed in microseconds, any other axis in
its own unit.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duckdb_kql import ir, translate
from duckdb_kql.parser import parse
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import ExpressionReplacer, PipelineOperator, add_operator
from emulators.kusto.extensions.sql import Sql, quote_name, render_expression
from emulators.kusto.extensions.tabular import resolve_let_value
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, list_nodes_by_rule

MAX_ELEMENTS = 1_048_576
"""Maximum length of an array, as documented for ``make-series``."""
_MICROSECONDS_BEFORE_1970 = 62_135_596_800_000_000
"""Microseconds from 0001-01-01 to 1970-01-01; without ``from``, the bins of datetimes begin at 0001-01-01."""


class KeySql(NamedTuple):
    """Key of a ``make-series``: column name and SQL."""

    name: str
    sql: Sql


@dataclass(frozen=True, slots=True)
class SeriesSql:
    """Array column of a ``make-series``: name, SQL of the aggregate, and SQL of the value for bins without rows."""

    name: str
    aggregate: str
    default: str


@dataclass(frozen=True, slots=True)
class AxisSql:
    """Axis of a ``make-series``; all expressions are SQL.

    Attributes:
        name: name of the axis column.
        value: position of a row on the axis.
        start: start of the axis; None if each array starts at its first bin with a row.
        stop: end of the axis; None if each array ends at its last bin with a row.
        step: distance between two elements of the axis.
        temporal: True if the axis consists of datetimes or timespans.
        through: True if the axis includes its end ``stop``.
    """

    name: str
    value: str
    start: str | None
    stop: str | None
    step: str
    temporal: bool
    through: bool

    def render_as_number(self, sql: Sql) -> Sql:
        """Return SQL that converts a position on the axis to a number, which can be divided by the step."""
        return f"epoch_us({sql})" if self.temporal else f"({sql})"

    def render_first_bin_start(self, axis_type: Sql) -> Sql:
        """Return SQL for the start of bin 0; ``axis_type`` is SQL for the name of the axis's DuckDB type."""
        if self.start is not None:
            return self.render_as_number(self.start)
        if not self.temporal:
            return "CAST(0 AS BIGINT)"
        return f"CASE {axis_type} WHEN 'INTERVAL' THEN CAST(0 AS BIGINT) ELSE -{_MICROSECONDS_BEFORE_1970} END"

    def render_bin_number(self) -> Sql:
        """Return SQL that computes the number of the bin (step of the axis) to which a row belongs."""
        offset = f"({self.render_as_number(self.value)} - {self.render_first_bin_start(f'typeof({self.value})')})"
        step = f"nullif({self.render_as_number(self.step)}, 0)"  # the SQL of the parameters rejects 0 with a message
        if not self.temporal:
            return f"CAST(floor(CAST({offset} AS DOUBLE) / {step}) AS BIGINT)"
        # No row precedes the start; without a start, no instant of Kusto precedes the origin.
        return (
            f"({offset} // {step})" if self.start else f"(({offset} - ({offset} % {step} + {step}) % {step}) // {step})"
        )

    def render_bounds_condition(self) -> Sql:
        """Return SQL for the condition that a row lies within the bounds of the axis.

        The condition compares the column itself, not a computed value, so that DuckDB can skip parts of a table.
        """
        conditions = [f"({self.value}) IS NOT NULL"]
        if self.start is not None:
            conditions.append(f"({self.value}) >= {self.start}")
        if self.stop is not None:
            last = f"{self.render_bin_number()} <= (SELECT n FROM _p)"  # noqa: S608
            conditions.append(last if self.through else f"({self.value}) < {self.stop}")
        return " AND ".join(conditions)

    def render_last_bin_number(self) -> Sql:
        """Return SQL for the number of the last bin, from columns ``lo`` (start), ``hi`` (end) and ``st`` (step)."""
        if self.temporal:
            return "(hi - lo) // st" if self.through else "(hi - lo + st - 1) // st - 1"
        steps = "(CAST(hi AS DOUBLE) - lo) / st"
        return f"CAST(floor({steps}) AS BIGINT)" if self.through else f"CAST(ceil({steps}) AS BIGINT) - 1"


def render_series(
    input_sql: Sql, keys: Sequence[KeySql], series: Sequence[SeriesSql], axis: AxisSql, *, nonempty: bool
) -> Sql:
    """Return one SELECT for a ``make-series``; the SELECT yields a row of arrays for each combination of keys.

    Args:
        input_sql: name of the subquery with the input rows.
        keys: keys for whose combinations the SELECT yields rows.
        series: array columns.
        axis: axis of all arrays.
        nonempty: True if an empty input yields arrays of default values; permitted only without keys.
    """
    by = [f"k{index}" for index in range(len(keys))]
    steps = _render_array_of_axis_steps(axis)
    stages = {
        "_p AS MATERIALIZED": _render_axis_bounds(input_sql, axis),
        "_b AS MATERIALIZED": _render_bin_aggregates(input_sql, keys, series, axis),
        "_g AS MATERIALIZED": _render_bin_range_of_nonempty_series()
        if nonempty
        else _render_bin_range_per_group(by, axis),
        "_e AS": f"SELECT {', '.join([*by, 'first', 'last'])}, unnest(range(first, last + 1)) AS i FROM _g",  # noqa: S608
        "_s AS": _render_series_arrays(by, series),
        "_a AS": f"SELECT first, last, {steps} AS a FROM (SELECT DISTINCT first, last FROM _g), _p",  # noqa: S608
    }
    columns = [f"{key} AS {quote_name(name)}" for key, (name, _) in zip(by, keys, strict=True)]
    columns += [f"kql_array(v{index}) AS {quote_name(each.name)}" for index, each in enumerate(series)]
    columns.append(f"a AS {quote_name(axis.name)}")
    ctes = ", ".join(f"{name} ({sql})" for name, sql in stages.items())
    return f"WITH {ctes} SELECT {', '.join(columns)} FROM _s JOIN _a USING (first, last)"  # noqa: S608


def _render_axis_bounds(input_sql: Sql, axis: AxisSql) -> Sql:
    """Return SQL that computes the bounds of the axis, its step, and the number ``n`` of its last bin."""
    kind = f"SELECT typeof(any_value(x)) AS kind FROM (SELECT {axis.value} AS x FROM {input_sql} LIMIT 0)"  # noqa: S608
    step = axis.render_as_number(axis.step)
    steps = f"CASE WHEN {step} > 0 THEN {step} ELSE error('the step of make-series must be above zero') END"
    stop = "NULL" if axis.stop is None else axis.render_as_number(axis.stop)
    numbers = f"SELECT {axis.render_first_bin_start('kind')} AS lo, {stop} AS hi, {steps} AS st, kind FROM ({kind})"  # noqa: S608
    return f"SELECT lo, hi, st, kind, {_render_checked_last_bin_number(axis)} AS n FROM ({numbers})"  # noqa: S608


def _render_checked_last_bin_number(axis: AxisSql) -> Sql:
    """Return SQL for the number of the last bin; NULL without an end of the axis.

    For ``in range()``, the SQL fails if the start of the axis is not a multiple of the step.
    """
    if axis.stop is None:
        return "NULL"
    if not axis.through:
        return axis.render_last_bin_number()
    origin = f"CASE kind WHEN 'INTERVAL' THEN 0 ELSE {_MICROSECONDS_BEFORE_1970} END" if axis.temporal else "0"
    message = "make-series in range() whose start is not a multiple of the step is not supported"
    return f"CASE WHEN (lo + {origin}) % st <> 0 THEN error('{message}') ELSE {axis.render_last_bin_number()} END"


def _render_bin_aggregates(input_sql: Sql, keys: Sequence[KeySql], series: Sequence[SeriesSql], axis: AxisSql) -> Sql:
    columns = [f"{sql} AS k{index}" for index, (_, sql) in enumerate(keys)]
    columns += [
        f"{axis.render_bin_number()} AS i",
        *(f"{each.aggregate} AS v{index}" for index, each in enumerate(series)),
    ]
    grouped = ", ".join([*(sql for _, sql in keys), axis.render_bin_number()])
    return f"SELECT {', '.join(columns)} FROM {input_sql} WHERE {axis.render_bounds_condition()} GROUP BY {grouped}"  # noqa: S608


def _render_bin_range_per_group(key_columns: Sequence[Sql], axis: AxisSql) -> Sql:
    """Return SQL that computes the numbers of the first and last bin for each combination of keys."""
    first = "min(i)" if axis.start is None else "CAST(0 AS BIGINT)"
    last = "max(i)" if axis.stop is None else "any_value(n)"
    grouping = f"GROUP BY {', '.join(key_columns)}" if key_columns else "HAVING count(*) > 0"
    found = f"SELECT {', '.join([*key_columns, f'{first} AS first', f'{last} AS last'])} FROM _b, _p {grouping}"  # noqa: S608
    return f"SELECT {', '.join([*key_columns, 'first', _render_last_bin_with_length_check()])} FROM ({found})"  # noqa: S608


def _render_bin_range_of_nonempty_series() -> Sql:
    """Return SQL for the numbers of the first and last bin with ``kind=nonempty``: all bins of the axis."""
    last = _render_last_bin_with_length_check()
    return f"SELECT first, {last} FROM (SELECT CAST(0 AS BIGINT) AS first, n AS last FROM _p)"  # noqa: S608


def _render_last_bin_with_length_check() -> Sql:
    """Return SQL for the column ``last`` (number of the last bin); it fails if the array would be too long."""
    message = f"make-series supports arrays of at most {MAX_ELEMENTS} elements"
    return f"CASE WHEN last - first >= {MAX_ELEMENTS} THEN error('{message}') ELSE last END AS last"


def _render_series_arrays(key_columns: Sequence[Sql], series: Sequence[SeriesSql]) -> Sql:
    """Return SQL that builds the arrays; a bin without rows has the default value."""
    same = " AND ".join(["_e.i = _b.i", *(f"_e.{key} IS NOT DISTINCT FROM _b.{key}" for key in key_columns)])
    lists = [
        f"list(CASE WHEN _b.i IS NULL THEN {each.default} ELSE _b.v{index} END ORDER BY _e.i) AS v{index}"
        for index, each in enumerate(series)
    ]
    grouped = [*(f"_e.{key}" for key in key_columns), "first", "last"]
    return f"SELECT {', '.join([*grouped, *lists])} FROM _e LEFT JOIN _b ON {same} GROUP BY {', '.join(grouped)}"  # noqa: S608


def _render_array_of_axis_steps(axis: AxisSql) -> Sql:
    points = "list_transform(range(first, last + 1), lambda _i: lo + _i * st)"
    if not axis.temporal:
        return f"kql_array({points})"
    return f"CASE kind WHEN 'INTERVAL' THEN kql_spans({points}) ELSE kql_instants({points}) END"


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

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields one row of arrays for each combination of keys."""
        names = self.infer_output_columns(input_columns)
        keys, values = names[: len(self.by)], names[len(self.by) : -1]
        aggregated = [
            SeriesSql(name, translate.render_aggregate(aggregate), _render_default_value(default))
            for name, aggregate, default in zip(values, self.aggregates, self.defaults, strict=True)
        ]
        grouped = [KeySql(name, render_expression(key.expr)) for name, key in zip(keys, self.by, strict=True)]
        return render_series(input_sql, grouped, aggregated, self._build_axis_sql(names[-1]), nonempty=self.nonempty)

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns: keys, arrays and axis; unnamed columns get the same names as in ``summarize``."""
        named = [*self.by, *self.aggregates, self.axis]
        namer = naming.Namer(naming.declared([each for each in named if each.name], "make-series"), skip=input_columns)
        return [namer.name(each) for each in named]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "MakeSeries":
        """Return a copy of the operator with ``substitute`` applied to all expressions, including the bounds."""
        return dataclasses.replace(
            self,
            aggregates=_substitute_in_named_expressions(self.aggregates, substitute),
            defaults=tuple(resolve_let_value(substitute(default)) for default in self.defaults),
            axis=_substitute_in_named_expressions((self.axis,), substitute)[0],
            start=None if self.start is None else resolve_let_value(substitute(self.start)),
            stop=None if self.stop is None else resolve_let_value(substitute(self.stop)),
            step=resolve_let_value(substitute(self.step)),
            by=_substitute_in_named_expressions(self.by, substitute),
        )

    def _build_axis_sql(self, column_name: str) -> AxisSql:
        bounds = [expr for expr in (self.start, self.stop, self.step) if expr is not None]
        if any(writer.referenced_columns(expr) for expr in bounds):
            raise unsupported_error(
                "make-series with bounds that refer to columns", "write from, to and step as constants"
            )
        start, stop = (None if expr is None else render_expression(expr) for expr in (self.start, self.stop))
        temporal = any(writer.is_timespan_expr(expr) or writer.is_datetime_expr(expr) for expr in bounds)
        return AxisSql(
            column_name,
            render_expression(self.axis.expr),
            start,
            stop,
            render_expression(self.step),
            temporal=temporal,
            through=self.through,
        )


def install_into_translator() -> None:
    """Add the operator ``make-series`` to the KQL translator library."""
    add_operator("MakeSeriesOperator", _parse_make_series)


def _substitute_in_named_expressions(
    named_expressions: tuple[ir.NamedExpr, ...], substitute: ExpressionReplacer
) -> tuple[ir.NamedExpr, ...]:
    return tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in named_expressions)


def _render_default_value(expr: ir.Expr) -> Sql:
    """Return SQL for the value of bins (axis steps) without rows; null is converted to the type of the aggregate."""
    return "NULL" if isinstance(expr, ir.Literal) and expr.value is None else render_expression(expr)


def _parse_make_series(node: ParseNode) -> MakeSeries:
    parameters = [each for each in node.Parameters if _is_operator_parameter(each)]
    misread = node.Parameters[len(parameters) :]
    written = enumerate(node.Aggregations)
    aggregates, defaults = zip(
        *(_parse_aggregate_and_default(each, () if index else misread) for index, each in written), strict=True
    )
    between = node.InRangeClause or node.FromToStepClause
    by = [] if node.ByClause is None else get_child_rules(node.ByClause)
    series = MakeSeries(
        aggregates,
        defaults,
        reader.lower_named(node.OnClause.Expression),
        _parse_axis_bound(between.FromExpression),
        _parse_axis_bound(between.ToExpression),
        reader.lower_expr(between.StepExpression),
        tuple(reader.lower_named(key) for key in by),
        through=node.InRangeClause is not None,
        nonempty=any(_is_parameter_kind_nonempty(parameter) for parameter in parameters),
    )
    if series.nonempty and (series.by or series.start is None or series.stop is None):
        raise unsupported_error(
            "make-series kind=nonempty with `by`, or without `from` and `to`", position=get_line_and_column(node)
        )
    return series


def _parse_axis_bound(node: ParseNode | None) -> ir.Expr | None:
    return None if node is None else reader.lower_expr(node)


def _parse_aggregate_and_default(node: ParseNode, misread_nodes: Sequence[ParseNode]) -> tuple[ir.NamedExpr, ir.Expr]:
    """Parse an aggregate and its ``default=`` clause; without this clause, the default is 0.

    ``misread_nodes`` are the nodes that the grammar misread as operator parameters, although they begin the aggregate.
    """
    last = node.Expression
    named: ir.NamedExpr = (
        _parse_misread_aggregate(misread_nodes[0], last) if misread_nodes else reader.lower_named(last)
    )
    call = named.expr
    if not isinstance(call, ir.FunctionCall) or call.name.lower() not in AGGREGATES:
        name = f"{call.name}()" if isinstance(call, ir.FunctionCall) else "an expression"
        raise unsupported_error(
            f"make-series with {name} as an aggregate", "use an aggregate such as avg()", get_line_and_column(node)
        )
    if node.Default is None:
        return named, ir.Literal(0, "long")
    return named, reader.lower_expr(get_child_rules(node.Default)[-1])


def _parse_misread_aggregate(first_node: ParseNode, last_node: ParseNode) -> ir.NamedExpr:
    """Parse ``name = f(x)`` again, which the grammar misreads as the parameter ``name = f`` followed by ``(x)``."""
    text = first_node.start.getInputStream().getText(first_node.start.start, last_node.stop.stop)
    (written,) = list_nodes_by_rule(parse(f"print {text}").tree, "PrintOperator")
    (named,) = get_child_rules(written)
    lowered: ir.NamedExpr = reader.lower_named(named)
    return lowered


def _read_parameter_name_and_value(parameter_node: ParseNode) -> tuple[str, str]:
    name, _, value = parameter_node.getText().partition("=")
    return name.strip().lower(), value.strip().lower()


def _is_operator_parameter(parameter_node: ParseNode) -> bool:
    name, _ = _read_parameter_name_and_value(parameter_node)
    return name == "kind" or name.startswith("hint.")


def _is_parameter_kind_nonempty(parameter_node: ParseNode) -> bool:
    name, value = _read_parameter_name_and_value(parameter_node)
    if name == "kind" and value != "nonempty":
        raise unsupported_error(
            f"make-series kind={value[:50]}", "the only supported kind is nonempty", get_line_and_column(parameter_node)
        )
    return name == "kind"
