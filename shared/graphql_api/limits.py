"""How much one request may ask for: depth, cost, aliases; counted on the document before anything runs.

A field costs 1. What stands below a root list costs as often as its page is long; below a list of a surface or of a
connection ten times. Introspection has a limit of its own and is not counted here.
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
    """Return which limit a valid operation breaks, as a sentence; None when it keeps them all.

    Args:
        document: validated, so that its fragments make no cycle.
        operation: the one that is to run.
        variables: as the client sent them; page sizes are read from them.
    """
    aliases = _aliases(document)
    if aliases > MAX_ALIASES:
        return f"The request has {aliases} aliases; at most {MAX_ALIASES} are allowed."
    depth, cost = _Measure(document, operation, variables).operation()
    if depth > MAX_DEPTH:
        return f"The request is {depth} fields deep; a depth of at most {MAX_DEPTH} is allowed."
    if cost > MAX_COST:
        return f"The request has a cost of {cost}; at most {MAX_COST} is allowed."
    return None


class _Measure:
    """Weighs selections; each fragment once, however often it is spread."""

    def __init__(
        self, document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> None:
        self._operation = operation
        defaults = {
            one.variable.name.value: int(one.default_value.value)
            for one in operation.variable_definitions or ()
            # Longer ones fit no Int, and so are no page's size.
            if isinstance(one.default_value, IntValueNode) and len(one.default_value.value) <= _INT_DIGITS
        }
        self._variables = {**defaults, **variables}
        self._fragments = {
            each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
        }
        self._known: dict[tuple[str, bool], _Weight] = {}

    def operation(self) -> _Weight:
        """Return the weight of the whole operation."""
        return self._selections(self._operation.selection_set, root=True)

    def _selections(self, selections: SelectionSetNode, *, root: bool) -> _Weight:
        weights = [self._selection(selection, root=root) for selection in selections.selections]
        return _Weight(max((one.depth for one in weights), default=0), sum(one.cost for one in weights))

    def _selection(self, selection: Any, *, root: bool) -> _Weight:
        if isinstance(selection, FieldNode):
            return self._field(selection, root=root)
        if isinstance(selection, FragmentSpreadNode):
            return self._fragment(selection.name.value, root=root)
        return self._selections(selection.selection_set, root=root)

    def _fragment(self, name: str, *, root: bool) -> _Weight:
        key = (name, root)
        if key not in self._known:
            self._known[key] = self._selections(self._fragments[name].selection_set, root=root)
        return self._known[key]

    def _field(self, field: FieldNode, *, root: bool) -> _Weight:
        name = field.name.value
        if name in _INTROSPECTION or field.selection_set is None:
            return _Weight(1, 1)
        below = self._selections(field.selection_set, root=False)
        times = self._page_size(field) if root and name in _ROOT_LISTS else 1
        if not root and name in _OWN_LISTS:
            times = _OWN_LIST_COST
        return _Weight(1 + below.depth, 1 + times * below.cost)

    def _page_size(self, field: FieldNode) -> int:
        for argument in field.arguments or ():
            if argument.name.value in ("first", "limit"):
                size = self._number(argument.value)
                if size is not None:
                    return min(max(size, 0), MAX_SIZE)
        return DEFAULT_SIZE

    def _number(self, node: Any) -> int | None:
        if isinstance(node, IntValueNode):
            return int(node.value)
        value = self._variables.get(node.name.value) if isinstance(node, VariableNode) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _aliases(document: DocumentNode) -> int:
    count, waiting = 0, [getattr(each, "selection_set", None) for each in document.definitions]
    while waiting:
        selections = waiting.pop()
        for selection in selections.selections if selections else ():
            count += isinstance(selection, FieldNode) and selection.alias is not None
            waiting.append(getattr(selection, "selection_set", None))
    return count
