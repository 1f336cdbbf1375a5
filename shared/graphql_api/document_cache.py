"""Cache of parsed and validated GraphQL documents.

This module is separate from ``service`` because parsing and validation depend on no caller and no data.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    SelectionSetNode,
    parse,
    print_ast,
    specified_rules,
    validate,
)
from graphql.language import Visitor, visit
from graphql.validation.rules import overlapping_fields_can_be_merged as overlapping

from shared.graphql_api.limits import MAX_DEPTH, MAX_TOKENS
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.text_formats.strict_json import MAX_DEPTH as MAX_JSON_DEPTH

MAX_CACHED_CHARACTERS: Final = 100_000
"""Maximum total length of the cached documents; a character needs up to 550 bytes of memory for syntax nodes."""
MAX_CACHED_LENGTH: Final = 20_000
"""Maximum length of a document that is cached."""
_MAX_ERRORS: Final = 10
_COST_FACTOR: Final = 32
"""Quotient of the time for validating a GraphQL document and the time for parsing JSON of the same length."""
_MAX_COMPARISONS: Final = 50_000
"""Maximum number of field comparisons during validation; the library's limit, ten times higher, takes seconds."""
_ABORTED: Final = "Validation aborted."
_PARSER_TOO_DEEP: Final = "nested too deeply"
"""Part of the parser's message, which does not name the limit."""
_TOO_MANY_SELECTIONS: Final = "The document selects the same fields too often; select each field once."
_INTROSPECTION_TOO_DEEP: Final = (
    "An introspection may nest `fields`, `inputFields`, `interfaces` and `possibleTypes` at most 2 deep."
)
_REPLACED_MESSAGES: Final = {
    _ABORTED: _TOO_MANY_SELECTIONS,
    "Maximum introspection depth exceeded": _INTROSPECTION_TOO_DEEP,
}
"""Messages of the library that do not name the limit, and the messages that replace them."""
_TOO_DEEP: Final = (
    f"The document is nested too deeply; a depth of at most {MAX_DEPTH} fields is allowed, "
    f"and literals of JSON with at most {MAX_JSON_DEPTH} levels."
)


@dataclass(frozen=True)
class PreparedDocument:
    """Parsed GraphQL document with its validation errors.

    Attributes:
        document: syntax tree of the document without repeated selections, which is validated, limited and executed;
            None if the text cannot be parsed or is nested too deeply.
        errors: syntax and validation errors; empty if the document can be executed.
    """

    document: DocumentNode | None
    errors: tuple[GraphQLError, ...] = ()

    @cached_property
    def field_names(self) -> frozenset[str]:
        """Names of all fields that the GraphQL document selects."""
        names = _FieldNames()
        if self.document is not None:
            visit(self.document, names)
        return frozenset(names.found)


