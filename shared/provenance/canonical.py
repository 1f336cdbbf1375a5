"""Canonical JSON (RFC 8785, JCS): encoding, parsing and checks.

orjson encodes a value if the text that orjson writes is canonical. Otherwise, the slower package rfc8785 encodes it.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
import rfc8785

from shared.errors import MAX_LISTED, build_invalid_field_error
from shared.provenance.hash_rule import MAX_DEPTH, SAFE_INTEGER, is_nested_too_deeply, parse_integer_or_exact_float
from shared.text_formats.strict_json import build_object_of_unique_keys

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

type Location = tuple[int | str, ...]
"""Property names and list indexes that lead from a value to a nested value."""


class CanonicalFormFault(NamedTuple):
    """Location of a nested JSON value that has no canonical form, and the rule that the value breaks."""

    location: Location
    rule: str


def encode_canonical_json(value: Any) -> bytes:
    """Return the canonical form (RFC 8785) of a JSON value, as UTF-8 bytes.

    Raises:
        ValueError: the value has no canonical form: it contains an integer beyond ±(2^53-1), NaN, infinity, a lone
            surrogate, a key that is not text, or more than :data:`MAX_DEPTH` levels.
    """
    try:
        text = orjson.dumps(value, None, STRICT)
    except TypeError:
        return _dump_by_rfc8785(value)
    # Inlined copy of _is_orjson_text_canonical, because every append calls this function.
    if has_orjson_canonical_numbers((value,), MAX_DEPTH) and (text.isascii() or _has_ascii_keys((value,))):
        return text
    return _dump_by_rfc8785(value)


def _dump_by_rfc8785(value: Any) -> bytes:
    if is_nested_too_deeply(value):
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")
    return rfc8785.dumps(value)


def encode_canonical_object(value: Mapping[str, Any], field: str = "") -> bytes:
    """Return the canonical form (RFC 8785) of a JSON object from a caller, as UTF-8 bytes.

    Args:
        value: JSON object from the caller.
        field: name of the object in the request, for the error; empty for the request body itself.

    Raises:
        WorkspaceError: INVALID with the name of the first property that has no canonical form.
    """
    return encode_canonical_value(dict(value), field)


def encode_canonical_value(value: Any, field: str) -> bytes:
    """Return the canonical form (RFC 8785) of any JSON value from a caller; see :func:`encode_canonical_object`."""
    try:
        return orjson.dumps(value) if type(value) is str else encode_canonical_json(value)
    except (TypeError, ValueError) as error:
        location, rule = next(_iterate_canonical_form_faults(value, error))
        raise build_invalid_field_error(_format_location(field, location), rule) from None


def list_canonical_form_faults(value: Any) -> list[CanonicalFormFault]:
    """Return the locations of the nested values without canonical form (RFC 8785), and the rules that they break.

    The location is empty for the value itself. At most :data:`shared.errors.MAX_LISTED` values are listed.
    """
    try:
        encode_canonical_json(value)
    except (TypeError, ValueError) as error:
        return list(islice(_iterate_canonical_form_faults(value, error), MAX_LISTED))
    return []


def parse_canonical_json(canonical: bytes) -> Any:
    """Parse canonical JSON text; an integer beyond ±(2^53-1) becomes a float, if a float has exactly its value.

    Raises:
        ValueError: the text is not JSON.
    """
    value = orjson.loads(canonical)
    if _dump_with_sorted_keys(value) and has_orjson_canonical_numbers((value,), MAX_DEPTH):
        return value
    return json.loads(canonical, parse_int=parse_integer_or_exact_float)


def parse_json_if_canonical(canonical: bytes) -> Any:
    """Parse JSON bytes that are in canonical form (RFC 8785); return None for all other bytes, and for ``null``."""
    try:
        value = orjson.loads(canonical)
        if orjson.dumps(value, None, STRICT) == canonical and _is_orjson_text_canonical(value, canonical):
            return value
    except TypeError:
        pass  # an integer beyond ±(2^53-1) is a double
    except ValueError:
        return None
    return _parse_if_canonical_by_rfc8785(canonical)


def try_canonicalise_record(json_text: bytes) -> bytes | None:
    """Convert the JSON text of a record to its canonical bytes (RFC 8785), from which its ``Hash`` is computed.

    Return None if the text is not a JSON object in UTF-8, or if the object is empty, has a property ``Hash`` or a
    duplicate name, or has no canonical form. An object with a number that is not exactly a double, with a lone
    surrogate, or with too many levels has no canonical form.
    """
    try:
        value = json.loads(
            json_text.decode(), parse_int=parse_integer_or_exact_float, object_pairs_hook=build_object_of_unique_keys
        )
        return _dump_by_rfc8785(value) if type(value) is dict and value and "Hash" not in value else None
    except (ValueError, RecursionError):
        return None


def _parse_if_canonical_by_rfc8785(canonical: bytes) -> Any:
    try:
        value = json.loads(canonical, parse_int=parse_integer_or_exact_float)
        return value if _dump_by_rfc8785(value) == canonical else None
    except (TypeError, ValueError, RecursionError):
        return None


def _dump_with_sorted_keys(value: Any) -> bytes:
    """Serialise a JSON value with orjson and sorted keys; return empty bytes if orjson rejects the value."""
    try:
        return orjson.dumps(value, option=STRICT)
    except TypeError:
        return b""


def is_canonical_json(canonical: bytes) -> bool:
    """Return whether JSON bytes are in canonical form (RFC 8785); False for ``null``."""
    return parse_json_if_canonical(canonical) is not None


def _is_orjson_text_canonical(value: Any, text: bytes) -> bool:
    """Return whether the text that orjson wrote for a value, with sorted keys, is also its RFC 8785 form.

    The order of keys is the same if the text, or every key, is ASCII: orjson sorts by code points, RFC 8785 by UTF-16
    units. orjson has already rejected integers beyond ±(2^53-1).
    """
    return has_orjson_canonical_numbers((value,), MAX_DEPTH) and (text.isascii() or _has_ascii_keys((value,)))


def has_orjson_canonical_numbers(values: Iterable[Any], max_depth: int) -> bool:
    """Return whether JSON values contain no floats that orjson and RFC 8785 would write differently.

    These floats are whole numbers, and numbers whose absolute value is below 1e-5 or above 1e15. The result is also
    False for too many levels and for a value of another type than JSON. Verification calls this function for millions
    of records.

    Args:
        values: values to check.
        max_depth: maximum number of nested levels.
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
            if not max_depth or not has_orjson_canonical_numbers(
                value.values() if kind is dict else value, max_depth - 1
            ):
                return False
        elif kind not in _CONSTANTS:
            return False
    return True


