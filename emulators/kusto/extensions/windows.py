"""KQL window functions, which read other rows: ``prev``, ``next``, ``row_number``, ``row_cumsum``, ranks and sessions.

In DuckDB rows retain their order through a subquery, and an empty ``OVER ()`` follows that order (see "Order
Preservation" in its documentation). Most of these functions therefore need no second sort.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from duckdb_kql import ir, schema, translate
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.pipeline import PipelineOperator
from emulators.kusto.extensions.sql import Sql, render_expression
from emulators.kusto.extensions.tabular import TakeRows
from emulators.kusto.extensions.tree import IrNode
from emulators.kusto.extensions.window_plan import (
    RUNNING,
    WHOLE,
    ColumnAdder,
    ColumnName,
    PlannedColumn,
    RowPartition,
    SessionArguments,
    SubqueryDepth,
    WindowPlan,
    add_session_start_column,
)

SUPPORTED: tuple[str, ...] = (
    "prev()",
    "next()",
    "row_number()",
    "row_cumsum()",
    "row_rank_dense()",
    "row_rank_min()",
    "row_window_session()",
)

macros: tuple[str, ...] = (
    # Overloads, because only DuckDB knows the type of the summed value.
    (
        "CREATE OR REPLACE MACRO kql_summand(a BIGINT) AS a, (a INTEGER) AS a, (a HUGEINT) AS a, (a DOUBLE) AS a, "
        "(a DECIMAL(38, 18)) AS a, (a INTERVAL) AS epoch_us(a)"
    ),
    (
        "CREATE OR REPLACE MACRO kql_summed(t HUGEINT, a BIGINT) AS CAST(t AS BIGINT), "
        "(t HUGEINT, a INTEGER) AS CAST(t AS INTEGER), (t HUGEINT, a HUGEINT) AS CAST(t AS BIGINT), "
        "(t DOUBLE, a DOUBLE) AS t, (t DECIMAL(38, 18), a DECIMAL(38, 18)) AS t, "
        "(t HUGEINT, a INTERVAL) AS to_microseconds(CAST(t AS BIGINT))"
    ),
)


@dataclasses.dataclass(frozen=True)
class WindowedOperator(PipelineOperator):
    """Query operator whose expressions contain window functions.

    Attributes:
        operator: the operator, such as ``extend``; added columns replace its window functions in the SQL.
        partition: groups of rows; the window functions are computed for each group separately.
    """

    operator: ir.Operator
    partition: RowPartition = WHOLE

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL over the input rows, with added columns for the values of the window functions."""
        operator = add_names_to_computed_columns(self.operator, input_columns)
        plan = WindowPlan(input_sql, input_columns, self.partition, _FUNCTIONS)
        rewritten = plan.replace_window_functions(operator)
        sql: str = translate.render_operator(rewritten, plan.render_rows_with_added_columns(), input_columns)
        if isinstance(operator, ir.Extend | ir.Project):
            return sql
        return f"SELECT {writer.quoted(input_columns)} FROM ({sql})"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the wrapped operator, such as ``extend``."""
        return list(schema._operator_columns(self.operator, input_columns, None))  # noqa: SLF001  the library's own rules


def install_into_translator() -> None:
    """Add the window functions to the translator library, which rejects calls outside of a `WindowedOperator`."""
    for name in _FUNCTIONS:
        SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", "")
        writer.SPECIAL_FORMS[name] = _reject_window_call


def wrap_window_functions(operator: ir.Operator, partition: RowPartition = WHOLE) -> ir.Operator:
    """Return a `WindowedOperator` for a query operator with window functions; return any other operator unchanged.

    Raises:
        QueryError: the emulator does not support window functions in this operator.
    """
    function = find_window_function_name(operator)
    if isinstance(operator, WindowedOperator) or function is None:
        return operator
    if not isinstance(operator, ir.Extend | ir.Project | ir.Where | ir.Sort | ir.Top | TakeRows):
        raise unsupported_error(
            f"{function}() in an operator other than extend, project, where, sort, top and take",
            "compute it in an earlier `extend` and use that column",
        )
    return WindowedOperator(operator, partition)


def find_window_function_name(operator: ir.Operator) -> str | None:
    """Return the name of the first window function that a query operator calls; None if it calls none."""
    if isinstance(operator, WindowedOperator):
        return find_window_function_name(operator.operator)
    return next((node.name.lower() for node in _iterate_window_calls(operator)), None)


def is_window_call(node: IrNode) -> bool:
    """Return whether a node of a query is a call of a window function."""
    return isinstance(node, ir.FunctionCall) and node.name.lower() in _FUNCTIONS


def _iterate_window_calls(root: IrNode) -> Iterator[ir.FunctionCall]:
    return filter(is_window_call, _iterate_nodes(root))


def _iterate_nodes(root: IrNode) -> Iterator[IrNode]:
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, ir.Query) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))


def add_names_to_computed_columns(operator: ir.Operator, input_columns: list[str]) -> ir.Operator:
    """Return a copy of a query operator with explicit names for all columns that it computes.

    A default name is derived from the expression. It would change when columns replace the window functions in the
    expression.
    """
    if not isinstance(operator, ir.Extend | ir.Project):
        return operator
    expressions = operator.expressions
    is_extend = isinstance(operator, ir.Extend)
    names = naming.extend_names(expressions, input_columns) if is_extend else naming.project_names(expressions)
    named = (dataclasses.replace(each, name=name) for each, name in zip(expressions, names, strict=True))
    return dataclasses.replace(operator, expressions=tuple(named))


def _reject_window_call(call: ir.FunctionCall) -> NoReturn:
    raise semantic_error(f"Function '{call.name[:100]}' cannot be invoked in current context", inner="SEM0001")


def _build_prev_or_next_column_adder(sql_function: str) -> ColumnAdder:
    def add_neighbour_column(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
        value, *rest = _check_count_and_get_arguments(call, 1, 3)
        offset = _render_constant_argument(call, rest[0]) if rest else "1"
        default = _render_constant_argument(call, rest[1]) if len(rest) > 1 else "NULL"
        depth = max(depth, plan.depth_of_group_number_column) + 1
        sql = f"{sql_function}({render_expression(value)}, {offset}"
        if plan.group is None:
            name = plan.add_column(f"{sql}, {default}) OVER ()" if len(rest) > 1 else f"{sql}) OVER ()", depth)
            return PlannedColumn(name, depth)
        same = f"{sql_function}({plan.group}, {offset}) OVER () = {plan.group}"
        name = plan.add_column(f"CASE WHEN {same} THEN {sql}) OVER () ELSE {default} END", depth)
        return PlannedColumn(name, depth)

    return add_neighbour_column


def _add_row_number(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
    start, *restart = _check_count_and_get_arguments(call, 0, 2) or (ir.Literal(1, "long"),)
    since, depth = plan.add_start_row_column(_render_restart_argument(restart), depth)
    sql = f"CAST({plan.row} - {since} + {_render_constant_argument(call, start)} AS BIGINT)"
    return PlannedColumn(plan.add_column(sql, depth + 1), depth + 1)


def _add_row_cumsum(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
    value, *restart = _check_count_and_get_arguments(call, 1, 2)
    since, depth = plan.add_start_row_column(_render_restart_argument(restart), depth)
    frame = RUNNING
    if since != "1":
        plan.restore_row_order_at_end()
        frame = f"OVER (ORDER BY {plan.row} ROWS BETWEEN {plan.row} - {since} PRECEDING AND CURRENT ROW)"
    summand = plan.add_column(render_expression(value), depth + 1)
    total = plan.add_column(f"sum(kql_summand({summand})) {frame}", depth + 2)
    return PlannedColumn(plan.add_column(f"kql_summed({total}, {summand})", depth + 3), depth + 3)


class _RankColumns(NamedTuple):
    """Columns from which a rank is computed.

    Attributes:
        changes: name of the column that is true in rows with a new rank.
        since: name of the column with the row number where the ranking last began.
        depth: depth of both columns in the plan.
    """

    changes: ColumnName
    since: ColumnName
    depth: SubqueryDepth


def _add_rank_change_columns(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> _RankColumns:
    """Add two columns to a plan: a flag for rows with a new rank, and the row number where the ranking last began."""
    value, *restart = _check_count_and_get_arguments(call, 1, 2)
    since, depth = plan.add_start_row_column(_render_restart_argument(restart), depth)
    sql = render_expression(value)
    changes = plan.add_column(f"({plan.row} = {since} OR {sql} IS DISTINCT FROM lag({sql}) OVER ())", depth + 1)
    return _RankColumns(changes, since, depth + 1)


def _add_row_rank_dense(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
    changes, since, depth = _add_rank_change_columns(plan, call, depth)
    rank = plan.add_column(f"count(*) FILTER (WHERE {changes}) {RUNNING}", depth + 1)
    first = f"coalesce(max(CASE WHEN {plan.row} = {since} THEN {rank} END) {RUNNING}, 1)"
    return PlannedColumn(plan.add_column(f"CAST({rank} - {first} + 1 AS BIGINT)", depth + 2), depth + 2)


def _add_row_rank_min(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
    changes, since, depth = _add_rank_change_columns(plan, call, depth)
    changed = f"max(CASE WHEN {changes} THEN {plan.row} END) {RUNNING}"
    return PlannedColumn(plan.add_column(f"CAST({changed} - {since} + 1 AS BIGINT)", depth + 1), depth + 1)


def _add_row_window_session(plan: WindowPlan, call: ir.FunctionCall, depth: SubqueryDepth) -> PlannedColumn:
    value, longest, gap, *restart = _check_count_and_get_arguments(call, 3, 4)
    begins, depth = plan.add_restart_column(_render_restart_argument(restart), depth)
    arguments = SessionArguments(
        render_expression(value), _render_constant_argument(call, longest), _render_constant_argument(call, gap)
    )
    return add_session_start_column(plan, arguments, begins, depth)


def _check_count_and_get_arguments(call: ir.FunctionCall, min_count: int, max_count: int) -> tuple[ir.Expr, ...]:
    if not min_count <= len(call.args) <= max_count:
        raise semantic_error(f"{call.name}(): function expects {min_count} to {max_count} arguments", inner="SEM0219")
    return call.args


def _render_restart_argument(restart_arguments: Sequence[ir.Expr]) -> Sql | None:
    return render_expression(restart_arguments[0]) if restart_arguments else None


def _render_constant_argument(call: ir.FunctionCall, expr: ir.Expr) -> Sql:
    if any(isinstance(node, ir.ColumnRef | ir.RenderedAggregate) for node in _iterate_nodes(expr)):
        raise semantic_error(
            f"{call.name}(): all arguments except the value and `restart` must be constants", inner="SEM0219"
        )
    return render_expression(expr)


_FUNCTIONS: dict[str, ColumnAdder] = {
    "prev": _build_prev_or_next_column_adder("lag"),
    "next": _build_prev_or_next_column_adder("lead"),
    "row_number": _add_row_number,
    "row_cumsum": _add_row_cumsum,
    "row_rank_dense": _add_row_rank_dense,
    "row_rank_min": _add_row_rank_min,
    "row_window_session": _add_row_window_session,
}
