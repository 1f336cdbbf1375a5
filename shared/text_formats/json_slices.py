"""JSON parser that reads large texts in slices, so that other threads can run in between.

The parser of the standard library holds the interpreter lock for the whole text.
"""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing in the stubs
from typing import Any

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*+")


def loads_in_slices(text: str, levels: int) -> Any:
    """Parse a JSON text with the same result as ``json.loads``.

    Args:
        text: the JSON.
        levels: number of outer levels that are read member by member; each deeper value is read in one call.

    Raises:
        ValueError: the text is not JSON.
    """
    value, end = _value(text, _skip(text, 0), levels)
    if _skip(text, end) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _value(text: str, at: int, levels: int) -> tuple[Any, int]:
    match text[at : at + 1] if levels else "":
        case "[":
            return _array(text, at + 1, levels - 1)
        case "{":
            return _object(text, at + 1, levels - 1)
        case _:
            return _DECODER.raw_decode(text, at)


def _array(text: str, at: int, levels: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _skip(text, at)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, _skip(text, at), levels)
        found.append(value)
        at = _skip(text, at)
        if _ends(text, at, "]"):
            return found, at + 1
        at += 1


def _object(text: str, at: int, levels: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        at = _expect(text, _skip(text, at), '"')
        name, at = scanstring(text, at)
        at = _expect(text, _skip(text, at), ":")
        found[name], at = _value(text, _skip(text, at), levels)
        at = _skip(text, at)
        if _ends(text, at, "}"):
            return found, at + 1
        at += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _ends(text: str, at: int, mark: str) -> bool:
    if text[at : at + 1] == mark:
        return True
    _expect(text, at, ",")
    return False


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r}", text, at)
    return at + 1
