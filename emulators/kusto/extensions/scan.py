"""Operator ``scan`` and plugins of ``evaluate`` that match sequences of rows or compute over neighbouring rows.

``scan`` passes sorted rows one by one through steps that match sequences of rows. The result of a row depends on
earlier rows, so the SQL is a recursive query that processes one row of every partition in each iteration. See "scan
operator" of the Kusto documentation. The plugins are ``rolling_percentile``, ``rows_near`` and ``sequence_detect``.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from duckdb_kql import ir, translate

from emulators.kusto.errors import LineAndColumn, semantic_error, unsupported_error
from emulators.kusto.extensions.activity import TimelinePlugin, parse_timeline_plugin_fields
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import ExpressionReplacer, add_operator
from emulators.kusto.extensions.plugins import add_plugin, check_column_exists
from emulators.kusto.extensions.scan_sql import DeclaredColumn, ScanSql, ScanStep, SingleStepScanSql
from emulators.kusto.extensions.serialized import SerializedInputOperator, UnorderedOutputOperator
from emulators.kusto.extensions.sql import SQL_TYPES, DuckDbType, NamePrefix, Sql, quote_name, render_expression
from emulators.kusto.extensions.tree import (
    IrNode,
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)
from emulators.kusto.extensions.window_plan import WHOLE, RowPartition, choose_unused_prefix

SUPPORTED: tuple[str, ...] = (
    "scan (declare, several steps, output=all, last and none, with_match_id)",
    "evaluate rolling_percentile",
    "evaluate rows_near",
    "evaluate sequence_detect",
)
_MAX_STEPS = 16
_HIDDEN = " assigned"
"""End of the name of the hidden column for an input column that a step assigns; no column of a query has it."""
_OUTPUTS = ("all", "last", "none")


@dataclasses.dataclass(frozen=True)
class ScanOperator(SerializedInputOperator):
    """Query operator ``scan``, which matches sequences of rows to steps.

    Attributes:
        declared: columns of the clause ``declare``, to which the steps assign values.
        steps: steps of the operator, in order.
        match_id: name of the output column with the number of the matching sequence; empty for no such column.
        partition: groups of rows; each group is scanned separately.
    """

    declared: tuple[DeclaredColumn, ...]
    steps: tuple[ScanStep, ...]
    match_id: str = ""
    partition: RowPartition = WHOLE
    keyword: ClassVar[str] = "scan"
    reads_input_only: ClassVar[bool] = True

    def copy_with_partition(self, partition: RowPartition) -> "ScanOperator":
        """Return a copy that scans each group of rows separately."""
        return dataclasses.replace(self, partition=partition)

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields one row for each match of an input row, in the order of the input."""
        assigned = self._list_assigned_input_columns(input_columns)
        steps, declared = self.steps, self.declared
        for name in assigned:
            hidden = f"{name}{_HIDDEN}"
            steps = tuple(_assign_hidden_column(step, name, hidden, [each.name for each in steps]) for step in steps)
            declared = (*declared, DeclaredColumn(hidden, _require_sql_type_of_column(name), None))
        added = [each.name for each in declared] + ([self.match_id] if self.match_id else [])
        self.infer_output_columns(input_columns)
        machine = SingleStepScanSql if len(steps) == 1 and not steps[0].only_last else ScanSql
        sql = machine(declared, steps, input_columns, added).render(input_sql, self.partition)
        return sql if not assigned else _render_columns_replaced_by_hidden(sql, assigned)

    def _list_assigned_input_columns(self, input_columns: list[str]) -> list[str]:
        """Return the input columns to which a step assigns values.

        Raises:
            QueryError: a step assigns a column that is neither declared nor part of the input.
        """
        declared = {each.name for each in self.declared}
        names = list(dict.fromkeys(each.name or "" for step in self.steps for each in step.assignments))
        for name in names:
            if name not in declared and name not in input_columns:
                raise semantic_error(
                    f"scan: a step assigns the column '{name[:100]}', which is neither declared nor in the input"
                )
        return [name for name in names if name not in declared]

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input, the declared columns and the column with the number of the sequence."""
        added = [each.name for each in self.declared] + ([self.match_id] if self.match_id else [])
        for name in added:
            if name in input_columns:
                raise unsupported_error(
                    "scan with a declared column that its input also has", f"rename the declared column '{name[:100]}'"
                )
        return [*input_columns, *added]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "ScanOperator":
        """Return a copy of the operator with ``substitute`` applied to the conditions and assignments of the steps."""
        return dataclasses.replace(
            self, steps=tuple(_replace_step_expressions(step, substitute) for step in self.steps)
        )


def _replace_step_expressions(step: ScanStep, substitute: ExpressionReplacer) -> ScanStep:
    assignments = tuple(dataclasses.replace(each, expr=substitute(each.expr)) for each in step.assignments)
    return dataclasses.replace(step, condition=substitute(step.condition), assignments=assignments)


def _assign_hidden_column(step: ScanStep, column_name: str, hidden_name: str, step_names: Sequence[str]) -> ScanStep:
    """Return a copy of a step that assigns to the hidden column ``hidden_name`` instead of an input column.

    A step of ``scan`` may assign a value to the input column ``column_name``. In the SQL a separate "hidden" column
    stores this value. If the step does not assign the input column, the copy stores the value of the input row in the
    hidden column. References to the input column of a step, such as ``s1.name``, read the hidden column.
    """
    assigned = [each for each in step.assignments if each.name == column_name]
    others = tuple(each for each in step.assignments if each.name != column_name)
    value = assigned[-1].expr if assigned else ir.ColumnRef(column_name)
    assignments = (*others, ir.NamedExpr(value, hidden_name))
    renamed: ScanStep = _rename_step_column_references(
        dataclasses.replace(step, assignments=assignments), column_name, hidden_name, frozenset(step_names)
    )
    return renamed


def _rename_step_column_references(
    node: IrNode, column_name: str, hidden_name: str, step_names: frozenset[str]
) -> IrNode:
    if isinstance(node, tuple):
        return tuple(_rename_step_column_references(each, column_name, hidden_name, step_names) for each in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
        return node
    if isinstance(node, ir.PathAccess) and isinstance(node.base, ir.ColumnRef) and node.steps[0].name == column_name:
        return (
            dataclasses.replace(node, steps=(ir.PathStep(hidden_name), *node.steps[1:]))
            if node.base.name in step_names
            else node
        )
    parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return dataclasses.replace(
        node,
        **{
            field: _rename_step_column_references(part, column_name, hidden_name, step_names)
            for field, part in parts.items()
        },
    )


def _require_sql_type_of_column(column_name: str) -> DuckDbType:
    kind = infer_type(ir.ColumnRef(column_name))
    if kind not in SQL_TYPES:
        raise unsupported_error(
            f"scan that assigns a value to the column {column_name[:100]}, whose type is unknown",
            "convert the column before the scan, for instance with toreal()",
        )
    return SQL_TYPES[kind]


def _render_columns_replaced_by_hidden(sql: Sql, assigned_columns: Sequence[str]) -> Sql:
    """Return SQL in which the input columns that a step assigns get the values of their hidden columns.

    The hidden columns are removed; see `_assign_hidden_column`.
    """
    hidden = {name: quote_name(f"{name}{_HIDDEN}") for name in assigned_columns}
    replaced = ", ".join(f"{hidden[name]} AS {quote_name(name)}" for name in assigned_columns)
    return f"SELECT * EXCLUDE ({', '.join(hidden.values())}) REPLACE ({replaced}) FROM ({sql})"  # noqa: S608  quoted names


def _parse_scan(node: ParseNode) -> ir.Operator:
    match_id = ""
    for parameter in list_nodes_by_rule(node, "RelaxedQueryOperatorParameter"):
        name, _, value = parameter.getText().partition("=")
        if name != "with_match_id":
            raise unsupported_error(
                f"scan with the parameter {name[:100]}",
                "the only supported parameter is with_match_id",
                get_line_and_column(parameter),
            )
        match_id = value
    declared = tuple(_parse_declared_column(each) for each in list_nodes_by_rule(node, "ScalarParameter"))
    steps = tuple(_parse_step(each) for each in list_nodes_by_rule(node, "ScanOperatorStep"))
    if len({step.name for step in steps}) != len(steps) or not 0 < len(steps) <= _MAX_STEPS:
        raise semantic_error(
            f"scan requires 1 to {_MAX_STEPS} steps with different names", position=get_line_and_column(node)
        )
    return ScanOperator(declared, steps, match_id)


def _parse_declared_column(node: ParseNode) -> DeclaredColumn:
    name, kind, *default = get_child_rules(node)
    sql_type = SQL_TYPES.get(kind.getText())
    if sql_type is None:
        raise unsupported_error(
            f"scan declaring a column of type {kind.getText()[:50]}", position=get_line_and_column(kind)
        )
    value = reader.lower_expr(get_child_rules(default[0])[0]) if default else None
    return DeclaredColumn(_read_identifier(name), sql_type, value)


def _parse_step(node: ParseNode) -> ScanStep:
    name, *rest = get_child_rules(node)
    output = "all"
    if get_rule_name(rest[0]) == "ScanOperatorStepOutputClause":
        output = rest.pop(0).getText().partition("=")[2]
        if output not in _OUTPUTS:
            raise semantic_error(
                f"scan: output must be one of {', '.join(_OUTPUTS)}; found {output[:50]}",
                position=get_line_and_column(node),
            )
    assignments = [
        _parse_assignment(each) for part in rest[1:] for each in list_nodes_by_rule(part, "ScanOperatorAssignment")
    ]
    condition = reader.lower_expr(rest[0])
    has_output, only_last = output != "none", output == "last"
    return ScanStep(_read_identifier(name), has_output, condition, tuple(assignments), only_last)


def _parse_assignment(node: ParseNode) -> ir.NamedExpr:
    name, value = get_child_rules(node)
    return ir.NamedExpr(reader.lower_expr(value), _read_identifier(name))


def _read_identifier(node: ParseNode) -> str:
    text = reader.name_text(reader.collapse(node))
    return str(node.getText() if text is None else text)


macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class RollingPercentile(UnorderedOutputOperator):
    """Plugin ``rolling_percentile``: for each bin, the percentile of the values in this bin and the bins before it.

    Attributes:
        value: column of the values.
        timeline: timeline column, size of a bin, and dimension columns.
        percentile: the percentile, from 0 to 100.
        bins: number of bins whose values are included, counting the current bin.
        percentile_text: text of the percentile in the query, which becomes part of the column name.
    """

    value: str
    timeline: TimelinePlugin
    percentile: ir.Expr
    bins: ir.Expr
    percentile_text: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields one row for each bin and combination of dimensions."""
        check_column_exists(self.value, input_columns)
        self.timeline.check_columns_exist(input_columns)
        p = choose_unused_prefix([*input_columns, *self.infer_output_columns(input_columns)])
        (size,), (time,) = self.timeline.render_constants(), self.timeline.columns
        dimensions = self.timeline.render_dimension_columns()
        bins = f"CAST({render_expression(self.bins)} AS BIGINT)"
        number = self.timeline.render_window_number("0", size)
        rows = f"(SELECT *, {number} AS {p}w FROM {input_sql})"  # noqa: S608  generated names, rendered expressions
        rolled = f"(SELECT *, unnest(generate_series({p}w, {p}w + {bins} - 1)) AS {p}t FROM {rows})"  # noqa: S608
        aggregate = ir.FunctionCall("percentile", (ir.ColumnRef(self.value), self.percentile))
        begins = f"SELECT {p}w{dimensions}, min({quote_name(time)}) AS {p}b FROM {rows} GROUP BY ALL"  # noqa: S608
        values = f"SELECT {p}t{dimensions}, {translate.render_aggregate(ir.NamedExpr(aggregate))} AS {p}v"
        begin = translate.render_expr(ir.FunctionCall("bin", (ir.ColumnRef(f"{p}b"), self.timeline.constants[0])))
        same = "".join(
            f" AND b.{quote_name(name)} IS NOT DISTINCT FROM r.{quote_name(name)}" for name in self.timeline.dimensions
        )
        named = [quote_name(name) for name in self.infer_output_columns(input_columns)]
        chosen = "".join(f", b.{quote_name(name)}" for name in self.timeline.dimensions)
        order = ", ".join([*named[1:-1], named[0]])
        return (
            f"SELECT {begin} AS {named[0]}{chosen}, r.{p}v AS {named[-1]} FROM ({begins}) AS b "  # noqa: S608
            f"JOIN ({values} FROM {rolled} GROUP BY ALL) AS r ON b.{p}w = r.{p}t{same} ORDER BY {order}"
        )

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: timeline column, dimensions and percentile."""
        del input_columns
        if not isinstance(self.bins, ir.Literal):
            raise unsupported_error(
                "evaluate rolling_percentile with a number of bins that is not a literal", "write a number such as 7"
            )
        name = f"rolling_{self.bins.value}_percentile_{self.value}_{self.percentile_text}"
        return [*self.timeline.columns, *self.timeline.dimensions, name]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "RollingPercentile":
        """Return a copy of the plugin with ``substitute`` applied to the bin size, percentile and number of bins."""
        timeline = self.timeline.replace_expressions(substitute)
        return dataclasses.replace(
            self, timeline=timeline, percentile=substitute(self.percentile), bins=substitute(self.bins)
        )


@dataclasses.dataclass(frozen=True)
class RowsNear(SerializedInputOperator):
    """Plugin ``rows_near``, which returns the rows near each row that meets a condition.

    Attributes:
        condition: the condition.
        before: number of rows to return before each row that meets the condition.
        after: number of rows to return after each row that meets the condition.
        partition: groups of rows; each group is searched separately.
    """

    condition: ir.Expr
    before: ir.Expr
    after: ir.Expr
    partition: RowPartition = WHOLE
    keyword: ClassVar[str] = "rows_near"

    def copy_with_partition(self, partition: RowPartition) -> "RowsNear":
        """Return a copy that searches each group of rows separately."""
        return dataclasses.replace(self, partition=partition)

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields the rows near the matching rows, in the order of the input."""
        p = choose_unused_prefix(input_columns)
        keys = ", ".join(map(quote_name, self.partition.columns))
        partition = f"PARTITION BY {keys} " if keys else ""
        before, after = (f"CAST({render_expression(each)} AS BIGINT)" for each in (self.before, self.after))
        rows = (
            f"(SELECT *, row_number() OVER () AS {p}r, "  # noqa: S608  generated names, rendered expressions
            f"coalesce({render_expression(self.condition)}, false) AS {p}c FROM {input_sql})"
        )
        frame = f"ROWS BETWEEN {after} PRECEDING AND {before} FOLLOWING"
        return (
            f"SELECT * EXCLUDE ({p}r, {p}c) FROM {rows} "  # noqa: S608
            f"QUALIFY bool_or({p}c) OVER ({partition}ORDER BY {p}r {frame}) ORDER BY {p}r"
        )

    def replace_expressions(self, substitute: ExpressionReplacer) -> "RowsNear":
        """Return a copy of the plugin with ``substitute`` applied to the condition and the numbers of rows."""
        condition, before, after = (substitute(each) for each in (self.condition, self.before, self.after))
        return dataclasses.replace(self, condition=condition, before=before, after=after)


