"""Tests of the parser of whole numbers."""

import pytest

from shared.validation.whole_numbers import parse_whole_number


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("100", 100), ("007", 7)])
def test_a_text_of_digits_is_a_whole_number(text: str, number: int) -> None:
    """A text of decimal digits is a whole number; both limits of the range are valid."""
    assert parse_whole_number(text, 100) == number


@pytest.mark.parametrize("text", ["", "0", "101", "+1", "-1", " 1", "1_0", "1.0", "1e1", "٣", "9" * 10, "1\n"])
def test_texts_that_are_no_whole_numbers_are_rejected(text: str) -> None:
    """A text that is not a whole number is rejected with the limits, even if int() accepts it."""
    with pytest.raises(ValueError, match="must be a whole number from 1 to 100"):
        parse_whole_number(text, 100)
