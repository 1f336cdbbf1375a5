"""RFC 8785 (JCS) text of JSON values: by orjson where that writes the same bytes, else by rfc8785."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
import rfc8785

from shared.errors import WorkspaceError, invalid
from shared.provenance.hash_rule import SAFE_INTEGER, json_integer

MAX_DEPTH: Final = 128
"""Levels of nesting that every reader of a record is expected to manage."""

_STRICT: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_SMALLEST_PLAIN: Final = 1e-5
_LARGEST_PLAIN: Final = 1e15


def fast_jcs(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        ValueError: what has no such form: integers beyond ±(2^53-1), NaN, infinity, lone surrogates, keys that are not
            text. :func:`canonical_bytes` says where it stands.
        RecursionError: nested too deeply to be walked.
    """
    text = _sorted_json(value)
    if text and _writes_alike(value, MAX_DEPTH):
        return text
    return rfc8785.dumps(value)


def canonical_bytes(value: Mapping[str, Any], field: str = "") -> bytes:
    """Return the RFC 8785 bytes of a JSON object that a caller sent.

    Args:
        value: the object.
        field: its name in the request, for the error; empty for the body itself.

    Raises:
        WorkspaceError: INVALID naming the first member without canonical form.
    """
    return canonical_value(dict(value), field)


def canonical_value(value: Any, field: str) -> bytes:
    """Return the RFC 8785 bytes of any JSON value that a caller sent; as :func:`canonical_bytes`."""
    try:
        return orjson.dumps(value) if type(value) is str else fast_jcs(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(value, field) or invalid(field or "body", str(error)) from None


def reparsed(canonical: bytes) -> Any:
    """Return the value that canonical text stands for; floats beyond 2^53 come back as floats.

    Raises:
        ValueError: it is not JSON.
    """
    value = orjson.loads(canonical)
    if _writes_alike(value, MAX_DEPTH):
        return value
    return json.loads(canonical, parse_int=json_integer)


def parsed_if_canonical(canonical: bytes) -> Any:
    """Return the value that bytes are the RFC 8785 form of; None when they are of none (or of ``null``)."""
    try:
        value = orjson.loads(canonical)
        if _sorted_json(value) == canonical and _writes_alike(value, MAX_DEPTH):
            return value
        value = json.loads(canonical, parse_int=json_integer)
        return value if rfc8785.dumps(value) == canonical else None
    except (TypeError, ValueError, RecursionError):
        return None


def _sorted_json(value: Any) -> bytes:
    """Return what orjson writes with sorted keys; nothing for what is not to be stored or no JSON."""
    try:
        return orjson.dumps(value, option=_STRICT)
    except TypeError:
        return b""


def is_canonical(canonical: bytes) -> bool:
    """Tell whether bytes are the RFC 8785 form of the value that they stand for."""
    return parsed_if_canonical(canonical) is not None


def _writes_alike(value: Any, depth: int) -> bool:
    """Tell whether orjson with sorted keys writes what RFC 8785 asks for (a lone surrogate makes it raise).

    orjson sorts by code points, RFC 8785 by UTF-16 units: the same for ASCII keys. Its floats differ from ECMAScript's
    where they are whole numbers, below 1e-5 or above 1e15. Enumerations and other subclasses are left to rfc8785.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return abs(int(value)) <= SAFE_INTEGER
    if kind is dict:
        return depth > 0 and _members_alike(value, depth - 1)
    if kind is list:
        return depth > 0 and all(_writes_alike(item, depth - 1) for item in value)
    return kind is float and _plain(value)


def _plain(number: float) -> bool:
    return _SMALLEST_PLAIN <= abs(number) <= _LARGEST_PLAIN and not number.is_integer()


def _members_alike(members: dict[Any, Any], depth: int) -> bool:
    for name, value in members.items():
        if type(name) is not str or not name.isascii():
            return False
        if type(value) is not str and not _writes_alike(value, depth):
            return False
    return True


def _refusal(value: Any, field: str) -> WorkspaceError | None:
    """Return the error for the first member that has no canonical form, without recursion."""
    pending: list[tuple[str, Any, int]] = [(field, value, MAX_DEPTH)]
    while pending:
        path, item, depth = pending.pop()
        rule = _broken_rule(item, depth)
        if rule:
            return invalid(path or "body", rule)
        if isinstance(item, Mapping):
            if any(not isinstance(name, str) or _has_surrogate(name) for name in item):
                return invalid(path or "body", "a member name is not text of Unicode characters")
            children = [(f"{path}.{name}" if path else name, inner, depth - 1) for name, inner in item.items()]
            pending.extend(reversed(children))
        elif isinstance(item, list | tuple):
            pending.extend((f"{path}[{index}]", inner, depth - 1) for index, inner in reversed(list(enumerate(item))))
    return None


def _broken_rule(item: Any, depth: int) -> str:
    if isinstance(item, str):
        return "has a lone surrogate, which is no character" if _has_surrogate(item) else ""
    if isinstance(item, bool) or item is None:
        return ""
    if isinstance(item, int):
        return "" if abs(item) <= SAFE_INTEGER else "lies beyond the integers that JSON numbers hold exactly, ±(2^53-1)"
    if isinstance(item, float):
        return "" if math.isfinite(item) else "is not a JSON number"
    if not isinstance(item, Mapping | list | tuple):
        return "is not a JSON value"
    return "" if depth > 0 else f"is nested deeper than {MAX_DEPTH} levels"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