@dataclasses.dataclass(frozen=True)
class SequenceDetect(UnorderedOutputOperator):
    """Plugin ``sequence_detect``, which finds sequences of events that meet several predicates one after the other.

    Attributes:
        time: column of the timeline.
        step_window: maximum time between two steps.
        span: maximum time between the first and the last step.
        steps: predicates with their names.
        dimensions: columns whose values all events of a sequence share.
    """

    time: str
    step_window: ir.Expr
    span: ir.Expr
    steps: tuple[ir.NamedExpr, ...]
    dimensions: tuple[str, ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields the distinct sequences of event times, in the order of the times."""
        for name in (self.time, *self.dimensions):
            check_column_exists(name, input_columns)
        p, time, names = (
            choose_unused_prefix(input_columns),
            quote_name(self.time),
            self.infer_output_columns(input_columns),
        )
        dimensions = [quote_name(name) for name in self.dimensions]
        flags = ", ".join(
            f"coalesce({render_expression(step.expr)}, false) AS {p}f{index}" for index, step in enumerate(self.steps)
        )
        keys = "".join(f", {name}" for name in dimensions)
        rows = f"{p}e AS MATERIALIZED (SELECT DISTINCT {time} AS {p}t{keys}, {flags} FROM {input_sql})"  # noqa: S608
        joins = f"{p}e AS s0" + "".join(
            self._render_join_of_step_events(p, index) for index in range(1, len(self.steps))
        )
        times = [f"s{index}.{p}t" for index in range(len(self.steps))]
        duration = f"({times[-1]} - {times[0]})"
        chosen = [*(f"s0.{name}" for name in dimensions), *times, duration]
        selected = ", ".join(f"{sql} AS {quote_name(name)}" for sql, name in zip(chosen, names, strict=True))
        order = ", ".join(quote_name(name) for name in names[len(dimensions) : -1])
        return f"WITH {rows} SELECT DISTINCT {selected} FROM {joins} WHERE s0.{p}f0 ORDER BY {order}"  # noqa: S608

    def _render_join_of_step_events(self, prefix: NamePrefix, step_index: int) -> Sql:
        """Return SQL that joins the events of a step with the events of the previous step."""
        window, span = f"({render_expression(self.step_window)})", f"({render_expression(self.span)})"
        conditions = [
            f"s{step_index}.{prefix}f{step_index}",
            f"s{step_index}.{prefix}t > s{step_index - 1}.{prefix}t",
            f"s{step_index}.{prefix}t <= s{step_index - 1}.{prefix}t + {window}",
            f"s{step_index}.{prefix}t <= s0.{prefix}t + {span}",
            *(
                f"s{step_index}.{quote_name(name)} IS NOT DISTINCT FROM s0.{quote_name(name)}"
                for name in self.dimensions
            ),
        ]
        return f" JOIN {prefix}e AS s{step_index} ON {' AND '.join(conditions)}"

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: dimensions, time of each step, and duration."""
        del input_columns
        return [*self.dimensions, *(f"{step.name or ''}_{self.time}" for step in self.steps), "Duration"]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "SequenceDetect":
        """Return a copy of the plugin with ``substitute`` applied to the maximum times and the predicates."""
        steps = tuple(dataclasses.replace(step, expr=substitute(step.expr)) for step in self.steps)
        window, span = substitute(self.step_window), substitute(self.span)
        return dataclasses.replace(self, steps=steps, step_window=window, span=span)


_NEAR_ARGUMENTS = (2, 3)
_SEQUENCE_ARGUMENTS = 4
_ROLLING_ARGUMENTS = 5


def _parse_rolling_percentile(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
) -> ir.Operator:
    position = _reject_schema_and_get_line_and_column("rolling_percentile", node, schema_clause)
    if len(arguments) < _ROLLING_ARGUMENTS:
        raise semantic_error(
            "evaluate rolling_percentile() requires a value, a percentile, an index, a bin size and a number of bins",
            inner="SEM0219",
            position=position,
        )
    value, percentile, index, size, bins, *dimensions = arguments
    fields = parse_timeline_plugin_fields("rolling_percentile", node, [index, size, *dimensions], 1, (1,))
    column = reader.lower_expr(value)
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error("evaluate rolling_percentile(): the first argument must be a column", position=position)
    percent, count = reader.lower_expr(percentile), reader.lower_expr(bins)
    return RollingPercentile(column.name, TimelinePlugin(**fields), percent, count, percentile.getText())


def _parse_rows_near(node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None) -> ir.Operator:
    position = _reject_schema_and_get_line_and_column("rows_near", node, schema_clause)
    if len(arguments) not in _NEAR_ARGUMENTS or any(find_argument_name(each) for each in arguments):
        raise semantic_error(
            "evaluate rows_near() requires a condition, the number of rows before each matching row, and optionally "
            "the number of rows after it",
            inner="SEM0219",
            position=position,
        )
    condition, before, *after = (reader.lower_expr(each) for each in arguments)
    return RowsNear(condition, before, after[0] if after else before)


def _parse_sequence_detect(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
) -> ir.Operator:
    position = _reject_schema_and_get_line_and_column("sequence_detect", node, schema_clause)
    lowered = [reader.lower_named(each) for each in arguments]
    steps = [each for each in lowered[3:] if each.name or not isinstance(each.expr, ir.ColumnRef)]
    dimensions = lowered[3 + len(steps) :]
    if len(lowered) < _SEQUENCE_ARGUMENTS or not steps or not isinstance(lowered[0].expr, ir.ColumnRef):
        raise semantic_error(
            "evaluate sequence_detect() requires a timeline column, two limits and at least one predicate",
            inner="SEM0219",
            position=position,
        )
    if lowered[3 : 3 + len(steps)] != steps or len({step.name for step in steps}) < len(steps):
        raise unsupported_error(
            "a repeated predicate name, or a dimension before a predicate, in evaluate sequence_detect",
            "give each predicate a name of its own, and put the dimensions after the predicates",
            position,
        )
    names = tuple(each.expr.name for each in dimensions)
    return SequenceDetect(lowered[0].expr.name, lowered[1].expr, lowered[2].expr, tuple(steps), names)


def _reject_schema_and_get_line_and_column(
    plugin_name: str, node: ParseNode, schema_clause: ParseNode | None
) -> LineAndColumn:
    position = get_line_and_column(node)
    if schema_clause is not None:
        raise unsupported_error(
            f"evaluate {plugin_name} with an output schema", "remove the schema after the colon", position
        )
    return position


def install_into_translator() -> None:
    """Add ``scan``, ``rolling_percentile``, ``rows_near`` and ``sequence_detect`` to the KQL translator library."""
    add_operator("ScanOperator", _parse_scan)
    add_plugin("rolling_percentile", _parse_rolling_percentile)
    add_plugin("rows_near", _parse_rows_near)
    add_plugin("sequence_detect", _parse_sequence_detect)
