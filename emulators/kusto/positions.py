"""Search in a query text for the position of a name that an error mentions, and for calls of functions."""

import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from emulators.kusto.errors import LineAndColumn, QueryError

# An unclosed string matches up to the end of the text; otherwise each later quote would start another search.
_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\r\n]*)
    | (?P<bracketed>\[\s*(?:'(?P<single>[^'\\\r\n]*)'|"(?P<double>[^"\\\r\n]*)")\s*\])
    | (?P<string>[hH]?(?:
        ```.*?(?:```|\Z) | ~~~.*?(?:~~~|\Z) | @"(?:""|[^"])*+(?:"|\Z) | @'(?:''|[^'])*+(?:'|\Z)
        | "(?:\\.|[^"\\])*+(?:"|\Z) | '(?:\\.|[^'\\])*+(?:'|\Z)
    ))
    | (?P<word>(?:mv|make|parse|sample|top|graph|project|partition|macro)-[a-z]+(?:-[a-z]+)?|[A-Za-z_$][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<sign>==|=~|!=|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(r"named '(?P<name>[^']+)'|[Ff]unction '(?P<function>\w+)'")
_NESTING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class _Token(NamedTuple):
    text: str
    start: int
    named: bool
    """True if the text is a name: a word, or the content of ``['...']``."""


def find_and_add_position(error: QueryError, kql_text: str) -> QueryError:
    """Return a copy of an error with the line and column of the name that the error mentions.

    The error is returned unchanged if it already has a position or if the query does not contain the name.

    Args:
        error: error whose attribute ``subject`` is the name to search, ``name()`` for a call.
        kql_text: KQL text of the query.
    """
    subject = error.subject or _get_name_in_message_or_empty(error.sentence)
    if error.position is not None or not subject:
        return error
    tokens = list(_tokenize(kql_text))
    found = _find_subject_token_index(tokens, subject, is_declared=error.inner == "EMB0001")
    if found is None:
        return error
    operator = (
        _get_enclosing_operator_name_or_empty(tokens, found)
        if error.sentence.startswith("Failed to resolve scalar")
        else ""
    )
    return error.with_position(_compute_line_and_column(kql_text, tokens[found].start), operator)


def has_call_of_any_function(kql_text: str, function_names: Container[str]) -> bool:
    """Return whether a KQL text calls one of the given functions; comments and string literals are ignored."""
    tokens = list(_tokenize(kql_text))
    return any(
        token.named and token.text in function_names and _get_next_token_text_or_empty(tokens, index) == "("
        for index, token in enumerate(tokens)
    )


def _tokenize(kql_text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(kql_text):
        if match.lastgroup == "bracketed" or match["bracketed"]:
            yield _Token(match["single"] or match["double"] or "", match.start(), named=True)
        elif not match["skip"]:
            yield _Token("''" if match["string"] else match[0], match.start(), named=bool(match["word"]))


def _get_name_in_message_or_empty(message: str) -> str:
    named = _NAMED.search(message)
    return "" if named is None else named["name"] or f"{named['function']}()"


def _find_subject_token_index(tokens: Sequence[_Token], subject: str, *, is_declared: bool) -> int | None:
    """Return the index of the token that an error about ``subject`` concerns; None if the query has no such token.

    ``subject`` is a name, or ``name()`` for a call. ``is_declared`` is True if the token must start a query
    operator or statement, or be a name that a ``let`` declares.
    """
    name = subject.removesuffix("()")
    places = [index for index, token in enumerate(tokens) if token.named and token.text == name]
    if subject.endswith("()"):
        return next((index for index in places if _get_next_token_text_or_empty(tokens, index) == "("), None)
    if is_declared:
        return next((index for index in places if _is_statement_start(tokens, index)), None)
    return next((index for index in places if _is_value_reference(tokens, index)), places[0] if places else None)


def _get_next_token_text_or_empty(tokens: Sequence[_Token], index: int) -> str:
    return tokens[index + 1].text if index + 1 < len(tokens) else ""


def _is_statement_start(tokens: Sequence[_Token], index: int) -> bool:
    """Return whether a token starts a query operator or a statement, or is a name that a ``let`` declares."""
    return index == 0 or tokens[index - 1].text in ("|", ";", "(", "{", "let")


def _is_value_reference(tokens: Sequence[_Token], index: int) -> bool:
    """Return whether a query reads the value of a name, as a column or variable.

    The result is False if the name is called, assigned or declared, or is a property of another value.
    """
    before = tokens[index - 1].text if index else ""
    return before != "." and _get_next_token_text_or_empty(tokens, index) not in ("=", "(", ":")


def _get_enclosing_operator_name_or_empty(tokens: Sequence[_Token], index: int) -> str:
    """Return the name of the query operator that contains a token.

    The name of the operator is the word after the last ``|`` before the token, on the same or an outer level of
    brackets.
    """
    depth = 0
    for place in range(index - 1, 0, -1):
        depth = max(0, depth - _NESTING.get(tokens[place].text, 0))
        if depth == 0 and tokens[place].text == ";":
            break
        if depth == 0 and tokens[place].text == "|" and tokens[place + 1].named:
            return tokens[place + 1].text
    return ""


def _compute_line_and_column(text: str, offset: int) -> LineAndColumn:
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1
