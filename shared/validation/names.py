"""Rules for names and ids, so that no two of them look alike and no text around them is displayed wrongly."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

MAX_NAME: Final = 256
MAX_COMPARED: Final = 64
"""Characters of a misspelt name that are compared with the known names."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that are displayed as nothing."""

_VARIATIONS: Final = frozenset((*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
"""Variation selectors, which change at most the form of the character before them."""

_EAST_ASIAN: Final = frozenset({"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"})
# What a regular expression can say of the rule, for the description of the API.
_PATTERN: Final = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$"


def find_broken_rule(text: str) -> str | None:
    """Return the rule that a name or id breaks, None for a sound one."""
    hidden = next((character for character in text if is_hidden(character)), None)
    if hidden is not None:
        place = text.index(hidden) + 1
        return f"must not hold control, format or invisible characters (U+{ord(hidden):04X} is character {place})"
    if text and unicodedata.category(text[0])[0] == "M":
        return "must not begin with a combining mark"
    if text != text.strip():
        return "must not begin or end with a space character"
    if not unicodedata.is_normalized("NFC", text):
        return "must be in Unicode normalization form C (NFC)"
    return None


def validate_name(text: str) -> str:
    """Return a name or id that keeps the rules, unchanged.

    Raises:
        ValueError: it breaks one.
    """
    if rule := find_broken_rule(text):
        raise ValueError(rule)
    return text


Name = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=MAX_NAME),
    AfterValidator(validate_name),
    Field(json_schema_extra={"pattern": _PATTERN}),
]
"""A name in the body of a request."""


def find_scripts(text: str) -> list[str]:
    """Return the scripts of a text's letters and digits, sorted; ASCII digits belong to every script.

    Names of scripts are the first words of Unicode's character names. The scripts that Chinese, Japanese and Korean
    mix count as one.
    """
    return sorted({_script(character) for character in text if _is_of_a_script(character)})


def to_identity_key(text: str) -> str:
    """Return a key that two ids share if they differ in case, width or compatibility forms only."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_hidden(character: str) -> bool:
    """Return whether a character is displayed as nothing, or changes how the text around it is displayed."""
    return unicodedata.category(character) in _HIDDEN or character in _BLANK or ord(character) in _VARIATIONS


def _is_of_a_script(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "L" or (category == "Nd" and not character.isascii())


def _script(character: str) -> str:
    first = unicodedata.name(character, "UNKNOWN").split(" ")[0]
    return "EAST ASIAN" if first in _EAST_ASIAN else first


def find_nearest_name(misspelt: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a misspelt one, None if none is similar.

    Letter case, underscores and hyphens are ignored.
    """
    folded = {_fold(name): name for name in known}
    close = get_close_matches(_fold(misspelt[:MAX_COMPARED]), folded, n=1)
    return folded[close[0]] if close else None


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
