"""Window functions that restart where a sorted column changes, computed with ``PARTITION BY``.

An example is ``sort by d asc, t asc | extend c = row_cumsum(v, d != prev(d)) | summarize max(c) by d``. DuckDB computes
the groups of rows with equal ``d`` in parallel and need not sort all rows. As this loses the order of the rows, a later
``summarize`` or ``count`` must not depend on it.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.translate import TranslationResult
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS

from emulators.kusto.extensions.known_types import bind_input_types, infer_type
from emulators.kusto.extensions.library import replace_attribute
from emulators.kusto.extensions.ranks import render_sort_keys_and_directions
from emulators.kusto.extensions.sql import Sql, quote_name, render_expression
from emulators.kusto.extensions.tree import IrNode, iterate_nodes
from emulators.kusto.extensions.windows import (
    WindowedOperator,
    add_names_to_computed_columns,
    find_window_function_name,
    is_window_call,
)

macros: tuple[str, ...] = ()
_RANKS = {"row_rank_dense": "dense_rank", "row_rank_min": "rank"}
_FUNCTIONS = frozenset({"row_cumsum", *_RANKS})
_PARTITION_TYPES = frozenset({"string", "int", "long", "datetime", "bool", "guid"})
"""Types for which ``!=`` of KQL, ``PARTITION BY`` and ``ORDER BY`` agree on equal values, also on null."""
_UNORDERED_AGGREGATES = frozenset(
    {"count", "countif", "dcount", "dcountif", "max", "maxif", "min", "minif", "sum", "sumif", "avg", "avgif"}
)
"""Aggregates whose result does not depend on the order of the rows."""
_ROW_OPERATORS = (ir.Where, ir.Project, ir.Extend, ir.ProjectAway, ir.ProjectRename)
"""Operators whose result for a row depends on this row only."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartitionedWindows(WindowedOperator):
    """Combination of ``sort`` and ``extend``, whose window functions restart where a sorted column changes.

    The rows of the result are in no particular order.

    Attributes:
        sort: the ``sort``, whose keys are columns.
        leading: number of leading sort keys; the functions restart where one of these columns changes.
    """

    sort: ir.Sort
    leading: int

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render both operators as one SELECT with window functions over partitions."""
        with bind_input_types(self.sort):
            parts = [f"{sql} {direction}" for sql, direction in render_sort_keys_and_directions(self.sort.keys)]
        partition = ", ".join(map(quote_name, _list_sort_columns(self.sort)[: self.leading]))
        rest = parts[self.leading :]

        def replace_window_calls(node: IrNode) -> IrNode:
            if isinstance(node, tuple):
                return tuple(map(replace_window_calls, node))
            if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
                return node
            if isinstance(node, ir.FunctionCall) and node.name.lower() in _FUNCTIONS:
                return ir.RenderedAggregate(_render_window_function(node, partition, rest))
            fields = {each.name: replace_window_calls(getattr(node, each.name)) for each in dataclasses.fields(node)}
            return dataclasses.replace(node, **fields)

        return str(
            translate.render_operator(
                replace_window_calls(add_names_to_computed_columns(self.operator, input_columns)),
                input_sql,
                input_columns,
            )
        )


def _render_window_function(call: ir.FunctionCall, partition: Sql, order: Sequence[Sql]) -> Sql:
    name = call.name.lower()
    if name in _RANKS:
        return f"{_RANKS[name]}() OVER (PARTITION BY {partition} ORDER BY {order[0]})"
    value = render_expression(call.args[0])
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    window = f"OVER (PARTITION BY {partition}{ordered} ROWS UNBOUNDED PRECEDING)"
    return f"kql_summed(sum(kql_summand({value})) {window}, {value})"


def install_into_translator() -> None:
    """Make the translator library use ``PARTITION BY`` if window functions restart where a sorted column changes."""
    replace_attribute(translate, "_render_scoped", _patch_queries_to_partition_windows)


def _patch_queries_to_partition_windows(
    library_function: Callable[..., TranslationResult],
) -> Callable[..., TranslationResult]:
    """Patch the translator library to call `merge_sorts_with_extends` before it renders a query."""

    def render_query_with_partitions(query: ir.Query, *library_arguments: Any) -> TranslationResult:
        return library_function(
            dataclasses.replace(query, operators=merge_sorts_with_extends(query.operators)), *library_arguments
        )

    return render_query_with_partitions


def merge_sorts_with_extends(operators: Sequence[ir.Operator]) -> list[ir.Operator]:
    """Replace each ``sort`` and the ``extend`` after it by one `PartitionedWindows` if the result stays the same.

    The caller must have bound the column types with `bind_known_types`; otherwise no pair is replaced.
    """
    merged = list(operators)
    for index in range(len(merged) - 2, -1, -1):
        windows = _merge_sort_with_extend(merged[index], merged[index + 1])
        if windows is not None and _has_order_independent_result(merged[index + 2 :]):
            merged[index : index + 2] = [windows]
    return merged


def _merge_sort_with_extend(sort: ir.Operator, extend: ir.Operator) -> PartitionedWindows | None:
    """Combine a ``sort`` and the ``extend`` after it to one operator that computes each partition separately.

    Return None if the operators are not such a pair, or if a window function needs the order of rows across partitions.
    """
    if not isinstance(sort, ir.Sort) or not isinstance(extend, ir.Extend) or find_window_function_name(extend) is None:
        return None
    with bind_input_types(sort):
        kinds = [infer_type(key.expr) if isinstance(key.expr, ir.ColumnRef) else None for key in sort.keys]
    if not set(kinds) <= _PARTITION_TYPES:
        return None
    columns = _list_sort_columns(sort)
    leading = {_count_restarting_sort_keys(call, columns) for call in _iterate_outermost_window_calls(extend)}
    count = leading.pop() if len(leading) == 1 else None
    return None if count is None else PartitionedWindows(extend, sort=sort, leading=count)


def _list_sort_columns(sort: ir.Sort) -> list[str]:
    return [key.expr.name for key in sort.keys if isinstance(key.expr, ir.ColumnRef)]


def _iterate_outermost_window_calls(root: IrNode) -> Iterator[ir.FunctionCall]:
    """Yield each call of a window function in an expression, except calls inside the arguments of another such call."""
    if isinstance(root, tuple | list):
        for each in root:
            yield from _iterate_outermost_window_calls(each)
    elif is_window_call(root):
        yield root
    elif dataclasses.is_dataclass(root) and not isinstance(root, ir.Query | type):
        for field in dataclasses.fields(root):
            yield from _iterate_outermost_window_calls(getattr(root, field.name))


def _count_restarting_sort_keys(call: ir.FunctionCall, sort_columns: Sequence[str]) -> int | None:
    """Return the number n if a window function restarts whenever one of the first n sort columns changes.

    Return None in three cases: the function has a different restart condition; the function is a rank of a column other
    than the sort column n + 1; or ``PARTITION BY`` cannot compute the function.
    """
    if call.name.lower() not in _FUNCTIONS or len(call.args) != 2:  # noqa: PLR2004  value and restart
        return None
    value, restart = call.args
    restarting = _find_columns_that_cause_restart(restart)
    if restarting is None or restarting != set(sort_columns[: len(restarting)]):
        return None
    if call.name.lower() in _RANKS:
        is_next = len(restarting) < len(sort_columns) and value == ir.ColumnRef(sort_columns[len(restarting)])
        return len(restarting) if is_next else None
    return len(restarting) if _contains_only_columns_and_literals(value) else None


def _find_columns_that_cause_restart(restart: ir.Expr) -> set[str] | None:
    """Return the columns ``a`` and ``b`` for a restart condition such as ``a != prev(a) or b != prev(b)``.

    Return None for a condition of any other form.
    """
    if not isinstance(restart, ir.BinaryOp):
        return None
    if restart.op == "or":
        left, right = _find_columns_that_cause_restart(restart.left), _find_columns_that_cause_restart(restart.right)
        return None if left is None or right is None else left | right
    for column, previous in ((restart.left, restart.right), (restart.right, restart.left)):
        if restart.op == "!=" and isinstance(column, ir.ColumnRef) and previous == ir.FunctionCall("prev", (column,)):
            return {column.name}
    return None


def _contains_only_columns_and_literals(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.BinaryOp):
        return _contains_only_columns_and_literals(expr.left) and _contains_only_columns_and_literals(expr.right)
    return isinstance(expr, ir.ColumnRef | ir.Literal)


def _has_order_independent_result(operators: Sequence[ir.Operator]) -> bool:
    """Return whether the result of query operators does not depend on the order of their input rows."""
    for operator in operators:
        if isinstance(operator, ir.Count):
            return True
        if isinstance(operator, ir.Summarize):
            calls = (call for call in iterate_nodes(operator.aggregates) if isinstance(call, ir.FunctionCall))
            names = {call.name.lower() for call in calls} & set(AGGREGATE_FUNCTIONS)
            return names <= _UNORDERED_AGGREGATES
        if not isinstance(operator, _ROW_OPERATORS) or find_window_function_name(operator) is not None:
            return False
    return False
