"""Aggregations that depend on the order of their input: SQL does not preserve it, Kusto's lists do."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir, lower

from emulators.kusto.extensions.library import replace
from emulators.kusto.extensions.tabular import DistinctRows, TakeRows

ORDER_COLUMN = '"_kqlorder"'
ORDER_SENSITIVE = frozenset({"make_list", "make_list_if", "make_list_with_nulls", "makelist"})
_SORTING = (ir.Sort, ir.Top)
_UNORDERED = (ir.Summarize, ir.Join, ir.Lookup, ir.Union, ir.Distinct, ir.Count, DistinctRows)

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class OrderedSummarize(ir.Summarize):
    """``summarize`` over sorted rows with lists in the order of the rows."""


def install() -> None:
    """Mark these aggregations in every lowered query."""
    replace(lower, "_lower", _wrap_lower)


def _wrap_lower(default: Callable[..., ir.Query]) -> Callable[..., ir.Query]:
    def lower_query(*args: Any) -> ir.Query:
        query = default(*args)
        _mark(query, {}, set())
        return query

    return lower_query


def _mark(query: ir.Query, sorted_lets: Mapping[str, bool], seen: set[int]) -> bool:
    """Mark the aggregations of a query and its subqueries, and return whether its rows are sorted."""
    known = dict(sorted_lets)
    for name, bound in query.lets:
        known[name] = isinstance(bound, ir.Query) and _mark(bound, known, seen)
    for inner in _find_queries((query.source, query.operators), seen):
        _mark(inner, known, seen)
    is_sorted = isinstance(query.source, ir.TableRef) and known.get(query.source.name, False)
    for index, op in enumerate(query.operators):
        if type(op) is ir.Summarize and is_sorted and is_order_sensitive(op):
            query.operators[index] = OrderedSummarize(op.aggregates, op.by)
        is_sorted = _is_sorted_after(op, before=is_sorted)
    return is_sorted


def _is_sorted_after(op: ir.Operator, *, before: bool) -> bool:
    if isinstance(op, _SORTING) or (isinstance(op, TakeRows) and op.keys):
        return True
    return before and not isinstance(op, _UNORDERED)


def is_order_sensitive(op: ir.Summarize) -> bool:
    """Return whether an aggregate depends on the order of the rows."""
    calls = (node for node in _iterate_nodes(op.aggregates, set()) if isinstance(node, ir.FunctionCall))
    return any(call.name.lower() in ORDER_SENSITIVE for call in calls)


def _find_queries(root: object, seen: set[int]) -> Iterator[ir.Query]:
    return (node for node in _iterate_nodes(root, seen) if isinstance(node, ir.Query))


def _iterate_nodes(root: object, seen: set[int]) -> Iterator[object]:
    """Yield every node once, without the contents of subqueries."""
    stack: list[object] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, type) and id(node) not in seen:
            seen.add(id(node))
            yield node
            if not isinstance(node, ir.Query):
                stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))
