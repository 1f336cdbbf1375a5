"""Values of the Kusto type decimal; DuckDB can store only some of them.

DuckDB stores 38 digits, nine of them after the decimal point. The emulator rejects values with more digits, because
rounding would change them.
"""

from decimal import Decimal

FRACTION_DIGITS = 9
WHOLE_DIGITS = 29


class DecimalRangeError(Exception):
    """A decimal has more digits than DuckDB can store; the message contains the rule."""


def is_representable_in_duckdb(value: Decimal) -> bool:
    """Return whether DuckDB can store a finite decimal with all of its digits."""
    # `abs` would round to the 28 digits of Python's decimal context.
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    return len(whole) <= WHOLE_DIGITS and len(fraction.rstrip("0")) <= FRACTION_DIGITS


def format_decimal(value: Decimal) -> str:
    """Format a decimal without exponent, trailing zeros and negative zero: ``1`` instead of ``1.000000000``."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
