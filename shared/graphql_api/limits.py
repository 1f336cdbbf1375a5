"""Limits of a GraphQL request: depth, cost, aliases and rows, measured on the document before execution.

A field costs 1. Fields below a root list are multiplied by the page size, and fields below a list of a connection or a
surface (group of connections) by ten. The lists ``parameters`` and ``columns`` of a query cost as much as one item, so
that pages of 500 queries can contain them; only the number of fields in the result limits them. Fields below
introspection fields do not count. An operation with introspection fields (``__schema``, ``__type``) must not have other
fields, nor aliases that would repeat its lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from graphql import (
    DefinitionNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)

from shared.graphql_api.paging import DEFAULT_SIZE, MAX_SIZE
from shared.warm_queries.service import DEFAULT_LIMIT, MAX_LIMIT

MAX_DEPTH: Final = 12
MAX_COST: Final = 10_000
MAX_ALIASES: Final = 50
MAX_TOKENS: Final = 5_000
MAX_ROWS: Final = MAX_LIMIT
"""Maximum sum of the limits of all queries that one operation executes."""

MAX_NESTED_LIST_FIELDS: Final = 200_000
"""Maximum number of fields that the items of all lists inside the items of one result have together.

These are the lists of connections, surfaces (groups of connections) and queries.
"""

MAX_MUTATION_LIST_FIELDS: Final = 10_000
"""Maximum number of fields that the items of all lists ``columns`` in the result of a mutation have together.

