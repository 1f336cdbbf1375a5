"""Limits of a GraphQL request: depth, cost and aliases, measured on the document before execution.

A field costs 1. Fields below a root list are multiplied by the page size, and fields below a list of a connection or a
surface (group of connections) by ten. Introspection fields have a separate limit and are not counted here.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)

from shared.graphql_api.paging import DEFAULT_SIZE, MAX_SIZE

MAX_DEPTH: Final = 12
MAX_COST: Final = 10_000
MAX_ALIASES: Final = 50
MAX_TOKENS: Final = 5_000
_ROOT_LISTS: Final = frozenset({"queries", "connections", "surfaces"})
_OWN_LISTS: Final = frozenset({"connections", "queries", "surfaces"})
_OWN_LIST_COST: Final = 10
_INT_DIGITS: Final = 11
_INTROSPECTION: Final = frozenset({"__schema", "__type"})


class _Weight(NamedTuple):
    depth: int
    cost: int


def find_exceeded_limit(
    document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]
) -> str | None:
    """Return an error message for the first limit that a GraphQL operation exceeds; None if it exceeds no limit.

    Args:
        document: validated document, without cycles of fragments.
        operation: operation to execute.
        variables: variables of the request, which can contain page sizes.
    """
    aliases = _count_aliases(document)
    if aliases > MAX_ALIASES:
        return f"The request has {aliases} aliases; at most {MAX_ALIASES} are allowed."
    depth, cost = _OperationMeter(document, operation, variables).measure_operation()
    if depth > MAX_DEPTH:
        return f"The request is {depth} fields deep; a depth of at most {MAX_DEPTH} is allowed."
    if cost > MAX_COST:
        return f"The request has a cost of {cost}; at most {MAX_COST} is allowed."
    return None


class _OperationMeter:
    """Meter of the depth and cost of a GraphQL operation; each fragment is measured once."""

    def __init__(
        self, document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> None:
        self._operation = operation
        defaults = {
            each.variable.name.value: int(each.default_value.value)
            for each in operation.variable_definitions or ()
            # Longer literals exceed the type Int and cannot be page sizes.
            if isinstance(each.default_value, IntValueNode) and len(each.default_value.value) <= _INT_DIGITS
        }
        self._variables = {**defaults, **variables}
        self._fragments = {
            each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
        }
        self._fragment_weights: dict[tuple[str, bool], _Weight] = {}

    def measure_operation(self) -> _Weight:
        """Return the nesting depth and the cost of the GraphQL operation."""
        return self._measure_selections(self._operation.selection_set, root=True)

    def _measure_selections(self, selections: SelectionSetNode, *, root: bool) -> _Weight:
        weights = [self._measure_selection(selection, root=root) for selection in selections.selections]
        return _Weight(max((each.depth for each in weights), default=0), sum(each.cost for each in weights))

    def _measure_selection(self, selection: Any, *, root: bool) -> _Weight:
        if isinstance(selection, FieldNode):
            return self._measure_field(selection, root=root)
        if isinstance(selection, FragmentSpreadNode):
            return self._measure_fragment(selection.name.value, root=root)
        return self._measure_selections(selection.selection_set, root=root)

    def _measure_fragment(self, name: str, *, root: bool) -> _Weight:
        key = (name, root)
        if key not in self._fragment_weights:
            self._fragment_weights[key] = self._measure_selections(self._fragments[name].selection_set, root=root)
        return self._fragment_weights[key]

    def _measure_field(self, field: FieldNode, *, root: bool) -> _Weight:
        name = field.name.value
        if name in _INTROSPECTION or field.selection_set is None:
            return _Weight(1, 1)
        subselections = self._measure_selections(field.selection_set, root=False)
        factor = self._read_page_size(field) if root and name in _ROOT_LISTS else 1
        if not root and name in _OWN_LISTS:
            factor = _OWN_LIST_COST
        return _Weight(1 + subselections.depth, 1 + factor * subselections.cost)

    def _read_page_size(self, field: FieldNode) -> int:
        for argument in field.arguments or ():
            if argument.name.value in ("first", "limit"):
                size = self._read_integer_value(argument.value)
                if size is not None:
                    return min(max(size, 0), MAX_SIZE)
        return DEFAULT_SIZE

    def _read_integer_value(self, node: Any) -> int | None:
        if isinstance(node, IntValueNode):
            return int(node.value)
        value = self._variables.get(node.name.value) if isinstance(node, VariableNode) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count_aliases(document: DocumentNode) -> int:
    count, pending = 0, [getattr(each, "selection_set", None) for each in document.definitions]
    while pending:
        selections = pending.pop()
        for selection in selections.selections if selections else ():
            count += isinstance(selection, FieldNode) and selection.alias is not None
            pending.append(getattr(selection, "selection_set", None))
    return count
