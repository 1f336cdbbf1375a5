"""JSON Pointer (RFC 6901): resolve one in a JSON value, take its member out."""

import re
from typing import Any

type Pointer = tuple[str, ...]
"""The reference tokens of a pointer, unescaped; empty for the whole document."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


def compile_pointer(text: str) -> Pointer:
    """Return the reference tokens of a pointer.

    Raises:
        ValueError: the text is neither empty nor begins with ``/``, or a ``~`` is not followed by 0 or 1.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("a JSON pointer begins with /")
    if re.search(r"~(?![01])", text):
        raise ValueError("in a JSON pointer ~ is written ~0 and / within a name ~1")
    # In this order, so that ~01 becomes ~1 (RFC 6901 section 4).
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/"))


def pointer_text(pointer: Pointer) -> str:
    """Return the text that ``compile_pointer`` turns into a pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in pointer)


def resolve(document: Any, pointer: Pointer, missing: Any = None) -> Any:
    """Return the value that a pointer names, else ``missing``; with None a JSON null looks the same."""
    # Most pointers name a member of the document itself, and this is called for every message.
    if len(pointer) == 1 and isinstance(document, dict):
        return document.get(pointer[0], missing)
    value = document
    for token in pointer:
        if isinstance(value, dict):
            value = value.get(token, missing)
        elif isinstance(value, list):
            value = _element(value, token, missing)
        else:
            return missing
    return value


def remove(document: Any, pointer: Pointer) -> None:
    """Delete the object member that a pointer names, in place.

    An array's element stays, since the others would move; what is not there is no error.
    """
    if not pointer:
        return
    parent = document if len(pointer) == 1 else resolve(document, pointer[:-1])
    if isinstance(parent, dict):
        parent.pop(pointer[-1], None)


def _element(array: list[Any], token: str, missing: Any) -> Any:
    if _INDEX.fullmatch(token) is None:
        return missing
    index = int(token)
    return array[index] if index < len(array) else missing
