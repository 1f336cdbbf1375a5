"""RFC 8785 (JCS) text of JSON values: by orjson where that writes the same bytes, else by rfc8785."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
import rfc8785

from shared.errors import WorkspaceError, invalid
from shared.provenance.hash_rule import MAX_DEPTH, SAFE_INTEGER, is_too_deep, parse_json_integer

STRICT: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
SMALLEST_PLAIN: Final = 1e-5
LARGEST_PLAIN: Final = 1e15
_CONSTANTS: Final = frozenset((bool, type(None)))


def fast_jcs(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        ValueError: what has no such form: integers beyond ±(2^53-1), NaN, infinity, lone surrogates, keys that are not
            text, more than :data:`MAX_DEPTH` levels. :func:`canonical_bytes` says where it stands.
    """
    try:
        text = orjson.dumps(value, None, STRICT)
    except TypeError:
        return _dump_by_rfc8785(value)
    # Spelled out here, since every append comes this way: see _writes_alike.
    if is_plain((value,), MAX_DEPTH) and (text.isascii() or _has_ascii_keys((value,))):
        return text
    return _dump_by_rfc8785(value)


def _dump_by_rfc8785(value: Any) -> bytes:
    if is_too_deep(value):
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
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
    except (TypeError, ValueError) as error:
        raise _find_error(value, field) or invalid(field or "body", str(error)) from None


def parse_canonical(canonical: bytes) -> Any:
    """Return the value that canonical text stands for; floats beyond 2^53 come back as floats.

    Raises:
        ValueError: it is not JSON.
    """
    value = orjson.loads(canonical)
    if _dump_sorted(value) and is_plain((value,), MAX_DEPTH):
        return value
    return json.loads(canonical, parse_int=parse_json_integer)


def parse_if_canonical(canonical: bytes) -> Any:
    """Return the value that bytes are the RFC 8785 form of; None when they are of none (or of ``null``)."""
    try:
        value = orjson.loads(canonical)
        if orjson.dumps(value, None, STRICT) == canonical and _is_written_alike(value, canonical):
            return value
    except TypeError:
        pass  # an integer beyond ±(2^53-1) stands for a double
    except ValueError:
        return None
    return _parse_by_rfc8785(canonical)


def canonicalize_record(text: bytes) -> bytes | None:
    """Return the RFC 8785 bytes of the record that text is, in whatever form: what its ``Hash`` is taken over.

    None for what is no record without its Hash, or has no such form: no JSON object in UTF-8, an empty one, a name that
    stands twice, a Hash inside, a number that is not to be held exactly, a lone surrogate, or too many levels.
    """
    try:
        value = json.loads(text.decode(), parse_int=parse_json_integer, object_pairs_hook=_reject_duplicate_names)
        return _dump_by_rfc8785(value) if type(value) is dict and value and "Hash" not in value else None
    except (ValueError, RecursionError):
        return None


def _parse_by_rfc8785(canonical: bytes) -> Any:
    try:
        value = json.loads(canonical, parse_int=parse_json_integer)
        return value if _dump_by_rfc8785(value) == canonical else None
    except (TypeError, ValueError, RecursionError):
        return None


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return members


def _dump_sorted(value: Any) -> bytes:
    """Return what orjson writes with sorted keys; nothing for what is not to be stored or no JSON."""
    try:
        return orjson.dumps(value, option=STRICT)
    except TypeError:
        return b""


def is_canonical(canonical: bytes) -> bool:
    """Tell whether bytes are the RFC 8785 form of the value that they stand for."""
    return parse_if_canonical(canonical) is not None


def _is_written_alike(value: Any, text: bytes) -> bool:
    """Tell whether what orjson wrote with sorted keys, ``text``, is what RFC 8785 asks for.

    orjson sorts by code points, RFC 8785 by UTF-16 units: the same where all is ASCII, or the keys are. It refused
    integers beyond ±(2^53-1).
    """
    return is_plain((value,), MAX_DEPTH) and (text.isascii() or _has_ascii_keys((value,)))


def is_plain(values: Iterable[Any], depth: int) -> bool:
    """Tell whether values are JSON without the floats that orjson writes differently from ECMAScript.

    These are whole numbers, and what is below 1e-5 or above 1e15. Walks of millions of records run through here.
    """
    for value in values:
        kind = type(value)
        if kind is str or kind is int:
            continue
        if kind is float:
            if not value % 1.0 or not (
                SMALLEST_PLAIN <= value <= LARGEST_PLAIN or -LARGEST_PLAIN <= value <= -SMALLEST_PLAIN
            ):
                return False
        elif kind is dict or kind is list:
            if not depth or not is_plain(value.values() if kind is dict else value, depth - 1):
                return False
        elif kind not in _CONSTANTS:
            return False
    return True


def _has_ascii_keys(values: Iterable[Any]) -> bool:
    """Tell whether all keys are ASCII; the depth was bounded before."""
    for value in values:
        if type(value) is dict:
            if not all(map(str.isascii, value)) or not _has_ascii_keys(value.values()):
                return False
        elif type(value) is list and not _has_ascii_keys(value):
            return False
    return True


def _find_error(value: Any, field: str) -> WorkspaceError | None:
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