def _has_ascii_keys(values: Iterable[Any]) -> bool:
    """Return whether all keys of nested JSON objects are ASCII. The caller has checked the depth of nesting."""
    for value in values:
        if type(value) is dict:
            if not all(map(str.isascii, value)) or not _has_ascii_keys(value.values()):
                return False
        elif type(value) is list and not _has_ascii_keys(value):
            return False
    return True


def _iterate_canonical_form_faults(value: Any, error: Exception) -> Iterator[CanonicalFormFault]:
    """Yield the location of each nested value without canonical form, and the rule that it breaks; at least one.

    The search is not recursive, so that deeply nested values cannot exhaust the stack.

    Args:
        value: value that has no canonical form.
        error: error of its encoder, whose message is the rule if the search finds no value.
    """
    is_found = False
    pending: list[tuple[Location, Any, int]] = [((), value, MAX_DEPTH)]
    while pending:
        location, item, depth = pending.pop()
        rule = _describe_broken_canonical_rule(item, depth)
        children: list[tuple[Any, Any]] = []
        if isinstance(item, Mapping):
            if any(not isinstance(name, str) or _has_surrogate(name) for name in item):
                rule = rule or "property names must be valid Unicode text"
            children = list(item.items())
        elif isinstance(item, list | tuple):
            children = list(enumerate(item))
        if rule:
            is_found = True
            yield CanonicalFormFault(location, rule)
            continue
        pending.extend(((*location, step), inner, depth - 1) for step, inner in reversed(children))
    if not is_found:
        yield CanonicalFormFault((), str(error))


def _format_location(field: str, location: Location) -> str:
    path = field
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path or "body"


def _describe_broken_canonical_rule(item: Any, remaining_depth: int) -> str:
    if isinstance(item, str):
        return "must not contain a lone surrogate" if _has_surrogate(item) else ""
    if isinstance(item, bool) or item is None:
        return ""
    if isinstance(item, int):
        return "" if abs(item) <= SAFE_INTEGER else "must be an integer within ±(2^53-1)"
    if isinstance(item, float):
        return "" if math.isfinite(item) else "must be a finite number"
    if not isinstance(item, Mapping | list | tuple):
        return "must be a JSON value"
    return "" if remaining_depth > 0 else f"must not be nested deeper than {MAX_DEPTH} levels"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
