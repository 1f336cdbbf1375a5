"""Access to the parse tree and to lowered nodes."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from duckdb_kql import ir

from emulators.kusto.extensions.library import reader


def get_rule_name(node: Any) -> str:
    """Return the name of a node's grammar rule."""
    return str(reader.cls(node))


def get_child_rules(node: Any) -> list[Any]:
    """Return the child rules of a node, without its tokens."""
    return list(reader.rule_children(node))


def find_rules(node: Any, kind: str) -> list[Any]:
    """Return the topmost nodes of a grammar rule in the tree of ``node``."""
    return list(reader.find_all(node, kind))


def get_source_position(node: Any) -> tuple[int, int]:
    """Return line and column, both from 1, of the first token of a node."""
    return node.start.line, node.start.column + 1


def iterate_nodes(root: Any) -> Iterator[Any]:
    """Yield ``root`` and every node below it once, without the contents of subqueries."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, ir.Query | type) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))
