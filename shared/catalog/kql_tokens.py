"""Tokenizer of KQL texts in linear time.

All checks of KQL texts use this tokenizer, so they agree on where strings and comments begin and end.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

# Every repetition is possessive, and an unclosed string is a token. Otherwise, each later quote would search to the
# end of the text again, which takes quadratic time.
_OPAQUE = r"""
    (?P<comment> //[^\n]*+)
  | (?P<string>
        ```.*?``` | ~~~.*?~~~                        # strings of several lines
      | @"(?:[^"]|"")*+" | @'(?:[^']|'')*+'          # verbatim strings
      | "(?:\\.|[^"\\\n])*+" | '(?:\\.|[^'\\\n])*+'
    )
  | (?P<unclosed>
        ```.*+ | ~~~.*+ | @"(?:[^"]|"")*+ | @'(?:[^']|'')*+
      | "(?:\\.|[^"\\\n])*+ | '(?:\\.|[^'\\\n])*+
    )
"""
_VISIBLE = r"""
  | (?P<name> [^\W\d]\w*+)
  | (?P<number> \d\w*+)
  | (?P<space> \s++)
  | (?P<punctuation> .)
"""
_OPAQUE_TOKEN = re.compile(_OPAQUE, re.VERBOSE | re.DOTALL)
_TOKEN = re.compile(_OPAQUE + _VISIBLE, re.VERBOSE | re.DOTALL)
TYPED_LITERAL: Final = re.compile(
    r"\b(?:bool|boolean|int|int32|int64|long|real|double|decimal|date|datetime|time|timespan|guid|uuid|uniqueid|typeof)"
    r"[^\w!-~]*+\(",
    re.IGNORECASE,
)
"""Start of a typed literal, such as ``datetime(``.

The engine reads the text in these brackets as one literal up to the first ``)``, including quotation marks and opening
brackets.
"""


class TokenKind(StrEnum):
    """Kind of a token in a KQL text."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    UNCLOSED = "unclosed"
    PUNCTUATION = "punctuation"


class KqlToken(NamedTuple):
    """Token of a KQL text.

    Attributes:
        kind: kind of the token. Punctuation is one character; a number begins with a digit and has no dot. A string
            includes its quotes but not its prefix ``h``, which is a token of the kind name. An unclosed string extends
            to the end of its line, or to the end of the text if this form of string can span lines.
        text: characters of the token.
        start: offset of the first character.
    """

    kind: TokenKind
    text: str
    start: int


def tokenize(kql: str) -> Iterator[KqlToken]:
    """Yield the tokens of a KQL text in order, without white space and comments."""
    for found in _TOKEN.finditer(kql):
        kind = found.lastgroup
        if kind not in ("comment", "space"):
            yield KqlToken(TokenKind(kind or ""), found[0], found.start())


@lru_cache(maxsize=4)
def mask_literals(kql: str) -> str:
    """Return a KQL text of the same length in which spaces replace strings and comments.

    A string becomes a pair of quotes with spaces in between. An unclosed string is not replaced: no engine accepts it,
    and the checks must see all text that could be code. Several checks of one text use the cached result.
    """
    return _OPAQUE_TOKEN.sub(_mask_token, kql)


def _mask_token(match: re.Match[str]) -> str:
    text = match[0]
    if match.lastgroup == "unclosed":
        return text
    return " " * len(text) if match.lastgroup == "comment" else f"'{' ' * (len(text) - 2)}'"
