"""Which rows are serialized, so that window functions may look at their neighbours.

See "serialize operator" of the Kusto documentation: ``range``, ``sort``, ``top``, ``top-hitters`` and ``getschema``
serialize; ``sample``, ``sample-distinct``, ``distinct``, ``join``, ``top-nested``, ``count``, ``summarize``,
``evaluate``, ``make-series`` end it; everything else keeps it.
"""

import contextvars
import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar

from duckdb_kql import ir, translate

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.grammar import NOTHING
from emulators.kusto.extensions.library import reader, replace
from emulators.kusto.extensions.names import NamesExpr
from emulators.kusto.extensions.pipeline import PipelineOperator, add_operator
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows
from emulators.kusto.extensions.tree import children, position
from emulators.kusto.extensions.window_plan import Partition
from emulators.kusto.extensions.windows import Windowed, function_in, windowed

SUPPORTED: tuple[str, ...] = ("serialize",)

macros: tuple[str, ...] = ()


class Order(Enum):
    """What is known of the order of rows."""

    SERIALIZED = "serialized"
    NONE = "none"
    LOST = "lost"
    """Serialized in Kusto, but this engine does not keep the order there."""


@dataclasses.dataclass(frozen=True)
class Serialize(PipelineOperator):
    """``serialize``: the rows as they come, in an order from now on."""

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the rows."""
        del cols
        return f"SELECT * FROM {prev}"  # noqa: S608  a generated name


class Serializing(PipelineOperator):
    """An operator whose result is serialized."""


class NeedsSerialized(PipelineOperator):
    """An operator that reads rows in their order, and keeps it."""

    keyword: ClassVar[str] = ""

    def partitioned(self, partition: Partition) -> "NeedsSerialized":
        """Return the operator that reads the rows of each group apart."""
        raise NotImplementedError


class Unserializing(PipelineOperator):
    """An operator whose result is not serialized, in Kusto as here."""


_KEEPING = (
    ir.Where,
    ir.Project,
    ir.Extend,
    ir.Take,
    ir.ProjectAway,
    ir.ProjectRename,
    ir.Parse,
    ir.MvExpand,
    SelectColumns,
    NeedsSerialized,
)
_STARTING = (ir.Sort, ir.Top, ir.GetSchema, Serialize, Serializing)
_ENDING = (ir.Summarize, ir.Count, ir.Distinct, ir.Join, ir.Union, DistinctRows, Unserializing)
_LETS: contextvars.ContextVar[Mapping[str, Order]] = contextvars.ContextVar("serialized_lets")
"""The order of each let in scope, while a query is rendered."""


def install() -> None:
    """Lower ``serialize``, and look at every query before it is rendered."""
    add_operator("SerializeOperator", _serialize)
    replace(translate, "_render_scoped", _prepared)  # every query passes here once


def _serialize(node: Any) -> Any:
    expressions = [reader.lower_named(child) for child in children(node)]
    if any(isinstance(each, NamesExpr) for each in expressions):
        raise unsupported("a list of names on the left of =", position=position(node))
    if len(expressions) == 1 and expressions[0].expr == ir.ColumnRef(NOTHING):
        return Serialize()
    return [Serialize(), ir.Extend(tuple(expressions))]


def _prepared(default: Callable[..., Any]) -> Callable[..., Any]:
    def render_scoped(query: ir.Query, *arguments: Any) -> Any:
        known = dict(_LETS.get({}))
        for name, bound in query.lets:
            if isinstance(bound, ir.Query):
                known[name] = _order(bound, known)
        token = _LETS.set(known)
        try:
            operators = [windowed(operator) for operator in _checked(query, known)]
            return default(dataclasses.replace(query, operators=operators), *arguments)
        finally:
            _LETS.reset(token)

    return render_scoped


def _checked(query: ir.Query, known: Mapping[str, Order]) -> list[ir.Operator]:
    order = _source_order(query.source, known)
    for operator in query.operators:
        check_order(operator, order)
        order = order_after(operator, order)
    return query.operators


def _order(query: ir.Query, known: Mapping[str, Order]) -> Order:
    inner = dict(known)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            inner[name] = _order(bound, inner)
    order = _source_order(query.source, inner)
    for operator in query.operators:
        order = order_after(operator, order)
    return order


def _source_order(source: ir.Source, known: Mapping[str, Order]) -> Order:
    if isinstance(source, ir.RangeSource):
        return Order.SERIALIZED
    return known.get(source.name, Order.NONE) if isinstance(source, ir.TableRef) else Order.NONE


def order_after(operator: ir.Operator, order: Order) -> Order:
    """Return what is known of the order of an operator's rows, given that of its input."""
    inner = operator.operator if isinstance(operator, Windowed) else operator
    if isinstance(inner, TakeRows):
        return Order.SERIALIZED if inner.keys else Order.NONE if inner.random else order
    if isinstance(inner, _STARTING):
        return Order.SERIALIZED
    if isinstance(inner, _ENDING):
        return Order.NONE
    return order if isinstance(inner, _KEEPING) or order is Order.NONE else Order.LOST


def check_order(operator: ir.Operator, order: Order) -> None:
    """Pass when the operator looks at no neighbours, or its input has an order.

    Raises:
        QueryError: the input has none, or this engine has lost it.
    """
    name = operator.keyword if isinstance(operator, NeedsSerialized) else function_in(operator)
    if name is None or order is Order.SERIALIZED or isinstance(operator, Windowed):
        return
    if order is Order.LOST:
        raise unsupported(f"{name} here", "the operator before it does not keep the order of rows; sort them again")
    what = f"Operator '{name}'" if isinstance(operator, NeedsSerialized) else f"Function '{name}'"
    raise semantic_error(
        f"{what} cannot be invoked in current context. Details: the row set must be serialized", inner="SEM0001"
    )
