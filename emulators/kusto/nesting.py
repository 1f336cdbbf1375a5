"""How deep expressions may nest that DuckDB binds more than once at each level: what is inside doubles every time.

Binding cannot be interrupted; a hundred bytes of such text would hold a thread for years.
"""

import dataclasses
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import too_complex

MOST_DOUBLINGS = 12


def check_nesting(query: ir.Query) -> None:
    """Pass when no expression of the lowered query would be bound more than thousands of times.

    Raises:
        QueryError: one would.
    """
    doublings: dict[int, int] = {}
    stack: list[Any] = [query]
    while stack:
        node = stack[-1]
        waiting = [each for each in _parts(node) if id(each) not in doublings]
        if waiting and id(node) not in doublings:
            doublings[id(node)] = 0  # seen; what refers back to it finds it so
            stack.extend(waiting)
            continue
        stack.pop()
        doublings[id(node)] = _doublings(node) + max((doublings[id(each)] for each in _parts(node)), default=0)
        if doublings[id(node)] > MOST_DOUBLINGS:
            raise too_complex("the query is nested too deeply")


def _doublings(node: Any) -> int:
    match node:
        case ir.InList() | ir.Between():
            return 2
        case ir.BinaryOp(op="/", right=right):
            return 0 if isinstance(right, ir.Literal | ir.ColumnRef | ir.Parameter) else 1
        case ir.FunctionCall(name=name):
            return 1 if name.lower() in ("todecimal", "make_timespan") else 0
    return 0


def _parts(node: Any) -> list[Any]:
    values = node if isinstance(node, list | tuple) else [getattr(node, each.name) for each in dataclasses.fields(node)]
    return [each for each in values if isinstance(each, list | tuple) or _is_node(each)]


def _is_node(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
