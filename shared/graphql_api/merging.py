"""Selections that stand twice, taken once.

Execution merges them anyway, but validation compares each with each: thousands of copies of one field, which the limits
allow, would cost seconds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphql import DocumentNode, FieldNode, FragmentSpreadNode, SelectionSetNode, print_ast


def merged(document: DocumentNode) -> DocumentNode:
    """Return a document that means the same, without selections that repeat one beside them.

    Raises:
        RecursionError: it is nested too deeply.
    """
    merging = _Merging()
    return replace(document, definitions=tuple(merging.node(each)[0] for each in document.definitions))


class _Merging:
    """Numbers what it sees, so that comparing two selections is comparing two numbers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def node(self, node: Any) -> tuple[Any, int]:
        """Return a definition or selection with what stands below it merged, and its number."""
        below: SelectionSetNode | None = getattr(node, "selection_set", None)
        if below is None:
            return node, self._number((*_head(node), None))
        selections, number = self._selections(below.selections)
        made = replace(node, selection_set=replace(below, selections=selections))
        return made, self._number((*_head(node), number))

    def _selections(self, selections: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        kept: dict[int, Any] = {}
        for selection in selections:
            made, number = self.node(selection)
            kept.setdefault(number, made)
        return tuple(kept.values()), self._number(tuple(kept))

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


def _head(node: Any) -> tuple[object, ...]:
    """Return what tells a selection from others, beside what stands below it."""
    directives = tuple(print_ast(each) for each in getattr(node, "directives", None) or ())
    if isinstance(node, FieldNode):
        arguments = tuple(print_ast(each) for each in node.arguments or ())
        return ("field", node.alias and node.alias.value, node.name.value, arguments, directives)
    if isinstance(node, FragmentSpreadNode):
        return ("spread", node.name.value, directives)
    condition = getattr(node, "type_condition", None)
    return (node.kind, condition and condition.name.value, directives)
