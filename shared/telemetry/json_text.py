"""Lossless JSON: exact integers of any size, and rejection of values that cannot be represented.

Other numbers are IEEE 754 doubles, as RFC 8259 section 6 expects of interoperable implementations: a number with more
digits becomes the nearest double, and a number beyond the range of a double is rejected.
"""

import json
import math
from typing import Any, NoReturn

import orjson

from shared.text_formats.large_json import (
    long_integer_to_int,
    long_integer_to_json,
    may_have_long_integers,
    parse_json_integer,
)


def parse_lossless_json(text: bytes) -> Any:
    """Parse a JSON text (RFC 8259, UTF-8); of properties with the same name, the last one is used.

    Raises:
        ValueError: if the text is not JSON, contains NaN, an infinite number or an unpaired surrogate, or is nested too
            deeply.
    """
    if not may_have_long_integers(text):
        return orjson.loads(text)
    try:
        value = json.loads(
            text,
            parse_int=parse_json_integer,
            parse_float=_parse_finite_number,
            parse_constant=_reject_non_json_constant,
        )
        _serialise_without_nesting_check(value)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    return value


def serialise_lossless_json(value: Any) -> bytes:
    """Serialise a JSON value as compact UTF-8 text; ``parse_lossless_json`` restores the same value.

    Raises:
        ValueError: if the value cannot be represented in JSON, or is nested too deeply to be parsed again.
    """
    try:
        return orjson.dumps(value, default=long_integer_to_json)
    except TypeError:
        pass  # An `int` beyond 64 bits, or more than 254 levels.
    try:
        text = _serialise_with_standard_library(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the value cannot be represented in JSON: {error}") from None
    parse_lossless_json(text)
    return text


def _serialise_without_nesting_check(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=long_integer_to_json)
    except TypeError:
        return _serialise_with_standard_library(value)


def _serialise_with_standard_library(value: Any) -> bytes:
    return json.dumps(
        value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=long_integer_to_int
    ).encode()


def _parse_finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is outside the range of a double")
    return number


def _reject_non_json_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
