"""JSON that standard parsers handle badly: integers beyond 64 bits, and texts of many megabytes.

The parser orjson would silently convert such integers to doubles. One call to the parser of the standard library holds
the interpreter lock until the whole text is parsed; :func:`parse_json_in_slices` parses a large text in several calls,
so that other threads can run between the calls.
"""

import json
import math
import re
from decimal import Decimal
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing in the stubs
from typing import Any, Final, NoReturn, override

import orjson

_ZEROS: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG: Final = b"0" * 19
"""19 zeros. Every integer beyond 64 bits has 19 digits; this search is ten times faster than a regular expression."""

_BEYOND_64_BIT: Final = re.compile(rb"-\d{19}|\d{20}")

MAX_DIGITS: Final = 4_300
"""Maximum number of digits of an integer; more digits cannot be converted to an ``int``."""

_LONGEST_64_BIT: Final = 20
_LEAST, _GREATEST = -(2**63), 2**64 - 1


class LongInteger(Decimal):
    """JSON integer beyond 64 bits. It equals the ``int`` of the same value, and ``str`` returns its digits.

    The conversion between text and ``int`` takes quadratic time. The conversion between text and a decimal number takes
    linear time.
    """

    @override
    def __repr__(self) -> str:
        return str(self)


def parse_json_integer(text: str) -> int | LongInteger:
    """Convert the text of a JSON integer to an ``int`` or, beyond 64 bits, to a :class:`LongInteger`.

    Raises:
        ValueError: the integer has more than 4,300 digits.
    """
    if len(text) <= _LONGEST_64_BIT:
        number = int(text)
        return number if _LEAST <= number <= _GREATEST else LongInteger(text)
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
    return LongInteger(text)


def long_integer_to_int(value: Any) -> int:
    """Convert a :class:`LongInteger` to an ``int``; pass this function to ``json.dumps`` as ``default``.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, LongInteger):
        return int(value)
    raise TypeError(f"{type(value).__name__} cannot be serialised as JSON")


def long_integer_to_json(value: Any) -> orjson.Fragment:
    """Return the JSON text of a :class:`LongInteger`; pass this function to ``orjson.dumps`` as ``default``.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, LongInteger):
        return orjson.Fragment(str(value))
    raise TypeError(f"{type(value).__name__} cannot be serialised as JSON")


def may_have_long_integers(json_text: bytes) -> bool:
    """Return whether a JSON text possibly contains an integer beyond 64 bits.

    Many digits in a string or fraction can also give True.
    """
    return _LONG in json_text.translate(_ZEROS) and _BEYOND_64_BIT.search(json_text) is not None


def _reject_non_json_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is outside the range of a double")
    return number


type ValueAndEnd[T] = tuple[T, int]
"""Parsed JSON value, and the position of the text at which parsing continues."""

_DECODER = json.JSONDecoder(parse_constant=_reject_non_json_constant, parse_float=_parse_finite_number)
_SPACE = re.compile(r"[ \t\n\r]*+")
_SLICE: Final = 64 * 1024
"""Maximum number of characters that are parsed in one call, except a number or a string."""
_SMALL: Final = 1024
"""Number of characters that are parsed first; most arrays and objects are not longer, and copying so few is cheap."""
_BETWEEN: Final = (("],[", 1), ("},{", 1), (",", 0))
"""Texts between two elements at which an array can be cut, and the position of their comma."""


def parse_json_in_slices(json_text: str) -> Any:
    """Parse a JSON text (RFC 8259) with the same result as ``json.loads``, but reject NaN and infinite numbers.

    Arrays and objects of more than 65,536 characters are parsed in several calls. Only a number or a string is always
    parsed in one call.

    Args:
        json_text: the JSON text.

    Raises:
        ValueError: the text is not JSON, or has NaN, Infinity or a number outside the range of a double.
        RecursionError: more than about 300 large arrays and objects are nested.
    """
    if len(json_text) <= _SLICE:
        return _parse_in_one_call(json_text)
    value, end = _parse_value(json_text, _find_position_after_whitespace(json_text, 0))
    if _find_position_after_whitespace(json_text, end) != len(json_text):
        raise json.JSONDecodeError("Extra data", json_text, end)
    return value


def _parse_in_one_call(json_text: str) -> Any:
    """Parse a JSON text with the fast parser, or with the standard library's parser if the fast one rejects it."""
    try:
        return _parse_with_fast_parser_if_exact(json_text)
    except (ValueError, RecursionError):
        # The fast parser also rejects texts that the other parser accepts, for instance unpaired surrogates.
        return _DECODER.decode(json_text)


