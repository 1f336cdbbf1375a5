"""Parser of message timestamps in the format that a connection declares."""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from shared.catalog.models import TimestampFormat
from shared.text_formats.large_json import LongInteger
from shared.timestamps import parse_rfc3339

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS: Final = {TimestampFormat.EPOCH_SECONDS: 1_000_000, TimestampFormat.EPOCH_MILLISECONDS: 1_000}
_MAX_AS_MILLISECONDS: Final = 253_402_300_800_000 * 1_000_000
"""Largest time in microseconds that can result if valid epoch milliseconds are misread as seconds."""

# The longest time within the years 1 to 9999 has 15 digits before the point.
_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)


def parse_timestamp(value: object, timestamp_format: TimestampFormat) -> datetime:
    """Parse the timestamp of a message; return the time in UTC, truncated to microseconds.

    Epoch times are JSON numbers or the same number as text, such as ``1767600000.25`` and ``"1767600000.25"``.

    Args:
        value: timestamp as a JSON value.
        timestamp_format: timestamp format that the connection declares.

    Raises:
        ValueError: if the value does not have the format, or is outside the years 1 to 9999.
    """
    if timestamp_format is TimestampFormat.RFC3339:
        return parse_rfc3339(value if isinstance(value, str) else "")
    per_unit = _MICROSECONDS[timestamp_format]
    if isinstance(value, LongInteger):
        raise ValueError(_build_timestamp_range_error_message(is_probably_milliseconds=False))  # noqa: TRY004  a number of the right type
    # In Python, a boolean is an integer.
    if isinstance(value, int) and not isinstance(value, bool):
        return _to_instant(value * per_unit, timestamp_format)
    return _to_instant(_to_microseconds(value, per_unit, timestamp_format), timestamp_format)


def _to_microseconds(value: object, microseconds_per_unit: int, timestamp_format: TimestampFormat) -> int:
    if isinstance(value, float):
        # Until the year 2242, repr() of a double restores the decimal of the message to the microsecond.
        return _round_down(Fraction(repr(value)) * microseconds_per_unit)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return _round_down(Fraction(value) * microseconds_per_unit)
    raise ValueError(
        f"must be a number for the format {timestamp_format.value}, which counts from 1970-01-01T00:00:00Z"
    )


def _round_down(number: Fraction) -> int:
    return number.numerator // number.denominator


def _to_instant(microseconds_since_1970: int, timestamp_format: TimestampFormat) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds_since_1970)
    except OverflowError:
        is_probably_milliseconds = (
            timestamp_format is TimestampFormat.EPOCH_SECONDS and 0 < microseconds_since_1970 <= _MAX_AS_MILLISECONDS
        )
        raise ValueError(
            _build_timestamp_range_error_message(is_probably_milliseconds=is_probably_milliseconds)
        ) from None


def _build_timestamp_range_error_message(*, is_probably_milliseconds: bool) -> str:
    hint = "; is the format epochMilliseconds?" if is_probably_milliseconds else ""
    return f"the time is outside the years 1 to 9999{hint}"
