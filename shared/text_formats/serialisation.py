"""Serialisation of JSON values; a large value is serialised in several calls.

One call of the serialiser holds the interpreter lock until the whole value is serialised; between the calls, other
threads can run. :func:`shared.text_formats.large_json.parse_json_in_slices` is the counterpart for parsing.
"""

import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

import orjson

from shared.text_formats.large_json import long_integer_to_int, long_integer_to_json
from shared.timestamps import format_rfc3339

_OPTIONS: Final = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS

_MAX_VALUES_PER_CALL: Final = 10_000
"""Maximum number of values that are serialised in one call; every 16 characters of a text count as one more value."""
_CHARACTERS_PER_VALUE: Final = 16
_CHARACTERS_PER_CALL: Final = _MAX_VALUES_PER_CALL * _CHARACTERS_PER_VALUE
"""Maximum number of characters of a text that are serialised in one call."""
_CHARACTERS_PER_ESTIMATED_VALUE: Final = 4
_ROWS_PER_CALL: Final = 250
"""Number of rows that are serialised in one call if the whole result is short."""
_SHORT_RESULT: Final = 256 * 1024
"""Maximum size of a result whose rows are not counted, because none of them can be too large for one call."""


def serialise_json(value: Any) -> bytes:
    """Serialise a JSON value as UTF-8; datetimes in UTC with ``Z``, NaN and infinities as null."""
    try:
        return orjson.dumps(value, option=_OPTIONS, default=long_integer_to_json)
    except TypeError:
        # orjson rejects an `int` beyond 64 bits, which telemetry can contain.
        pass
    try:
        return _SLOW_ENCODER.encode(value).encode()
    except ValueError:
        return _SLOW_ENCODER.encode(_replace_nonfinite_numbers(value)).encode()


def _replace_nonfinite_numbers(value: Any) -> Any:
    """Return a JSON value with null in the place of NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _replace_nonfinite_numbers(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite_numbers(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _serialise_unknown_type(value: Any) -> str | int:
    return format_rfc3339(value) if isinstance(value, datetime) else long_integer_to_int(value)


_SLOW_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_serialise_unknown_type
)


def iterate_json_parts_of_rows(rows: Sequence[Any], source_text_size: int) -> Iterator[bytes]:
    """Serialise the rows of a query's result; yield the parts of the JSON text of all rows with commas between them.

    Args:
        rows: rows as JSON values.
        source_text_size: size of the JSON text from which the rows were parsed, in characters or bytes.
    """
    if source_text_size > _SHORT_RESULT:
        yield from _serialise_elements_in_parts(rows)
        return
    # The values of a short result need not be counted.
    for start in range(0, len(rows), _ROWS_PER_CALL):
        if start:
            yield b","
        yield serialise_json(rows[start : start + _ROWS_PER_CALL])[1:-1]


def _serialise_elements_in_parts(elements: Iterable[Any]) -> Iterator[bytes]:
    """Serialise the elements of an array; yield the parts of their JSON text with commas between them."""
    separator = b""
    for group in _group_elements_for_one_call(elements):
        yield separator
        separator = b","
        if len(group) == 1:
            yield from serialise_json_in_parts(group[0])
        else:
            yield serialise_json(group)[1:-1]


def _group_elements_for_one_call(elements: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield groups of consecutive elements that are serialised in one call, and each large element alone."""
    group: list[Any] = []
    values = 0
    for element in elements:
        count = _count_values_up_to_call_limit(element)
        if group and values + count > _MAX_VALUES_PER_CALL:
            yield group
            group, values = [], 0
        group.append(element)
        values += count
    if group:
        yield group


def serialise_json_in_parts(value: Any) -> Iterator[bytes]:
    """Serialise a JSON value as :func:`serialise_json` does, but in several calls; yield the parts of its JSON text."""
    if isinstance(value, str) and len(value) > _CHARACTERS_PER_CALL:
        yield from _serialise_text_in_parts(value)
    elif not isinstance(value, dict | list) or _count_values_up_to_call_limit(value) <= _MAX_VALUES_PER_CALL:
        yield serialise_json(value)
    elif isinstance(value, list):
        yield b"["
        yield from _serialise_elements_in_parts(value)
        yield b"]"
    else:
        yield b"{"
        for number, (name, member) in enumerate(value.items()):
            yield b"%b%b:" % (b"," if number else b"", serialise_json(name))
            yield from serialise_json_in_parts(member)
        yield b"}"


def estimate_json_size(value: Any, max_characters: int) -> int:
    """Return about how many characters the JSON text of a value has; the count ends above ``max_characters``.

    Texts and names are counted without escapes, and each value as four more characters.
    """
    count = 0
    most_values = max_characters // _CHARACTERS_PER_ESTIMATED_VALUE + 1
    waiting: list[Iterable[Any]] = [(value,)]
    while waiting and count <= max_characters:
        for each in waiting.pop():
            kind = type(each)
            count += _CHARACTERS_PER_ESTIMATED_VALUE
            if kind is str:
                count += len(each)
            elif kind is dict:
                count += sum(map(len, islice(each, most_values)))
                waiting.append(islice(each.values(), most_values))
            elif kind is list:
                waiting.append(islice(each, most_values))
    return count


def join_parts_up_to(parts: Iterable[bytes], max_bytes: int) -> bytes | None:
    """Join the parts of a JSON text; return None, and request no further part, if they have more than ``max_bytes``."""
    joined: list[bytes] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > max_bytes:
            return None
        joined.append(part)
    return b"".join(joined)


def _serialise_text_in_parts(text: str) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), _CHARACTERS_PER_CALL):
        yield serialise_json(text[start : start + _CHARACTERS_PER_CALL])[1:-1]
    yield b'"'


def to_json_text(value: Any) -> str:
    """Convert a JSON value to text as ``json.dumps`` does, without spaces and with unescaped non-ASCII characters.

    NaN and infinities become null.
    """
    try:
        return _encode_json_value(value)
    except ValueError:
        return _encode_json_value(_replace_nonfinite_numbers(value))


def _encode_json_value(value: Any) -> str:
    """Convert a JSON value to text; a value with many parts is converted part by part."""
    if _count_values_up_to_call_limit(value) <= _MAX_VALUES_PER_CALL:
        return _ENCODER.encode(value)
    # The encoder writes the parts of a value one by one in Python code, which other threads can interrupt.
    text = io.StringIO()
    text.writelines(_ENCODER.iterencode(value))
    return text.getvalue()


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _count_values_up_to_call_limit(value: Any) -> int:
    """Count the values in a JSON value; long texts and names count as several values.

    The count stops when it exceeds ``_MAX_VALUES_PER_CALL``; the returned number is then incomplete.
    """
    count = 0
    waiting: list[Iterable[Any]] = [(value,)]
    while waiting and count <= _MAX_VALUES_PER_CALL:
        for each in waiting.pop():
            kind = type(each)
            count += 1
            if kind is str:
                count += len(each) // _CHARACTERS_PER_VALUE
            elif kind is list:
                waiting.append(islice(each, _MAX_VALUES_PER_CALL))
            elif kind is dict:
                names = islice(each, _MAX_VALUES_PER_CALL)
                count += sum(map(len, names)) // _CHARACTERS_PER_VALUE
                waiting.append(islice(each.values(), _MAX_VALUES_PER_CALL))
    return count
