"""Rules for names and ids: no look-alikes, and no characters that change the display of the surrounding text."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

MAX_NAME: Final = 256
MAX_COMPARED: Final = 64
"""Maximum number of characters of a misspelt name that are compared with the known names, to limit the time."""
_MAX_NEAREST: Final = 3
_MIN_SIMILARITY: Final = 0.3
"""Similarity of a name, 0 to 1, that is worth a suggestion if the caller can select from several."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible characters that Unicode classes as letters, marks or symbols."""

_VARIATIONS: Final = frozenset((*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
"""Variation selectors, which only change the form of the previous character."""

_EAST_ASIAN: Final = frozenset({"BOPOMOFO", "CJK", "HANGUL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"})
# A regular expression can state only a part of the rules; it is shown in the OpenAPI document.
_PATTERN: Final = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$"


def find_name_error(text: str) -> str | None:
    """Return an error message if a name or id has hidden characters, outer spaces or is not in NFC; None if valid."""
    hidden = next((character for character in text if is_hidden_character(character)), None)
    if hidden is not None:
        place = text.index(hidden) + 1
        return f"must not contain control, format or invisible characters (U+{ord(hidden):04X} is character {place})"
    if text and unicodedata.category(text[0])[0] == "M":
        return "must not begin with a combining mark"
    if text != text.strip():
        return "must not begin or end with a space character"
    if not unicodedata.is_normalized("NFC", text):
        return "must be in Unicode normalization form C (NFC)"
    return None


def find_id_error(text: str) -> str | None:
    """Return an error message if an id is ``.`` or ``..``, or breaks a rule for names; None if it is valid."""
    if text in {".", ".."}:
        return "must not be . or .., which clients remove from an address"
    return find_name_error(text)


def require_valid_name(text: str) -> str:
    """Return a name or id unchanged if it is valid.

    Raises:
        ValueError: the name breaks a rule.
    """
    if rule := find_name_error(text):
        raise ValueError(rule)
    return text


Name = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=MAX_NAME),
    AfterValidator(require_valid_name),
    Field(json_schema_extra={"pattern": _PATTERN}),
]
"""Type of a name in a request body: a string that follows the rules of this module."""


def validate_distinct_values[C: Collection[str]](values: C) -> C:
    """Return a list unchanged if it contains each value only once.

    Raises:
        ValueError: the list contains a value twice.
    """
    if len(set(values)) < len(values):
        raise ValueError("must not contain the same value twice")
    return values


def find_unicode_scripts(text: str) -> list[str]:
    """Return the scripts, such as LATIN, of the letters and digits of a text, sorted; ASCII digits are ignored.

    The name of a script is the first word in the Unicode names of its characters. The scripts of Chinese, Japanese and
    Korean texts count as one script.
    """
    return sorted({_get_unicode_script(character) for character in text if _has_unicode_script(character)})


def to_identity_key(text: str) -> str:
    """Convert an id to the form by which ids are compared: letter case and full-width forms make no difference."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_hidden_character(character: str) -> bool:
    """Return whether a character is invisible or changes the display of the surrounding text."""
    return unicodedata.category(character) in _HIDDEN or character in _BLANK or ord(character) in _VARIATIONS


def _has_unicode_script(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "L" or (category == "Nd" and not character.isascii())


def _get_unicode_script(character: str) -> str:
    first = unicodedata.name(character, "UNKNOWN").split(" ")[0]
    return "EAST ASIAN" if first in _EAST_ASIAN else first


MAX_HINTS: Final = 20
"""Maximum number of unknown names in one request for which the most similar known name is searched.

Each comparison takes time.
"""


def find_nearest_name(misspelt_name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a misspelt name; None if no known name is similar.

    Letter case, underscores and hyphens are ignored.
    """
    folded = {_remove_case_and_separators(name): name for name in known_names}
    close = get_close_matches(_remove_case_and_separators(misspelt_name[:MAX_COMPARED]), folded, n=1)
    return folded[close[0]] if close else None


def find_nearest_names(misspelt_name: str, known_names: Iterable[str]) -> list[str]:
    """Return up to three known names, the most similar to a misspelt name first.

    Letter case, underscores and hyphens are ignored. A search in thousands of names takes a tenth of a second.
    """
    folded = {_remove_case_and_separators(name): name for name in known_names}
    close = get_close_matches(
        _remove_case_and_separators(misspelt_name[:MAX_COMPARED]), folded, n=_MAX_NEAREST, cutoff=_MIN_SIMILARITY
    )
    return [folded[name] for name in close]


def format_nearest_names_suggestion(nearest_names: Sequence[str]) -> str:
    """Format names for the end of an error message, such as " The nearest are a, b."; empty without names."""
    if not nearest_names:
        return ""
    verb = "is" if len(nearest_names) == 1 else "are"
    return f" The nearest {verb} {', '.join(nearest_names)}."


def _remove_case_and_separators(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
