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


def check_meaning(query: ir.Query) -> None:
    """Pass when nothing in the lowered query is known to be answered wrongly.

    Raises:
        QueryError: the construct, by name.
    """
    for node in _nodes(query):
        if isinstance(node, ir.FunctionCall) and len(node.args) >= _SIZE_ARGUMENT.get(node.name.lower(), 99):
            raise unsupported(f"{node.name}() with a maximum size")


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