It is lower than :data:`MAX_NESTED_LIST_FIELDS`, because mutations are executed in the event loop.
"""

MAX_TYPES: Final = 5
"""Maximum number of ``__type`` fields of an introspection."""

_ROOT_LISTS: Final = frozenset({"queries", "connections", "surfaces"})
_NESTED_LISTS: Final = frozenset({"connections", "queries", "surfaces"})
_NESTED_LIST_COST: Final = 10
_QUERY_LISTS: Final = frozenset({"parameters", "columns"})
_INT_DIGITS: Final = 11
_INTROSPECTION: Final = frozenset({"__schema", "__type"})
_INTROSPECTION_ROOT: Final = _INTROSPECTION | {"__typename"}


class _Weight(NamedTuple):
    """Nesting depth and cost of a part of an operation, and number of rows that it requests."""

    depth: int
    cost: int
    rows: int = 0


def find_exceeded_limit_message(
    document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]
) -> str | None:
    """Return an error message for the first limit that a GraphQL operation exceeds; None if it exceeds no limit.

    Args:
        document: validated document, without cycles of fragments.
        operation: operation to execute.
        variables: variables of the request, which can contain page sizes.
    """
    if is_introspection(document, operation) and (rule := _find_introspection_error_message(document, operation)):
        return rule
    aliases = _count_aliases(document.definitions)
    if aliases > MAX_ALIASES:
        return f"The request has {aliases} aliases; at most {MAX_ALIASES} are allowed."
    depth, cost, rows = _OperationMeter(operation, _map_fragments(document), variables).measure_operation()
    if depth > MAX_DEPTH:
        return f"The request is {depth} fields deep; a depth of at most {MAX_DEPTH} is allowed."
    if cost > MAX_COST:
        return f"The request has a cost of {cost}; at most {MAX_COST} is allowed."
    if rows > MAX_ROWS:
        return (
            f"The arguments `limit` of executeQuery ({DEFAULT_LIMIT} if omitted) add up to {rows} rows; "
            f"at most {MAX_ROWS} are allowed."
        )
    return None


def estimate_result_fields(
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
    longest_nested_list_length: int,
) -> int:
    """Return an upper bound of the number of fields in the result of a GraphQL operation.

    Args:
        document: validated document, without cycles of fragments.
        operation: operation to execute.
        variables: variables of the request, which can contain page sizes.
        longest_nested_list_length: length of the longest list of a connection or surface in the workspace catalog.
    """
    fragments = _map_fragments(document)
    return _OperationMeter(operation, fragments, variables, longest_nested_list_length).measure_operation().cost


def count_fields_of_item(
    list_nodes: Iterable[FieldNode], operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> int:
    """Return how many fields each item of a list has in the result; items of lists inside the item do not count.

    Args:
        list_nodes: nodes of the field that returns the list.
        operation: operation that is executed.
        fragments: fragments of its document, by name.
    """
    meter = _OperationMeter(operation, fragments, {}, nested_list_cost=0)
    return sum(meter.measure_selections(node.selection_set).cost for node in list_nodes if node.selection_set)


def is_introspection(document: DocumentNode, operation: OperationDefinitionNode) -> bool:
    """Return whether a GraphQL operation selects ``__schema`` or ``__type``."""
    return any(field.name.value in _INTROSPECTION for field in _iterate_root_fields(document, operation))


def _find_introspection_error_message(document: DocumentNode, operation: OperationDefinitionNode) -> str | None:
    """Return an error message for an introspection that reads the schema repeatedly or together with other data.

    Return None for an allowed introspection.
    """
    fields = list(_iterate_root_fields(document, operation))
    if any(field.name.value not in _INTROSPECTION_ROOT for field in fields):
        return "Fields `__schema` and `__type` cannot be combined with other fields; send them in a separate request."
    types = [field for field in fields if field.name.value == "__type"]
    if len(types) > MAX_TYPES:
        return f"The request has {len(types)} `__type` fields; at most {MAX_TYPES} are allowed."
    if _count_aliases((operation, *_map_fragments(document).values())) > sum(
        field.alias is not None for field in types
    ):
        return "An introspection can use aliases only for `__type`."
    return None


def _iterate_root_fields(document: DocumentNode, operation: OperationDefinitionNode) -> Iterator[FieldNode]:
    """Yield the fields that an operation selects at the root, also in fragments; each fragment is read once."""
    fragments = _map_fragments(document)
    pending = [operation.selection_set]
    while pending:
        for selection in pending.pop().selections:
            if isinstance(selection, FieldNode):
                yield selection
            elif isinstance(selection, InlineFragmentNode):
                pending.append(selection.selection_set)
            elif isinstance(selection, FragmentSpreadNode) and selection.name.value in fragments:
                pending.append(fragments.pop(selection.name.value).selection_set)


def _map_fragments(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    return {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}


class _OperationMeter:
    """Meter of the depth and cost of a GraphQL operation; each fragment is measured once.

    Args:
        operation: operation to measure.
        fragments: fragments of its document by name, without cycles.
        variables: variables of the request.
        nested_list_cost: number of items that are assumed for each list that belongs to a connection or surface.
    """

    def __init__(
        self,
        operation: OperationDefinitionNode,
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: Mapping[str, Any],
        nested_list_cost: int = _NESTED_LIST_COST,
    ) -> None:
        self._nested_list_cost = nested_list_cost
        self._operation = operation
        defaults = {
            each.variable.name.value: int(each.default_value.value)
            for each in operation.variable_definitions or ()
            # Longer literals exceed the type Int and cannot be page sizes.
            if isinstance(each.default_value, IntValueNode) and len(each.default_value.value) <= _INT_DIGITS
        }
        self._variables = {**defaults, **variables}
        self._fragments = fragments
        self._fragment_weights: dict[tuple[str, bool], _Weight] = {}

    def measure_operation(self) -> _Weight:
        """Return the nesting depth and the cost of the GraphQL operation, and the number of rows that it requests."""
        return self.measure_selections(self._operation.selection_set, is_root=True)

    def measure_selections(self, selections: SelectionSetNode, *, is_root: bool = False) -> _Weight:
        """Return the depth and cost of selections; ``is_root`` is True for the selections at the operation's root."""
        weights = [self._measure_selection(selection, is_root=is_root) for selection in selections.selections]
        return _Weight(
            max((each.depth for each in weights), default=0),
            sum(each.cost for each in weights),
            sum(each.rows for each in weights),
        )

    def _measure_selection(self, selection: Any, *, is_root: bool) -> _Weight:
        if isinstance(selection, FieldNode):
            return self._measure_field(selection, is_root=is_root)
        if isinstance(selection, FragmentSpreadNode):
            return self._measure_fragment(selection.name.value, is_root=is_root)
        return self.measure_selections(selection.selection_set, is_root=is_root)

    def _measure_fragment(self, fragment_name: str, *, is_root: bool) -> _Weight:
        key = (fragment_name, is_root)
        if key not in self._fragment_weights:
            self._fragment_weights[key] = self.measure_selections(
                self._fragments[fragment_name].selection_set, is_root=is_root
            )
        return self._fragment_weights[key]

    def _measure_field(self, field: FieldNode, *, is_root: bool) -> _Weight:
        name = field.name.value
        if name in _INTROSPECTION or field.selection_set is None:
            return _Weight(1, 1)
        subselections = self.measure_selections(field.selection_set, is_root=False)
        factor = (
            self._read_first_or_limit_argument(field, DEFAULT_SIZE, MAX_SIZE) if is_root and name in _ROOT_LISTS else 1
        )
        if not is_root and name in _NESTED_LISTS:
            factor = self._nested_list_cost
        if name in _QUERY_LISTS:
            factor = min(self._nested_list_cost, 1)
        rows = (
            self._read_first_or_limit_argument(field, DEFAULT_LIMIT, MAX_LIMIT)
            if is_root and name == "executeQuery"
            else 0
        )
        return _Weight(1 + subselections.depth, 1 + factor * subselections.cost, rows)

    def _read_first_or_limit_argument(self, field: FieldNode, default_size: int, max_size: int) -> int:
        """Return the argument ``first`` or ``limit`` of a field, from 0 to ``max_size``; the default without one."""
        for argument in field.arguments or ():
            if argument.name.value in ("first", "limit"):
                size = self._read_integer_value(argument.value)
                if size is not None:
                    return min(max(size, 0), max_size)
        return default_size

    def _read_integer_value(self, node: Any) -> int | None:
        """Return the value of a literal or variable; None if it is not an integer."""
        if isinstance(node, IntValueNode):
            return int(node.value)
        value = self._variables.get(node.name.value) if isinstance(node, VariableNode) else None
        if isinstance(value, float) and value.is_integer():
            return int(value)  # GraphQL accepts 5.0 as an integer
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count_aliases(definitions: Iterable[DefinitionNode]) -> int:
    count, pending = 0, [getattr(each, "selection_set", None) for each in definitions]
    while pending:
        selections = pending.pop()
        for selection in selections.selections if selections else ():
            count += isinstance(selection, FieldNode) and selection.alias is not None
            pending.append(getattr(selection, "selection_set", None))
    return count
