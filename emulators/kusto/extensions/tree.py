"""Functions that read the parse tree of a KQL query and its intermediate representation in the translator library."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from duckdb_kql import ir

from emulators.kusto.extensions.library import reader


def get_rule_name(node: Any) -> str:
    """Return the name of the grammar rule of a parse tree node."""
    return str(reader.cls(node))


def get_child_rules(node: Any) -> list[Any]:
    """Return those children of a parse tree node that are grammar rules, not tokens."""
    return list(reader.rule_children(node))


def list_nodes_by_rule(node: Any, rule_name: str) -> list[Any]:
    """Return the descendants of a node with the grammar rule ``rule_name``; do not search below a matching node."""
    return list(reader.find_all(node, rule_name))


def get_source_position(node: Any) -> tuple[int, int]:
    """Return line and column, both from 1, at which the text of a parse tree node starts."""
    return node.start.line, node.start.column + 1


def iterate_nodes(root: Any) -> Iterator[Any]:
    """Yield ``root`` and each node below it in the intermediate representation once; do not enter subqueries."""
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
