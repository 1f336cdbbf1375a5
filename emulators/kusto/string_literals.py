r"""Parser of KQL string literals.

Forms and escapes follow the lexical grammar of the language's published parser (microsoft/Kusto-Query-Language): ``\a
\b \f \n \r \t \v``, the quotes and the backslash, ``\xHH``, ``\uHHHH``, ``\UHHHHHHHH`` and one to three octal digits up
to ``\377``. Verbatim literals (``@``) double their quotes. Literals between three backticks or three tildes have no
escapes. The prefix ``h`` hides a literal from traces; it is not part of the literal's text.
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
    """A string literal is malformed or ambiguous; the message contains the reason."""


def parse_string_literal(text: str) -> str:
    """Return the text that a KQL string literal represents.

    Raises:
        UnreadableLiteralError: the quotes do not match, or an escape is malformed, ambiguous or not a character.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise UnreadableLiteralError("the opening and closing quotes differ")
    if form["fence"]:
        return form["lines"]
    if form["doubled"]:
        return form["verbatim"].replace(form["doubled"] * 2, form["doubled"])
    return _unescape_text(form["escaped"])


def _unescape_text(body: str) -> str:
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_decode_escape, body)
    try:
        # Two \u escapes may be a surrogate pair.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise UnreadableLiteralError("an unpaired surrogate is not a character") from None


def _decode_escape(escape: re.Match[str]) -> str:
    for group in ("x", "u", "U"):
        if escape[group] is not None:
            return _decode_code_point(int(escape[group], 16), escape[0])
    if escape["octal"] is not None:
        return _decode_octal_escape(escape)
    plain = escape["plain"] or ""
    if plain not in _PLAIN:
        raise UnreadableLiteralError(f"\\{plain} is not a valid escape")
    return _PLAIN[plain]


def _decode_code_point(code_point: int, escape: str) -> str:
    try:
        character = chr(code_point)
    except (ValueError, OverflowError):
        character = "\ud800"
    if escape[1] == "U" and "\ud800" <= character <= "\udfff":
        raise UnreadableLiteralError(f"{escape} is not a Unicode character")
    return character


def _decode_octal_escape(escape: re.Match[str]) -> str:
    digits, after = escape["octal"], escape.string[escape.end() : escape.end() + 1]
    if len(digits) < _WHOLE_OCTAL and after in _DIGITS:
        raise UnreadableLiteralError(f"\\{digits} before the digit {after} is ambiguous; use three octal digits")
    return chr(int(digits, 8))
