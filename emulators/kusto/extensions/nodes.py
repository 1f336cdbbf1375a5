"""Walking what the translator has lowered."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from duckdb_kql import ir


def nodes(root: Any) -> Iterator[Any]:
    """Yield every node below and including ``root`` once, but for what is in a nested query."""
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
