"""Functions that read the parse tree of a KQL query and its intermediate representation in the translator library."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from duckdb_kql import ir

from emulators.kusto.errors import LineAndColumn
from emulators.kusto.extensions.library import reader

type ParseNode = Any
"""Node of the parse tree of a KQL text; the classes of the nodes are generated and untyped."""
type IrNode = Any
"""Part of a query in the intermediate representation: an object, or a tuple of such parts."""


def get_rule_name(node: ParseNode) -> str:
    """Return the name of the grammar rule of a parse tree node."""
    return str(reader.cls(node))


def get_child_rules(node: ParseNode) -> list[ParseNode]:
    """Return those children of a parse tree node that are grammar rules, not tokens."""
    return list(reader.rule_children(node))


def list_nodes_by_rule(node: ParseNode, rule_name: str) -> list[ParseNode]:
    """Return the descendants of a node with the grammar rule ``rule_name``; do not search below a matching node."""
    return list(reader.find_all(node, rule_name))


def get_line_and_column(node: ParseNode) -> LineAndColumn:
    """Return the line and column at which the text of a parse tree node starts."""
    return node.start.line, node.start.column + 1


def iterate_nodes(root: IrNode) -> Iterator[IrNode]:
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
