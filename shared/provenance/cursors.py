"""Cursors of paged lists: opaque texts with which clients request the next page."""

import base64
import binascii
import json
from collections.abc import Sequence


def encode_cursor(kind: str, position_values: Sequence[str | int]) -> str:
    """Return the cursor for the page that begins after a certain item of a list.

    Args:
        kind: name of the list, so that other lists reject the cursor.
        position_values: texts and integers that identify the last item of the page.
    """
    return (
        base64.urlsafe_b64encode(json.dumps([kind, *position_values], ensure_ascii=False).encode()).decode().rstrip("=")
    )


def decode_cursor(kind: str, cursor: str, types: Sequence[type]) -> list[str | int]:
    """Decode a cursor; return its values, which identify the last item of the previous page.

    Args:
        kind: name of the list.
        cursor: cursor that a client sent.
        types: expected type of each value.

    Raises:
        ValueError: the cursor does not belong to this list.
    """
    message = "the cursor does not belong to this list"
    try:
        value = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError(message) from None
    if not isinstance(value, list) or value[:1] != [kind] or [type(one) for one in value[1:]] != list(types):
        raise ValueError(message)
    # A lone surrogate cannot be stored, so no place contains one.
    if any(isinstance(one, str) and not _is_valid_unicode(one) for one in value):
        raise ValueError(message)
    return value[1:]


def _is_valid_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
