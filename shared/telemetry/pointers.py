"""JSON Pointer (RFC 6901): parsing, resolution in a JSON value, and removal of the selected property."""

import re
from typing import Any

type Pointer = tuple[str, ...]
"""Parsed JSON Pointer: its unescaped reference tokens; empty for the whole document."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


def parse_pointer(text: str) -> Pointer:
    """Parse a JSON Pointer; return its reference tokens.

    Raises:
        ValueError: if the text is not empty and does not begin with ``/``, or if a ``~`` is not followed by 0 or 1.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("a JSON pointer must begin with /")
    if re.search(r"~(?![01])", text):
        raise ValueError("in a JSON pointer, ~ must be written ~0, and / in a name must be written ~1")
    # The order matters: ~01 must become ~1 (RFC 6901 section 4).
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/"))


def format_pointer(pointer: Pointer) -> str:
    """Format reference tokens as a JSON Pointer; the inverse of ``parse_pointer``."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in pointer)


def resolve_pointer(document: Any, pointer: Pointer, default: Any = None) -> Any:
    """Return the value that a JSON Pointer selects (None for JSON null), or ``default`` if no value exists there."""
    # Fast path, because most pointers select a top-level property and this runs for every message.
    if len(pointer) == 1 and isinstance(document, dict):
        return document.get(pointer[0], default)
    value = document
    for token in pointer:
        if isinstance(value, dict):
            value = value.get(token, default)
        elif isinstance(value, list):
            value = _get_element_or_default(value, token, default)
        else:
            return default
    return value


def remove_at_pointer(document: Any, pointer: Pointer) -> None:
    """Remove the property that a JSON Pointer selects from its object, in place.

    An array element is not removed, because the other elements would move. A missing property is not an error.
    """
    if not pointer:
        return
    parent = document if len(pointer) == 1 else resolve_pointer(document, pointer[:-1])
    if isinstance(parent, dict):
        parent.pop(pointer[-1], None)


def _get_element_or_default(array: list[Any], index_token: str, default: Any) -> Any:
    if _INDEX.fullmatch(index_token) is None:
        return default
    index = int(index_token)
    return array[index] if index < len(array) else default
