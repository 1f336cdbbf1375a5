"""JSON integers beyond 64 bits: their search, and their conversion to values that are read and written in linear time.

The parser orjson would silently convert them to doubles.
"""

import re
from decimal import Decimal
from typing import Any, Final, override

import orjson

_ZEROS: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG: Final = b"0" * 19
"""19 digits, which every integer beyond 64 bits has; searching for them is ten times faster than the pattern."""

_BEYOND_64_BIT: Final = re.compile(rb"-\d{19}|\d{20}")

MAX_DIGITS: Final = 4_300
"""Maximum number of digits of an integer; more digits cannot be converted to an ``int``."""

_LONGEST_64_BIT: Final = 20
_LEAST, _GREATEST = -(2**63), 2**64 - 1


class LongInteger(Decimal):
    """JSON integer beyond 64 bits. It equals the ``int`` of the same value, and ``str`` returns its digits.

    The conversion between the text and an ``int`` takes quadratic time, that of a decimal number linear time.
    """

    @override
    def __repr__(self) -> str:
        return str(self)


def parse_integer(text: str) -> int | LongInteger:
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


def to_int(value: Any) -> int:
    """Convert a :class:`LongInteger` to an ``int``, as ``json.dumps`` expects from its argument ``default``.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, LongInteger):
        return int(value)
    raise TypeError(f"{type(value).__name__} cannot be serialised as JSON")


def copy_long_integer(value: Any) -> orjson.Fragment:
    """Return the JSON text of a :class:`LongInteger`, as ``orjson.dumps`` expects from its argument ``default``.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, LongInteger):
        return orjson.Fragment(str(value))
    raise TypeError(f"{type(value).__name__} cannot be serialised as JSON")


def may_have_long_integers(text: bytes) -> bool:
    """Return whether a JSON text may have an integer beyond 64 bits; digits of a string or a fraction count, too."""
    return _LONG in text.translate(_ZEROS) and _BEYOND_64_BIT.search(text) is not None
