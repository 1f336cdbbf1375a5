"""Serialized rows: rows in a significant order, which window functions such as ``prev`` require.

This module checks that the input of window functions is serialized. See "serialize operator" of the Kusto
documentation: ``range``, ``sort``, ``top``, ``top-hitters`` and ``getschema`` return serialized rows; ``sample``,
``sample-distinct``, ``distinct``, ``join``, ``top-nested``, ``count``, ``summarize``, ``evaluate`` and ``make-series``
do not. All other operators preserve the order of their input.
"""

import contextvars
import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar

from duckdb_kql import ir, translate
from duckdb_kql.translate import TranslationResult

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.grammar import NOTHING
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.names import NameListExpr
from emulators.kusto.extensions.pipeline import PipelineOperator, add_operator
from emulators.kusto.extensions.sql import Sql
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column
from emulators.kusto.extensions.window_plan import RowPartition
from emulators.kusto.extensions.windows import WindowedOperator, find_window_function_name, wrap_window_functions

SUPPORTED: tuple[str, ...] = ("serialize",)

macros: tuple[str, ...] = ()


class RowOrder(Enum):
    """Order of the rows that a query operator returns.

    The order is significant (serialized rows), not significant, or lost: significant in Kusto, but not preserved by the
    emulator.
    """

    SERIALIZED = "serialized"
    NONE = "none"
    LOST = "lost"
    """The rows are serialized in Kusto, but the emulator does not preserve their order."""


@dataclasses.dataclass(frozen=True)
class Serialize(PipelineOperator):
    """Query operator ``serialize``, which declares that the current order of the rows is significant."""

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields all rows unchanged."""
        del input_columns
        return f"SELECT * FROM {input_sql}"  # noqa: S608  a generated name


class SerializedOutputOperator(PipelineOperator):
    """Base class of query operators that return serialized rows (rows in a significant order)."""


class SerializedInputOperator(PipelineOperator):
    """Base class of query operators that require serialized rows (in a significant order) and preserve the order."""

    keyword: ClassVar[str] = ""

    def copy_with_partition(self, partition: RowPartition) -> "SerializedInputOperator":
        """Return a copy of the operator that processes each group of ``partition`` separately."""
        raise NotImplementedError


class UnorderedOutputOperator(PipelineOperator):
    """Base class of query operators whose output rows have no significant order, as in Kusto."""


_PRESERVING = (
    ir.Where,
    ir.Project,
    ir.Extend,
    ir.Take,
    ir.ProjectAway,
    ir.ProjectRename,
    ir.Parse,
    ir.MvExpand,
    SelectColumns,
    SerializedInputOperator,
)
_STARTING = (ir.Sort, ir.Top, ir.GetSchema, Serialize, SerializedOutputOperator)
_ENDING = (ir.Summarize, ir.Count, ir.Distinct, ir.Join, ir.Union, DistinctRows, UnorderedOutputOperator)
_LETS: contextvars.ContextVar[Mapping[str, RowOrder]] = contextvars.ContextVar("serialized_lets")
"""Order of the rows of each ``let`` statement in scope, while a query is rendered."""


def install_into_translator() -> None:
    """Add ``serialize`` to the translator library; make the library check the order of rows in each query."""
    add_operator("SerializeOperator", _parse_serialize)
    replace_attribute(translate, "_render_scoped", _patch_queries_to_check_row_order)  # called once for each query


def _parse_serialize(node: ParseNode) -> ir.Operator | list[ir.Operator]:
    expressions = [reader.lower_named(child) for child in get_child_rules(node)]
    if any(isinstance(each, NameListExpr) for each in expressions):
        raise unsupported_error(
            "a list of names on the left of =",
            "create the columns with extend before this operator",
            get_line_and_column(node),
        )
    if len(expressions) == 1 and expressions[0].expr == ir.ColumnRef(NOTHING):
        return Serialize()
    return [Serialize(), ir.Extend(tuple(expressions))]


def _patch_queries_to_check_row_order(
    library_function: Callable[..., TranslationResult],
) -> Callable[..., TranslationResult]:
    def render_query_with_row_order_check(query: ir.Query, *library_arguments: Any) -> TranslationResult:
        known = dict(_LETS.get({}))
        for name, bound in query.lets:
            if isinstance(bound, ir.Query):
                known[name] = _infer_row_order_of_query(bound, known)
        token = _LETS.set(known)
        try:
            _check_row_order(query, known)
            operators = [wrap_window_functions(operator) for operator in query.operators]
            return library_function(dataclasses.replace(query, operators=operators), *library_arguments)
        finally:
            _LETS.reset(token)

    return render_query_with_row_order_check


def _check_row_order(query: ir.Query, let_orders: Mapping[str, RowOrder]) -> None:
    """Check that the input rows of each operator that requires serialized rows are serialized."""
    order = _infer_row_order_of_source(query.source, let_orders)
    for operator in query.operators:
        check_input_order(operator, order)
        order = infer_output_order(operator, order)


def _infer_row_order_of_query(query: ir.Query, let_orders: Mapping[str, RowOrder]) -> RowOrder:
    inner = dict(let_orders)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            inner[name] = _infer_row_order_of_query(bound, inner)
    order = _infer_row_order_of_source(query.source, inner)
    for operator in query.operators:
        order = infer_output_order(operator, order)
    return order


def _infer_row_order_of_source(source: ir.Source, let_orders: Mapping[str, RowOrder]) -> RowOrder:
    if isinstance(source, ir.RangeSource):
        return RowOrder.SERIALIZED
    return let_orders.get(source.name, RowOrder.NONE) if isinstance(source, ir.TableRef) else RowOrder.NONE


def infer_output_order(operator: ir.Operator, input_order: RowOrder) -> RowOrder:
    """Return the order of the output rows of a query operator whose input rows have the order ``input_order``."""
    inner = operator.operator if isinstance(operator, WindowedOperator) else operator
    if isinstance(inner, TakeRows):
        return RowOrder.SERIALIZED if inner.keys else RowOrder.NONE if inner.random else input_order
    if isinstance(inner, _STARTING):
        return RowOrder.SERIALIZED
    if isinstance(inner, _ENDING):
        return RowOrder.NONE
    return input_order if isinstance(inner, _PRESERVING) or input_order is RowOrder.NONE else RowOrder.LOST


def check_input_order(operator: ir.Operator, input_order: RowOrder) -> None:
    """Check that the input rows of an operator are serialized, if the operator requires serialized rows.

    Raises:
        QueryError: the input is not serialized, or the emulator cannot preserve its order.
    """
    name = operator.keyword if isinstance(operator, SerializedInputOperator) else find_window_function_name(operator)
    if name is None or input_order is RowOrder.SERIALIZED or isinstance(operator, WindowedOperator):
        return
    if input_order is RowOrder.LOST:
        raise unsupported_error(
            f"{name} after an operator that does not preserve row order", "sort the rows again before it"
        )
    what = f"Operator '{name}'" if isinstance(operator, SerializedInputOperator) else f"Function '{name}'"
    raise semantic_error(
        f"{what} cannot be invoked in current context. Details: the row set must be serialized", inner="SEM0001"
    )
