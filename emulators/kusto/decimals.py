"""Decimals: DuckDB holds 38 digits, nine of them behind the point; what does not fit must not be rounded silently."""

from decimal import Decimal

FRACTION_DIGITS = 9
WHOLE_DIGITS = 29


def fits(value: Decimal) -> bool:
    """Return whether a finite decimal is held with all of its digits."""
    whole, _, fraction = format(abs(value), "f").partition(".")
    return len(whole) <= WHOLE_DIGITS and len(fraction.rstrip("0")) <= FRACTION_DIGITS


def decimal_text(value: Decimal) -> str:
    """Return a decimal in full, without exponent, needless zeros or the sign of zero: ``1``, not ``1.000000000``."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
