"""Search for JSON integers beyond 64 bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats.long_integers import may_have_long_integers


@given(st.integers())
def test_integers_beyond_64_bits_are_found(number: int) -> None:
    """Every integer that orjson would convert to a double is found."""
    if not -(2**63) <= number < 2**64:
        assert may_have_long_integers(b'{"a": [1, %d]}' % number)


@pytest.mark.parametrize("text", [b"[1234567890123456789]", b"-123456789012345678", b'"no digits"', b""])
def test_shorter_integers_are_not_reported(text: bytes) -> None:
    """A text without 19 digits after a minus, or 20 digits, keeps the fast parser."""
    assert not may_have_long_integers(text)
