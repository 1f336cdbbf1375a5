"""JSON whose values survive: integers of any size, refusal where a value could not be kept.

Integers keep every digit. Other numbers are IEEE 754 doubles, as RFC 8259 section 6 expects of interoperable
implementations: what is written with more digits than a double holds comes back as the nearest double, and what lies
beyond a double's range is refused.
"""

import json
import re
from typing import Any, NoReturn

import orjson

_ZEROS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG = b"0" * 19
"""Without so many digits in a row no number is too large; looking for them so takes a tenth of the pattern's time."""

_BEYOND_64_BIT = re.compile(rb"-\d{19}|\d{20}")
"""Every integer outside 64 bits matches; orjson would read it as a double without a word."""


def parse(text: bytes) -> Any:
    """Return the value that a JSON text (RFC 8259, UTF-8) stands for; of duplicate members the last counts.

    Raises:
        ValueError: the text is not JSON, holds NaN, an infinite number or a lone surrogate, or is nested too deeply.
    """
    if _LONG not in text.translate(_ZEROS) or _BEYOND_64_BIT.search(text) is None:
        return orjson.loads(text)
    try:
        value = json.loads(text, parse_constant=_refuse)
        _exact(value)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    return value


def serialise(value: Any) -> bytes:
    """Return a JSON value as compact UTF-8 text that ``parse`` turns into the same value.

    Raises:
        ValueError: the value has no JSON form, or is nested too deeply to be read again.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass  # an integer beyond 64 bits, or more than 254 levels
    try:
        text = _exact(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the value has no JSON form: {error}") from None
    parse(text)
    return text


def _exact(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