def _parse_value(json_text: str, position: int) -> ValueAndEnd[Any]:
    """Parse the JSON value at a position of the text; return the value and the position after it."""
    first = json_text[position : position + 1]
    if first not in ("[", "{"):
        return _DECODER.raw_decode(json_text, position)
    for length in (_SMALL, _SLICE):
        try:
            value, end = _DECODER.raw_decode(json_text[position : position + length])
        except (ValueError, RecursionError):
            # It is longer than the slice, or it is not JSON; the functions below find that out.
            continue
        return value, position + end
    return _parse_array(json_text, position + 1) if first == "[" else _parse_object(json_text, position + 1)


def _parse_array(json_text: str, position: int) -> ValueAndEnd[list[Any]]:
    """Parse a JSON array from the position after its opening bracket; return it and the position after the array."""
    found: list[Any] = []
    position = _find_position_after_whitespace(json_text, position)
    if json_text[position : position + 1] == "]":
        return found, position + 1
    one_by_one_until = position
    while True:
        if position >= one_by_one_until:
            members, one_by_one_until = _parse_next_elements(json_text, position)
            if members:
                found += members
                position = one_by_one_until
        value, position = _parse_value(json_text, _find_position_after_whitespace(json_text, position))
        found.append(value)
        position = _find_position_after_whitespace(json_text, position)
        if _is_closing_mark(json_text, position, "]"):
            return found, position + 1
        position += 1


def _parse_next_elements(json_text: str, position: int) -> ValueAndEnd[list[Any]]:
    """Parse the next elements of a JSON array in one call.

    The array is cut at a comma. If this comma is inside an element, a bracket or a string is still open before the
    comma, so the text before the comma is not valid JSON, and no element is returned.

    Returns:
        The elements, and the position of the next element. If the array cannot be cut: no elements, and the position up
        to which the elements must be parsed one by one.
    """
    comma = _find_comma_between_elements(json_text, position + _SLICE)
    if comma < 0:
        return [], position + _SLICE
    try:
        return _parse_with_fast_parser_if_exact(f"[{json_text[position:comma]}]"), comma + 1
    except (ValueError, RecursionError):
        return [], comma + 1


def _find_comma_between_elements(json_text: str, start: int) -> int:
    """Return the position of the first comma that probably is between two elements of an array; -1 without one."""
    for mark, offset in _BETWEEN:
        place = json_text.find(mark, start, start + _SLICE + len(mark))
        if place >= 0:
            return place + offset
    return -1


def _parse_with_fast_parser_if_exact(json_text: str) -> Any:
    """Parse a JSON text with the fast parser, or with the standard library's if a number has at least 19 digits."""
    encoded = json_text.encode()
    # The fast parser possibly does not return a number with so many digits exactly.
    return _DECODER.decode(json_text) if _LONG in encoded.translate(_ZEROS) else orjson.loads(encoded)


def _parse_object(json_text: str, position: int) -> ValueAndEnd[dict[str, Any]]:
    """Parse a JSON object from the position after its opening brace; return it and the position after the object."""
    found: dict[str, Any] = {}
    position = _find_position_after_whitespace(json_text, position)
    if json_text[position : position + 1] == "}":
        return found, position + 1
    while True:
        position = _find_position_after_expected_mark(
            json_text, _find_position_after_whitespace(json_text, position), '"'
        )
        name, position = scanstring(json_text, position)
        position = _find_position_after_expected_mark(
            json_text, _find_position_after_whitespace(json_text, position), ":"
        )
        found[name], position = _parse_value(json_text, _find_position_after_whitespace(json_text, position))
        position = _find_position_after_whitespace(json_text, position)
        if _is_closing_mark(json_text, position, "}"):
            return found, position + 1
        position += 1


def _find_position_after_whitespace(json_text: str, position: int) -> int:
    found = _SPACE.match(json_text, position)
    return position if found is None else found.end()


def _is_closing_mark(json_text: str, position: int, closing_mark: str) -> bool:
    """Return whether the closing bracket ``closing_mark`` is at a position; otherwise, require a comma there."""
    if json_text[position : position + 1] == closing_mark:
        return True
    _find_position_after_expected_mark(json_text, position, ",")
    return False


def _find_position_after_expected_mark(json_text: str, position: int, expected_mark: str) -> int:
    """Return the position after the character ``expected_mark``, which must be at the given position."""
    if json_text[position : position + 1] != expected_mark:
        raise json.JSONDecodeError(f"Expecting {expected_mark!r}", json_text, position)
    return position + 1
