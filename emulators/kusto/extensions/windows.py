"""Window functions: ``prev``, ``next``, ``row_number``, ``row_cumsum``, ranks and sessions, over serialized rows.

Rows keep their order through a subquery in DuckDB, and an empty ``OVER ()`` follows it (its documentation, "Order
Preservation"); so most of these run while the rows stream by, without a second sort.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from duckdb_kql import ir, schema, translate
from duckdb_kql.translate import naming
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.pipeline import PipelineOperator
from emulators.kusto.extensions.sessions import session_starts
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.tabular import TakeRows
from emulators.kusto.extensions.window_plan import RUNNING, WHOLE, Function, Partition, Plan

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
    # Overloads: DuckDB picks by the type of the summed value, which a translation does not know.
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
class Windowed(PipelineOperator):
    """An operator whose expressions hold window functions.

    Attributes:
        operator: what the library renders, once the functions are columns.
        partition: groups that the functions do not look across.
    """

    operator: ir.Operator
    partition: Partition = WHOLE

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the operator over its input with the functions' values as further columns."""
        operator = _named(self.operator, cols)
        plan = Plan(prev, cols, self.partition, _FUNCTIONS)
        rewritten = plan.rewrite(operator)
        sql: str = translate.render_operator(rewritten, plan.source(), cols)
        if isinstance(operator, ir.Extend | ir.Project):
            return sql
        return f"SELECT {writer.quoted(cols)} FROM ({sql})"  # noqa: S608  quoted names

    def columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the operator itself."""
        return list(schema._operator_columns(self.operator, cols, None))  # noqa: SLF001  the library's own rules


def install() -> None:
    """Make the functions known; outside serialized rows they are an error."""
    for name in _FUNCTIONS:
        SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", "")
        writer.SPECIAL_FORMS[name] = _not_here


def windowed(operator: ir.Operator, partition: Partition = WHOLE) -> ir.Operator:
    """Return the operator, wrapped if its expressions hold window functions.

    Raises:
        QueryError: it is an operator in which this engine does not compute them.
    """
    if isinstance(operator, Windowed) or function_in(operator) is None:
        return operator
    if not isinstance(operator, ir.Extend | ir.Project | ir.Where | ir.Sort | ir.Top | TakeRows):
        raise unsupported(f"{function_in(operator)}() in this operator", "extend a column with it first")
    return Windowed(operator, partition)


def function_in(operator: ir.Operator) -> str | None:
    """Return the name of a window function in an operator's own expressions, None where there is none."""
    if isinstance(operator, Windowed):
        return function_in(operator.operator)
    return next((node.name.lower() for node in _calls(operator)), None)


def _calls(root: Any) -> Iterator[ir.FunctionCall]:
    for node in _nodes(root):
        if isinstance(node, ir.FunctionCall) and node.name.lower() in _FUNCTIONS:
            yield node


def _nodes(root: Any) -> Iterator[Any]:
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


def _named(operator: ir.Operator, cols: list[str]) -> ir.Operator:
    """Return the operator with the names of its columns written out: they follow from the functions' names."""
    if not isinstance(operator, ir.Extend | ir.Project):
        return operator
    expressions = operator.expressions
    is_extend = isinstance(operator, ir.Extend)
    names = naming.extend_names(expressions, cols) if is_extend else naming.project_names(expressions)
    named = (dataclasses.replace(each, name=name) for each, name in zip(expressions, names, strict=True))
    return dataclasses.replace(operator, expressions=tuple(named))


def _not_here(call: ir.FunctionCall) -> str:
    raise semantic_error(f"Function '{call.name[:100]}' cannot be invoked in current context", inner="SEM0001")


