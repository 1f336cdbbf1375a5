"""Parsed and validated documents, the ones used last kept."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    SelectionSetNode,
    parse,
    print_ast,
    specified_rules,
    validate,
)
from graphql.language import Visitor, visit
from graphql.validation.rules import overlapping_fields_can_be_merged as overlapping

from shared.graphql_api.limits import MAX_TOKENS
from shared.worker_threads import run_in_worker

KEPT_CHARACTERS: Final = 100_000
"""Of the texts that are kept together: a character of a document becomes up to 550 bytes of nodes."""
MAX_KEPT_LENGTH: Final = 20_000
_MAX_ERRORS: Final = 10
_TIMES_JSON: Final = 32
"""Validating a character of a document takes about so much longer than reading one of JSON."""
_MAX_COMPARISONS: Final = 50_000
"""What validation may spend on comparing fields of one name; the library's own bound, ten times that, is seconds."""
_ABORTED: Final = "Validation aborted."
_TOO_MUCH: Final = "The document selects the same fields in too many ways; select each field once."
_TOO_DEEP: Final = "The document is nested too deeply."


@dataclass(frozen=True)
class PreparedDocument:
    """A document with what is wrong with it.

    Attributes:
        document: as it was sent; None when the text does not parse.
        runnable: the same, as it is validated and run.
        errors: empty for one that can run.
    """

    document: DocumentNode | None
    errors: tuple[GraphQLError, ...] = ()
    runnable: DocumentNode | None = None

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of all fields in the document."""
        names = _FieldNames()
        if self.document is not None:
            visit(self.document, names)
        return frozenset(names.found)


class _FieldNames(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def enter_field(self, node: FieldNode, *_: object) -> None:
        self.found.add(node.name.value)


class DocumentCache:
    """Prepares documents for one schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._kept: OrderedDict[str, PreparedDocument] = OrderedDict()
        self._characters = 0
        overlapping.MAX_COMPLEXITY_BUDGET = _MAX_COMPARISONS

    async def load(self, text: str) -> PreparedDocument:
        """Return a document as ``prepare`` does; a long one is parsed and validated outside the event loop."""
        kept = self._found(text)
        if kept is not None:
            return kept
        made = await run_in_worker(len(text) * _TIMES_JSON, self._made, text)
        self._keep(text, made)
        return made

    def prepare(self, text: str) -> PreparedDocument:
        """Return a document, parsed and validated; both cost much more than finding it again."""
        made = self._found(text) or self._made(text)
        self._keep(text, made)
        return made

    def _found(self, text: str) -> PreparedDocument | None:
        if text in self._kept:
            self._kept.move_to_end(text)
        return self._kept.get(text)

    def _keep(self, text: str, made: PreparedDocument) -> None:
        if text in self._kept or len(text) > MAX_KEPT_LENGTH:
            return
        self._kept[text] = made
        self._characters += len(text)
        while self._characters > KEPT_CHARACTERS:
            forgotten, _ = self._kept.popitem(last=False)
            self._characters -= len(forgotten)

    def _made(self, text: str) -> PreparedDocument:
        try:
            document = parse(text, max_tokens=MAX_TOKENS)
        except GraphQLSyntaxError as error:
            # Kept with its traceback it would hold all that the parser had in its hands.
            return PreparedDocument(None, (error.with_traceback(None),))
        except RecursionError:
            return PreparedDocument(None, (GraphQLError(_TOO_DEEP),))
        try:
            runnable = merge_selections(document)
            errors = validate(self._schema, runnable, specified_rules, max_errors=_MAX_ERRORS)
        except RecursionError:
            return PreparedDocument(document, (GraphQLError(_TOO_DEEP),))
        return PreparedDocument(document, tuple(map(_explained, errors)), runnable)


def _explained(error: GraphQLError) -> GraphQLError:
    return GraphQLError(_TOO_MUCH) if error.message == _ABORTED else error


def merge_selections(document: DocumentNode) -> DocumentNode:
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
        """Return a definition or selection with what stands below it merge_selections, and its number."""
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