class _FieldNames(Visitor):
    """Collector of the names of all fields in a document."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def enter_field(self, node: FieldNode, *_: object) -> None:
        self.found.add(node.name.value)


class DocumentCache:
    """Cache of GraphQL documents that are parsed and validated against one schema."""

    def __init__(self, schema: GraphQLSchema, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._schema = schema
        self._cache: OrderedDict[str, PreparedDocument] = OrderedDict()
        self._characters = 0
        overlapping.MAX_COMPLEXITY_BUDGET = _MAX_COMPARISONS
        self._runtime = runtime

    async def load(self, document_text: str) -> PreparedDocument:
        """Return a GraphQL document from the cache, or parse and validate it, in a worker thread if it is long."""
        cached = self._find_cached_document(document_text)
        if cached is not None:
            return cached
        prepared = await self._runtime.run_in_thread_if_large(
            len(document_text) * _COST_FACTOR, self._parse_and_validate, document_text
        )
        self._store_document(document_text, prepared)
        return prepared

    def load_in_current_thread(self, document_text: str) -> PreparedDocument:
        """Return a GraphQL document from the cache, or parse and validate it in the current thread."""
        prepared = self._find_cached_document(document_text) or self._parse_and_validate(document_text)
        self._store_document(document_text, prepared)
        return prepared

    def _find_cached_document(self, document_text: str) -> PreparedDocument | None:
        if document_text in self._cache:
            self._cache.move_to_end(document_text)
        return self._cache.get(document_text)

    def _store_document(self, document_text: str, prepared: PreparedDocument) -> None:
        if document_text in self._cache or len(document_text) > MAX_CACHED_LENGTH:
            return
        self._cache[document_text] = prepared
        self._characters += len(document_text)
        while self._characters > MAX_CACHED_CHARACTERS:
            evicted, _ = self._cache.popitem(last=False)
            self._characters -= len(evicted)

    def _parse_and_validate(self, document_text: str) -> PreparedDocument:
        try:
            document = remove_repeated_selections(parse(document_text, max_tokens=MAX_TOKENS))
            errors = validate(self._schema, document, specified_rules, max_errors=_MAX_ERRORS)
        except GraphQLError as error:
            if _PARSER_TOO_DEEP in error.message:
                return PreparedDocument(None, (GraphQLError(_TOO_DEEP),))
            # The traceback would keep all objects of the parser in memory.
            return PreparedDocument(None, (error.with_traceback(None),))
        except RecursionError:
            return PreparedDocument(None, (GraphQLError(_TOO_DEEP),))
        # The library aborts with the same message if fragments are nested too deeply. Without rules, it checks nothing
        # else.
        if errors and errors[-1].message == _ABORTED and validate(self._schema, document, ()):
            return PreparedDocument(None, (GraphQLError(_TOO_DEEP),))
        return PreparedDocument(document, tuple(map(_replace_error_message, errors)))


def _replace_error_message(error: GraphQLError) -> GraphQLError:
    """Return an error that names the exceeded limit, in place of the library's error, which does not name it.

    Return other errors unchanged.
    """
    message = _REPLACED_MESSAGES.get(error.message)
    return error if message is None else GraphQLError(message, error.nodes)


def remove_repeated_selections(document: DocumentNode) -> DocumentNode:
    """Return an equivalent GraphQL document in which no selection set contains the same selection twice.

    Raises:
        GraphQLError: if a selection set is empty, which the grammar does not allow, but the library's parser accepts.
        RecursionError: if the document is nested too deeply.
    """
    merging = _SelectionMerger()
    return replace(document, definitions=tuple(merging.merge(each).node for each in document.definitions))


class _MergedNode(NamedTuple):
    """Definition or selection of a GraphQL document without repeated subselections, and its number.

    Equal definitions and selections have equal numbers.
    """

    node: Any
    number: int


class _MergedSelectionSet(NamedTuple):
    """Selections of a GraphQL selection set without repetitions, and the number of the set.

    Equal selection sets have equal numbers.
    """

    selections: tuple[Any, ...]
    number: int


class _SelectionMerger:
    """Merger of repeated GraphQL selections.

    The merger assigns a number to each selection. Equal selections get the same number, so that comparing two of them
    only compares numbers.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def merge(self, node: Any) -> _MergedNode:
        """Remove repeated subselections of a definition or selection."""
        subselections: SelectionSetNode | None = getattr(node, "selection_set", None)
        if subselections is None:
            return _MergedNode(node, self._get_number_of_selection_key((*_build_selection_key(node), None)))
        if not subselections.selections:
            raise GraphQLError("Syntax Error: a selection set must contain at least one field.", subselections)
        selections, number = self._merge_selections(subselections.selections)
        prepared = replace(node, selection_set=replace(subselections, selections=selections))
        return _MergedNode(prepared, self._get_number_of_selection_key((*_build_selection_key(node), number)))

    def _merge_selections(self, selections: Sequence[Any]) -> _MergedSelectionSet:
        """Return the selections of a selection set without repetitions, and the number of the set."""
        cached: dict[int, Any] = {}
        for selection in selections:
            prepared, number = self.merge(selection)
            cached.setdefault(number, prepared)
        return _MergedSelectionSet(tuple(cached.values()), self._get_number_of_selection_key(tuple(cached)))

    def _get_number_of_selection_key(self, selection_key: object) -> int:
        """Return the number that was assigned to a selection's key; assign the next number to a new key."""
        return self._numbers.setdefault(selection_key, len(self._numbers))


def _build_selection_key(node: Any) -> tuple[object, ...]:
    """Return a key that identifies a selection by name, alias, arguments and directives, not by subselections."""
    directives = tuple(print_ast(each) for each in getattr(node, "directives", None) or ())
    if isinstance(node, FieldNode):
        arguments = tuple(print_ast(each) for each in node.arguments or ())
        return ("field", node.alias and node.alias.value, node.name.value, arguments, directives)
    if isinstance(node, FragmentSpreadNode):
        return ("spread", node.name.value, directives)
    condition = getattr(node, "type_condition", None)
    return (node.kind, condition and condition.name.value, directives)
