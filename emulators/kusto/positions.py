"""Finding the place in a query text that an error is about, when the error knows a name and not a place."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emulators.kusto.errors import QueryError

# A string that is not closed ends with the text: left unmatched, it would be searched anew for each later quote.
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
_PREAMBLE = frozenset({"let", "set", "declare", "alias", "restrict"})
_NESTING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class _Token(NamedTuple):
    text: str
    start: int
    named: bool
    """Whether the text is a name: a word, or what stands between ``['`` and ``']``."""


def placed(error: QueryError, text: str) -> QueryError:
    """Return an error with the place of its subject in the query text, or as it is when there is no such place.

    Args:
        error: with a ``subject``: the name, ``name()`` where it is called.
        text: the query.
    """
    subject = error.subject or _named_in(error.sentence)
    if error.position is not None or not subject:
        return error
    tokens = list(_tokens(text))
    found = _find(tokens, subject, declared=error.inner == "EMB0001")
    if found is None:
        return error
    operator = _operator(tokens, found) if error.sentence.startswith("Failed to resolve scalar") else ""
    return error.at(_position(text, tokens[found].start), operator)


def second_statement(text: str) -> tuple[int, int] | None:
    """Return where a second query begins in a text of several statements."""
    depth = queries = 0
    begins = True
    for token in _tokens(text):
        if begins and depth == 0 and token.text not in _PREAMBLE:
            queries += 1
            if queries > 1:
                return _position(text, token.start)
        begins = token.text == ";"
        depth += _NESTING.get(token.text, 0)
    return None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "bracketed" or match["bracketed"]:
            yield _Token(match["single"] or match["double"] or "", match.start(), named=True)
        elif not match["skip"]:
            yield _Token("''" if match["string"] else match[0], match.start(), named=bool(match["word"]))


def _named_in(sentence: str) -> str:
    named = _NAMED.search(sentence)
    return "" if named is None else named["name"] or f"{named['function']}()"


def _find(tokens: Sequence[_Token], subject: str, *, declared: bool) -> int | None:
    name = subject.removesuffix("()")
    places = [index for index, token in enumerate(tokens) if token.named and token.text == name]
    if subject.endswith("()"):
        return next((index for index in places if _following(tokens, index) == "("), None)
    if declared:
        return next((index for index in places if _begins(tokens, index)), None)
    return next((index for index in places if _is_reference(tokens, index)), places[0] if places else None)


def _following(tokens: Sequence[_Token], index: int) -> str:
    return tokens[index + 1].text if index + 1 < len(tokens) else ""


def _begins(tokens: Sequence[_Token], index: int) -> bool:
    """Whether a word begins an operator, or a statement, or is what a ``let`` binds."""
    return index == 0 or tokens[index - 1].text in ("|", ";", "(", "{", "let")


def _is_reference(tokens: Sequence[_Token], index: int) -> bool:
    """Whether a name is read here, and not called, assigned, declared or a member of something else."""
    before = tokens[index - 1].text if index else ""
    return before != "." and _following(tokens, index) not in ("=", "(", ":")


def _operator(tokens: Sequence[_Token], index: int) -> str:
    """Return the tabular operator that a token stands in: the word behind the last ``|`` on its level or above."""
    depth = 0
    for place in range(index - 1, 0, -1):
        depth = max(0, depth - _NESTING.get(tokens[place].text, 0))
        if depth == 0 and tokens[place].text == ";":
            break
        if depth == 0 and tokens[place].text == "|" and tokens[place + 1].named:
            return tokens[place + 1].text
    return ""


def _position(text: str, start: int) -> tuple[int, int]:
    line_start = text.rfind("\n", 0, start) + 1
    return text.count("\n", 0, start) + 1, start - line_start + 1
