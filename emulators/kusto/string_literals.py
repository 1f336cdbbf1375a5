r"""String literals of the query language and the text that each of them stands for.

Forms and escapes follow the lexical grammar of the language's published parser (microsoft/Kusto-Query-Language):
``\a \b \f \n \r \t \v``, the quotes and the backslash, ``\xHH``, ``\uHHHH``, ``\UHHHHHHHH`` and one to three octal
digits up to ``\377``; doubled quotes in verbatim literals (``@``); no escapes at all between three backticks or tildes;
``h`` before any of these hides the literal from traces and is no part of it.
"""

import re

_FORM = re.compile(
    r"""[hH]?(?:
        (?P<fence>```|~~~)(?P<lines>.*)(?P=fence)
        | @(?P<doubled>['"])(?P<verbatim>.*)(?P=doubled)
        | (?P<quote>['"])(?P<escaped>.*)(?P=quote)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2}|[0-7]{1,2})|(?P<plain>.)|$)",
    re.DOTALL,
)
_PLAIN = {"'": "'", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DIGITS = frozenset("0123456789")
_WHOLE_OCTAL = 3


class UnreadableLiteralError(ValueError):
    """The literal has no value that is known for certain; the message says why."""


def text_of(text: str) -> str:
    """Return what one literal, as it stands in a query, means.

    Raises:
        UnreadableLiteralError: an escape is malformed or ambiguous, or names no character.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise UnreadableLiteralError("the quotes do not match")
    if form["fence"]:
        return form["lines"]
    if form["doubled"]:
        return form["verbatim"].replace(form["doubled"] * 2, form["doubled"])
    return _unescaped(form["escaped"])


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_character, body)
    try:
        # Two \u escapes may be the halves of one character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise UnreadableLiteralError("half of a surrogate pair is no character") from None


def _character(escape: re.Match[str]) -> str:
    for group in ("x", "u", "U"):
        if escape[group] is not None:
            return _numbered(int(escape[group], 16), escape[0])
    if escape["octal"] is not None:
        return _octal(escape)
    plain = escape["plain"] or ""
    if plain not in _PLAIN:
        raise UnreadableLiteralError(f"\\{plain} is no escape")
    return _PLAIN[plain]


def _numbered(number: int, escape: str) -> str:
    try:
        character = chr(number)
    except (ValueError, OverflowError):
        character = "\ud800"
    if escape[1] == "U" and "\ud800" <= character <= "\udfff":
        raise UnreadableLiteralError(f"{escape} is no character")
    return character


def _octal(escape: re.Match[str]) -> str:
    digits, after = escape["octal"], escape.string[escape.end() : escape.end() + 1]
    if len(digits) < _WHOLE_OCTAL and after in _DIGITS:
        raise UnreadableLiteralError(f"\\{digits} before the digit {after} can be read in two ways")
    return chr(int(digits, 8))
