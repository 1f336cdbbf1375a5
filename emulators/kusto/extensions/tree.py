"""Reading the translator's parse tree."""

from typing import Any

from emulators.kusto.extensions.library import reader


def kind_of(node: Any) -> str:
    """Return the name of a node's grammar rule."""
    return str(reader.cls(node))


def children(node: Any) -> list[Any]:
    """Return the child rules of a node, without its tokens."""
    return list(reader.rule_children(node))


def find(node: Any, kind: str) -> list[Any]:
    """Return the topmost nodes of a grammar rule below ``node``, itself included."""
    return list(reader.find_all(node, kind))


def position(node: Any) -> tuple[int, int]:
    """Return line and column, from 1, of a node's first token."""
    return node.start.line, node.start.column + 1
