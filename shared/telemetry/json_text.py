"""Lossless JSON: exact integers of any size, and rejection of values that cannot be represented.

Other numbers are IEEE 754 doubles, as RFC 8259 section 6 expects of interoperable implementations: a number with more
digits becomes the nearest double, and a number beyond the range of a double is rejected.
"""

import json
import re
from typing import Any, NoReturn

import orjson

_ZEROS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG = b"0" * 19
"""Number of digits that every such integer has; searching for them is ten times faster than the pattern."""

_BEYOND_64_BIT = re.compile(rb"-\d{19}|\d{20}")
"""Pattern of every integer outside 64 bits, which orjson would convert to a double silently."""


def parse(text: bytes) -> Any:
    """Return the value of a JSON text (RFC 8259, UTF-8); the last of duplicate members wins.

    Raises:
        ValueError: if the text is not JSON, contains NaN, an infinite number or an unpaired surrogate, or is nested too
            deeply.
    """
    if _LONG not in text.translate(_ZEROS) or _BEYOND_64_BIT.search(text) is None:
        return orjson.loads(text)
    try:
        value = json.loads(text, parse_constant=_reject_constant)
        _serialise_exactly(value)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    return value


def serialise(value: Any) -> bytes:
    """Return a JSON value as compact UTF-8 text that ``parse`` converts back to the same value.

    Raises:
        ValueError: if the value has no JSON form, or is nested too deeply to be parsed again.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass  # An integer beyond 64 bits, or more than 254 levels.
    try:
        text = _serialise_exactly(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the value has no JSON form: {error}") from None
    parse(text)
    return text


def _serialise_exactly(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
