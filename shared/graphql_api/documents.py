"""Parsed and validated documents, the ones used last kept."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    parse,
    specified_rules,
    validate,
)
from graphql.language import Visitor, visit

from shared.graphql_api.limits import MAX_TOKENS

KEPT: Final = 500
MAX_KEPT_LENGTH: Final = 20_000
_MAX_ERRORS: Final = 10


@dataclass(frozen=True)
class Prepared:
    """A document with what is wrong with it.

    Attributes:
        document: None when the text does not parse.
        errors: empty for one that can run.
    """

    document: DocumentNode | None
    errors: tuple[GraphQLError, ...] = ()

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


class Documents:
    """Prepares documents for one schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._kept: OrderedDict[str, Prepared] = OrderedDict()

    def prepare(self, text: str) -> Prepared:
        """Return a document, parsed and validated; both cost much more than finding it again."""
        kept = self._kept.get(text)
        if kept is not None:
            self._kept.move_to_end(text)
            return kept
        made = self._made(text)
        if len(text) <= MAX_KEPT_LENGTH:
            self._kept[text] = made
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made

    def _made(self, text: str) -> Prepared:
        try:
            document = parse(text, max_tokens=MAX_TOKENS)
        except GraphQLSyntaxError as error:
            return Prepared(None, (error,))
        except RecursionError:
            return Prepared(None, (GraphQLError("The document is nested too deeply."),))
        try:
            return Prepared(document, tuple(validate(self._schema, document, specified_rules, max_errors=_MAX_ERRORS)))
        except RecursionError:
            return Prepared(document, (GraphQLError("The document is nested too deeply."),))
