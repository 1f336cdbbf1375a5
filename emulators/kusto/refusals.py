"""Constructs that the translator takes and would answer differently from Data Explorer: refused by name instead."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import ir
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.decimals import fits
from emulators.kusto.errors import semantic_error, syntax_error, unsupported
from emulators.kusto.string_literals import UnreadableLiteralError, text_of
from emulators.kusto.timespans import TimespanRangeError, check_literal

_SHOWN = 60
_SETTABLE = frozenset({"materialized_view_shuffle_query"})
"""Request properties that a query may set: the translator ignores more, among them those that lift a restriction."""
_MOST_REPETITIONS = 1024
"""Where Data Explorer's strrep() ends; the translator's does not."""


def check_meaning(query: ir.Query) -> None:
    """Pass when nothing in the lowered query is known to be answered wrongly.

    Raises:
        QueryError: the construct, by name.
    """
    for node in _nodes(query):
        if isinstance(node, ir.FunctionCall):
            _check_call(node.name.lower(), node.args)
        elif isinstance(node, ir.Where) and isinstance(node.predicate, ir.Literal):
            _check_predicate(node.predicate)
        elif isinstance(node, ir.DataTable):
            _check_decimals(node)


def _check_call(name: str, arguments: Sequence[ir.Expr]) -> None:
    if name == "strrep" and len(arguments) > 1 and not _small(arguments[1]):
        raise unsupported("strrep() without a literal multiplier of at most 1024")


def _small(expression: ir.Expr) -> bool:
    value = expression.value if isinstance(expression, ir.Literal) else None
    return isinstance(value, int) and value <= _MOST_REPETITIONS


def _check_predicate(predicate: ir.Literal) -> None:
    """Pass for true and false: ``where a = 1`` names a value and compares nothing."""
    if predicate.kind not in ("bool", "null"):
        raise semantic_error(
            f"'where' operator: a predicate of type bool is expected, not {predicate.kind}", inner="SEM0001"
        )


def _check_decimals(table: ir.DataTable) -> None:
    kinds = [kind for _, kind in table.columns]
    for index, value in enumerate(table.values):
        if kinds[index % len(kinds)] == "decimal" and isinstance(value, ir.Literal) and isinstance(value.value, float):
            written = Decimal(repr(value.value))
            if not written.is_finite() or not fits(written):
                raise unsupported("datatable with decimals of more than nine digits behind the point")


def check_tokens(tokens: Sequence[Token]) -> None:
    """Pass when the text holds nothing that lowering loses and the translator then answers wrongly.

    That is decimal literals, which it takes for reals, strings whose text is not known for certain, timespans that
    cannot be kept in full, and ``set`` statements, which it ignores.

    Args:
        tokens: of the default channel, in order.

    Raises:
        QueryError: the construct, by name and place.
    """
    for token in tokens:
        check = _LITERALS.get(token.type)
        if check is not None:
            check(token.text, (token.line, token.column + 1))
    _check_settings(tokens)


def _check_settings(tokens: Sequence[Token]) -> None:
    begins = True
    for token, following in pairwise(tokens):
        if begins and token.type == KqlLexer.SET and following.text.lower() not in _SETTABLE:
            raise unsupported(f"set {following.text[:_SHOWN]}", position=(token.line, token.column + 1))
        begins = token.text == ";"


def _decimal(_text: str, position: tuple[int, int]) -> None:
    raise unsupported("decimal literals", position=position)


def _string(text: str, position: tuple[int, int]) -> None:
    try:
        text_of(text)
    except UnreadableLiteralError as error:
        raise syntax_error(f"{error} in a string literal", position) from error


def _timespan(text: str, position: tuple[int, int]) -> None:
    try:
        check_literal(text)
    except TimespanRangeError as error:
        raise unsupported(f"the literal {text[:_SHOWN]}", str(error), position) from error


_LITERALS: Mapping[int, Callable[[str, tuple[int, int]], None]] = {
    KqlLexer.DECIMALLITERAL: _decimal,
    KqlLexer.STRINGLITERAL: _string,
    KqlLexer.TIMESPANLITERAL: _timespan,
}


def _nodes(root: Any) -> Iterator[Any]:
    """Yield every node once; nodes are shared, so a walk without memory could take exponential time."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))
