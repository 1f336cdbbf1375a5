"""Strict JSON parser (RFC 8259); it rejects texts that two JSON parsers could read differently."""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import orjson

from shared.runtime import Runtime
from shared.text_formats.large_json import may_have_long_integers, parse_json_integer

MAX_DEPTH = 100
MAX_CONTAINERS = 100_000
"""Maximum number of arrays and objects in one text; creating more of them would block other requests."""

_FAST_BYTES: Final = 1024 * 1024
"""Maximum size of a body that orjson parses; it does not let other threads run meanwhile."""

_UNDECIDED: Final = object()
"""Placeholder for a body that the standard library must parse."""

# The closing quote is optional; otherwise each quote in an unclosed string would start another search to the end.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_LENIENT: Final = json.JSONDecoder()
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


async def parse_json_body(body: bytes, runtime: Runtime, *, keeps_long_integers: bool = False) -> Any:
    """Parse a JSON body as :func:`parse_json` does, but in a worker thread if the body is large.

    Raises:
        ValueError: the body is not valid; see :func:`parse_json`.
    """
    return await runtime.run_in_thread_if_large(len(body), parse_json, body, keeps_long_integers=keeps_long_integers)


def parse_json(body: bytes, *, keeps_long_integers: bool = False) -> Any:
    """Parse a JSON body.

    Args:
        body: text of the body.
        keeps_long_integers: True to return integers beyond 64 bits as ``LongInteger``, which takes linear time; False
            to return them as ``int``.

    Raises:
        ValueError: the body is not UTF-8 or not JSON, or it has a duplicate key, NaN or Infinity, a number outside the
            range of a double, an unpaired surrogate, more than 100 levels, or more than 100,000 arrays and objects.
    """
    value = _try_parse_with_orjson(body)
    return (
        _parse_with_standard_library(body, parse_json_integer if keeps_long_integers else _parse_int)
        if value is _UNDECIDED
        else value
    )


def _try_parse_with_orjson(body: bytes) -> Any:
    """Parse a JSON body with orjson, three times as fast as ``json``; return ``_UNDECIDED`` if the result may be wrong.

    Of two properties with the same name, orjson returns only the last. To detect such a body, the parsed value is
    serialised again: it then has fewer quotation marks than the body.
    """
    if len(body) > _FAST_BYTES or body.count(b"[") + body.count(b"{") > MAX_CONTAINERS or b"\\u" in body:
        return _UNDECIDED
    if may_have_long_integers(body):
        return _UNDECIDED
    try:
        value = orjson.loads(body)
        is_complete = orjson.dumps(value).count(b'"') == body.count(b'"')
    except (ValueError, TypeError):
        return _UNDECIDED
    return value if is_complete and _is_within_depth_limit(value) else _UNDECIDED


def _is_within_depth_limit(value: Any) -> bool:
    """Return whether a JSON value has at most :data:`MAX_DEPTH` nested levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) is dict or type(child) is list
        ]
    return not level


def _parse_with_standard_library(body: bytes, parse_int: Callable[[str], Any]) -> Any:
    """Parse a JSON body with :mod:`json` and check the rules of :func:`parse_json`; ``parse_int`` converts integers."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise ValueError("begins with a byte order mark; send UTF-8 without one")
    if not text.strip():
        raise ValueError("not JSON: the text is empty")
    _reject_too_many_containers(text)
    value = _load_json(text, parse_int)
    _reject_deep_nesting(value)
    if _SURROGATE.search(text):
        _reject_lone_surrogates(value)
    return value


def find_invalid_element_index(body: bytes, max_elements: int) -> int | None:
    """Return the index of the first element of a JSON array that breaks a rule of :func:`parse_json`.

    Return None if the text is not JSON, is not an array, or has too many arrays and objects. The caller then needs no
    index, because the error has a position or concerns the whole text.

    Args:
        body: text of the array.
        max_elements: number of elements that are checked, because the check of each element takes long. If all of them
            are valid, the result is None.
    """
    try:
        text = body.decode("utf-8")
        _reject_too_many_containers(text)
    except ValueError:
        return None
    at = _find_position_after_whitespace(text, 0)
    index = 0
    while index < max_elements and text[at : at + 1] == ("," if index else "["):
        start = _find_position_after_whitespace(text, at + 1)
        try:
            _, end = _LENIENT.raw_decode(text, start)
            parse_json(b"[%b]" % text[start:end].encode())
        except json.JSONDecodeError:
            return None
        except (ValueError, RecursionError):
            return index
        at, index = _find_position_after_whitespace(text, end), index + 1
    return None


def _find_position_after_whitespace(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _reject_too_many_containers(text: str) -> None:
    """Reject a text with too many opening brackets before it is parsed; brackets inside strings are not counted."""
    if _count_brackets(text) > MAX_CONTAINERS and count_arrays_and_objects(text) > MAX_CONTAINERS:
        raise ValueError(f"must not have more than {MAX_CONTAINERS} arrays and objects")


def count_arrays_and_objects(text: str) -> int:
    """Return the number of arrays and objects in a JSON text, without parsing it."""
    return _count_brackets(text) - sum(_count_brackets(string[0]) for string in _STRING.finditer(text))


def _count_brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _load_json(text: str, parse_int: Callable[[str], Any]) -> Any:
    try:
        # These hooks are written in Python, so the interpreter can switch to other threads at each number and object.
        return json.loads(
            text,
            object_pairs_hook=build_object_of_unique_keys,
            parse_constant=_reject_non_json_constant,
            parse_int=parse_int,
            parse_float=_parse_float,
        )
    except json.JSONDecodeError as error:
        # Some messages of CPython end with "at", because its own text continues with the position.
        reason = error.msg.removesuffix(" at")
        raise ValueError(f"not JSON: {reason} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        # CPython limits the digits of an integer; its message names an interpreter setting, so it is replaced.
        raise (
            ValueError(f"an integer has more than {sys.get_int_max_str_digits()} digits")
            if "digits" in str(error)
            else error
        ) from None


def build_object_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from its properties; pass this function as ``object_pairs_hook`` to :mod:`json`.

    Raises:
        ValueError: two properties have the same name.
    """
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in members if counts[name] > 1)
        raise ValueError(f"the key {twice[:64]!r} occurs twice in one object")
    return members


def _parse_int(text: str) -> int:
    return int(text)


def _parse_float(text: str) -> float:
    return float(text)


def _reject_non_json_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _reject_deep_nesting(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = _list_children_and_reject_infinity(level)
        if not level:
            return
    if any(isinstance(item, dict | list) for item in level):
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")
    _list_children_and_reject_infinity(level)


def _list_children_and_reject_infinity(json_values: list[Any]) -> list[Any]:
    """Return the elements and property values of all arrays and objects in a list of JSON values.

    Raises:
        ValueError: one of the listed values is an infinite number.
    """
    children: list[Any] = []
    for item in json_values:
        if isinstance(item, dict):
            children.extend(item.values())
        elif isinstance(item, list):
            children.extend(item)
        elif isinstance(item, float) and math.isinf(item):
            raise ValueError("a number is outside the range of a double")
    return children


def _reject_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string has an unpaired surrogate, which is not a character") from None
