"""Constructs that the translator takes and would answer differently from Data Explorer: refused by name instead."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import ir

from local.kusto.errors import unsupported

_SIZE_ARGUMENT: Mapping[str, int] = {"make_list": 2, "make_set": 2, "make_list_if": 3, "make_set_if": 3}
"""Aggregates whose argument of this position bounds their size; the translator drops it."""
_MOST_REPETITIONS = 1024
"""Where Data Explorer's strrep() ends; the translator's does not."""


def check_meaning(query: ir.Query) -> None:
    """Pass when nothing in the lowered query is known to be answered wrongly.

    Raises:
        QueryError: the construct, by name.
    """
    for node in _nodes(query):
        if isinstance(node, ir.FunctionCall):
            _check_call(node.name.lower(), node.args)


def _check_call(name: str, arguments: Sequence[ir.Expr]) -> None:
    position = _SIZE_ARGUMENT.get(name)
    if position is not None and len(arguments) >= position:
        raise unsupported(f"{name}() with a maximum size")
    if name == "strrep" and len(arguments) > 1 and not _small(arguments[1]):
        raise unsupported("strrep() without a literal multiplier of at most 1024")


def _small(expression: ir.Expr) -> bool:
    value = expression.value if isinstance(expression, ir.Literal) else None
    return isinstance(value, int) and value <= _MOST_REPETITIONS


def check_tokens(tokens: Sequence[Token]) -> None:
    """Pass when the text holds no ``(a, b) = f(...)``: the translator would name the columns wrongly.

    Args:
        tokens: of the default channel, in order.

    Raises:
        QueryError: the construct, by name and place.
    """
    for token, following in itertools.pairwise(tokens):
        if token.text == ")" and following.text == "=":
            raise unsupported("a list of names on the left of =", position=(following.line, following.column + 1))


def _nodes(root: ir.Query) -> Iterator[Any]:
    """Yield every node once; nodes are shared, so a walk without memory could take exponential time."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))
