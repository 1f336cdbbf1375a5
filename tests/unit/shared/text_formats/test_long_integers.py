"""Tests of finding integers beyond 64 bits in JSON texts."""

import json
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats.long_integers import (
    LongInteger,
    copy_long_integer,
    may_have_long_integers,
    parse_integer,
    to_int,
)


@given(st.integers())
def test_integers_beyond_64_bits_are_found(number: int) -> None:
    """Every integer that orjson would convert to a double is found."""
    if not -(2**63) <= number < 2**64:
        assert may_have_long_integers(b'{"a": [1, %d]}' % number)


@pytest.mark.parametrize("text", [b"[1234567890123456789]", b"-123456789012345678", b'"no digits"', b""])
def test_shorter_integers_are_not_reported(text: bytes) -> None:
    """A text whose runs of digits are too short for integers beyond 64 bits is parsed by the fast parser."""
    assert not may_have_long_integers(text)


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64 - 1, -(2**63)])
def test_integers_of_64_bits_are_parsed_as_int(number: int) -> None:
    """An integer that orjson can write is an ``int``."""
    assert type(parse_integer(str(number))) is int
    assert parse_integer(str(number)) == number


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "9" * 4_300, "-" + "9" * 4_300])
def test_the_digits_of_a_long_integer_are_copied(digits: str) -> None:
    """An integer beyond 64 bits is parsed to a number with the same digits, in linear time."""
    number = parse_integer(digits)
    assert type(number) is LongInteger
    assert orjson.dumps([number], default=copy_long_integer) == f"[{digits}]".encode()
    assert json.dumps([number], default=to_int) == f"[{digits}]"


def test_other_values_are_not_copied() -> None:
    """A value that is not a long integer raises an error, because it has no JSON form."""
    for convert in (copy_long_integer, to_int):
        with pytest.raises(TypeError, match="Decimal"):
            convert(Decimal(1))
