"""Filters as DuckDB can use them while it reads.

Kusto's ``==`` is false for a null where SQL's is null, and the translator writes that out. A ``where`` drops the row
either way, so the comparisons that stand at its top do without: these DuckDB compares with the smallest and largest
values of whole row groups.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql._state import State

from emulators.kusto.extensions.library import replace

macros: tuple[str, ...] = ()

type Operands = Sequence[tuple[ir.Expr, str]]

_TOP: State[frozenset[int]] = State("emulators.kusto.top_of_filter", frozenset)
"""Identities of the left operands of the comparisons at the top of the filter that is being written."""


def install() -> None:
    """Make the translator write filters so."""
    replace(translate, "render_operator", _rendering)
    replace(translate, "_apply_null_semantics", _bare)
    replace(translate, "_in_result", _bare_in)


def _rendering(default: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
        if not isinstance(op, ir.Where):
            return default(op, prev, cols)
        with _TOP.bound(_tops(op.predicate)):
            return default(op, prev, cols)

    return render_operator


def _tops(predicate: ir.Expr) -> frozenset[int]:
    """Return the left operands of the comparisons that must all hold, each of them read nowhere else in the filter."""
    counts = collections.Counter(map(id, _visits(predicate)))
    lefts = (each.left if isinstance(each, ir.BinaryOp) else each.value for each in _comparisons(predicate))
    return frozenset(id(left) for left in lefts if counts[id(left)] == 1)


def _comparisons(predicate: ir.Expr) -> Iterator[ir.BinaryOp | ir.InList]:
    if isinstance(predicate, ir.BinaryOp) and predicate.op == "and":
        yield from _comparisons(predicate.left)
        yield from _comparisons(predicate.right)
    elif isinstance(predicate, ir.BinaryOp | ir.InList):
        yield predicate


def _visits(root: object) -> Iterator[object]:
    """Yield a node as often as it is reached, its parts once."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node):
            yield node
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))


def _bare(default: Callable[..., str]) -> Callable[..., str]:
    def apply(rendered: str, when_null: str, operands: Operands) -> str:
        left, _ = operands[0]
        bare = when_null == "FALSE" and id(left) in _TOP.get()
        return rendered if bare else default(rendered, when_null, operands)

    return apply


def _bare_in(default: Callable[..., str]) -> Callable[..., str]:
    def in_result(sql: str, node: ir.InList, value: str) -> str:
        bare = not node.negated and id(node.value) in _TOP.get()
        return sql if bare else default(sql, node, value)

    return in_result
