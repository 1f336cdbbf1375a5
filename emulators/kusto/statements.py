"""Batches: query texts that contain several query statements, each with its own results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.several_results import MAX_RESULTS

_OTHER_STATEMENTS = frozenset({"let", "set", "declare", "alias", "restrict"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class StatementSpan(NamedTuple):
    """Indexes of the first character of a query statement, and of the character after its end."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """Position of one result among the results of a query text.

    Attributes:
        statement: index of the query statement.
        part: index of the result within the statement.
    """

    statement: int = 0
    part: int = 0


FIRST_RESULT = ResultPlace()


def list_statement_spans(tokens: Sequence[Token]) -> list[StatementSpan]:
    """Return the span of each query statement in the text.

    Args:
        tokens: tokens of the text without comments and white space.

    Raises:
        QueryError: the text has too many query statements.
    """
    found = [
        StatementSpan(statement[0].start, statement[-1].stop + 1)
        for statement in _iterate_statements(tokens)
        if statement[0].text.lower() not in _OTHER_STATEMENTS
    ]
    if len(found) > MAX_RESULTS:
        raise unsupported_error(
            f"more than {MAX_RESULTS} query statements in one text", "send them in several requests"
        )
    return found


def blank_other_statements(kql_text: str, spans: Sequence[StatementSpan], chosen_index: int) -> str:
    """Replace all query statements except one by blanks, so that positions in the text do not change.

    ``chosen_index`` is the index of the statement that remains.
    """
    for index, (start, end) in enumerate(spans):
        if index != chosen_index:
            blanks = "".join(each if each == "\n" else " " for each in kql_text[start:end])
            kql_text = kql_text[:start] + blanks + kql_text[end:]
    return kql_text


def _iterate_statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement, including the semicolon at its end."""
    statement: list[Token] = []
    depth = 0
    for token in tokens:
        if token.type == Token.EOF:
            break
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        is_end = token.text == ";" and depth <= 0
        if statement or not is_end:
            statement.append(token)
        if is_end and statement:
            yield statement
            statement = []
    if statement:
        yield statement