def _neighbour(function: str) -> Function:
    def write(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
        value, *rest = _arguments(call, 1, 3)
        offset = _constant(call, rest[0]) if rest else "1"
        default = render(rest[1]) if len(rest) > 1 else "NULL"
        depth = max(depth, plan.base_depth()) + 1
        sql = f"{function}({render(value)}, {offset}"
        if plan.group is None:
            return plan.column(f"{sql}, {default}) OVER ()" if len(rest) > 1 else f"{sql}) OVER ()", depth), depth
        same = f"{function}({plan.group}, {offset}) OVER () = {plan.group}"
        return plan.column(f"CASE WHEN {same} THEN {sql}) OVER () ELSE {default} END", depth), depth

    return write


def _row_number(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
    start, *restart = _arguments(call, 0, 2) or (ir.Literal(1, "long"),)
    since, depth = plan.since(_restart(restart), depth)
    return plan.column(f"CAST({plan.row} - {since} + {_constant(call, start)} AS BIGINT)", depth + 1), depth + 1


def _row_cumsum(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
    value, *restart = _arguments(call, 1, 2)
    since, depth = plan.since(_restart(restart), depth)
    frame = RUNNING
    if since != "1":
        plan.sorts()
        frame = f"OVER (ORDER BY {plan.row} ROWS BETWEEN {plan.row} - {since} PRECEDING AND CURRENT ROW)"
    summand = plan.column(render(value), depth + 1)
    total = plan.column(f"sum(kql_summand({summand})) {frame}", depth + 2)
    return plan.column(f"kql_summed({total}, {summand})", depth + 3), depth + 3


def _changes(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, str, int]:
    """Return where a rank begins, and the row at which counting began."""
    value, *restart = _arguments(call, 1, 2)
    since, depth = plan.since(_restart(restart), depth)
    sql = render(value)
    changes = plan.column(f"({plan.row} = {since} OR {sql} IS DISTINCT FROM lag({sql}) OVER ())", depth + 1)
    return changes, since, depth + 1


def _row_rank_dense(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
    changes, since, depth = _changes(plan, call, depth)
    rank = plan.column(f"count(*) FILTER (WHERE {changes}) {RUNNING}", depth + 1)
    first = f"coalesce(max(CASE WHEN {plan.row} = {since} THEN {rank} END) {RUNNING}, 1)"
    return plan.column(f"CAST({rank} - {first} + 1 AS BIGINT)", depth + 2), depth + 2


def _row_rank_min(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
    changes, since, depth = _changes(plan, call, depth)
    changed = f"max(CASE WHEN {changes} THEN {plan.row} END) {RUNNING}"
    return plan.column(f"CAST({changed} - {since} + 1 AS BIGINT)", depth + 1), depth + 1


def _row_window_session(plan: Plan, call: ir.FunctionCall, depth: int) -> tuple[str, int]:
    value, longest, gap, *restart = _arguments(call, 3, 4)
    begins, depth = plan.restarted(_restart(restart), depth)
    return session_starts(plan, (render(value), _constant(call, longest), _constant(call, gap)), begins, depth)


def _arguments(call: ir.FunctionCall, fewest: int, most: int) -> tuple[ir.Expr, ...]:
    if not fewest <= len(call.args) <= most:
        raise semantic_error(f"{call.name}(): function expects {fewest} to {most} arguments", inner="SEM0219")
    return call.args


def _restart(arguments: Sequence[ir.Expr]) -> str | None:
    return render(arguments[0]) if arguments else None


def _constant(call: ir.FunctionCall, expr: ir.Expr) -> str:
    if any(isinstance(node, ir.ColumnRef | ir.RenderedAggregate) for node in _nodes(expr)):
        raise semantic_error(f"{call.name}(): the argument must be a constant", inner="SEM0219")
    return render(expr)


_FUNCTIONS: dict[str, Function] = {
    "prev": _neighbour("lag"),
    "next": _neighbour("lead"),
    "row_number": _row_number,
    "row_cumsum": _row_cumsum,
    "row_rank_dense": _row_rank_dense,
    "row_rank_min": _row_rank_min,
    "row_window_session": _row_window_session,
}
