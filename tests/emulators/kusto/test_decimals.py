"""Tests of the range and the format of decimals."""

from decimal import Decimal

import pytest

from emulators.kusto.decimals import format_decimal, is_representable_in_duckdb


@pytest.mark.parametrize(("text", "is_valid"), [("1.123456789", True), ("1.1234567890", True), ("1.1234567891", False)])
def test_a_decimal_has_at_most_nine_digits_after_the_point(text: str, is_valid: bool) -> None:  # noqa: FBT001
    """A decimal has at most nine digits after the point; zeros at the end do not count."""
    assert is_representable_in_duckdb(Decimal(text)) is is_valid


def test_a_decimal_has_at_most_29_whole_digits() -> None:
    """A decimal has at most 29 digits before the point, positive or negative."""
    assert is_representable_in_duckdb(Decimal("-" + "9" * 29))
    assert not is_representable_in_duckdb(Decimal("1" + "0" * 29))


def test_all_digits_of_a_decimal_are_checked() -> None:
    """All digits of a decimal are checked, also beyond Python's default precision."""
    assert is_representable_in_duckdb(Decimal("9" * 29 + ".123456789"))
    assert not is_representable_in_duckdb(Decimal("12345678901234567890.1234567891"))


@pytest.mark.parametrize(
    ("text", "formatted"), [("1.000", "1"), ("1E+2", "100"), ("-0.0", "0"), ("100", "100"), ("-1.50", "-1.5")]
)
def test_decimals_are_formatted_without_exponent_and_trailing_zeros(text: str, formatted: str) -> None:
    """The text of a decimal has no exponent, no trailing zeros and no negative zero."""
    assert format_decimal(Decimal(text)) == formatted
