"""Parser of ISO 8601 durations; years and months are invalid, because their length is not fixed."""

import re
from datetime import timedelta
from fractions import Fraction

import isodate

MAX_DURATION = 64
"""Maximum length of a duration in characters."""
_AMOUNT = "[0-9]+(?:[.,][0-9]+)?"
_DAYS = f"(?:{_AMOUNT}W(?:{_AMOUNT}D)?|{_AMOUNT}D)"
_CLOCK = f"T(?:{_AMOUNT}H(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?|{_AMOUNT}M(?:{_AMOUNT}S)?|{_AMOUNT}S)"
DURATION_PATTERN = f"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK})"
"""Durations that :func:`parse_duration` accepts, without a sign, as a pattern that is also valid in JSON Schema.

The function also rejects a fraction of a microsecond.
"""
_DURATION = re.compile(f"[+-]?{DURATION_PATTERN}")
_MICROSECONDS = {"W": 604_800_000_000, "D": 86_400_000_000, "H": 3_600_000_000, "M": 60_000_000, "S": 1_000_000}
_CALENDAR = re.compile(r"[+-]?P[0-9.,WD]*[YM][0-9.,WDYMTHS]*")


def parse_duration(text: str) -> timedelta:
    """Parse an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises:
        ValueError: if the text is not such a duration, or has a fraction of a microsecond.
    """
    duration = parse_stored_duration(text)
    if _count_microseconds(text).denominator != 1:
        raise ValueError("must be a duration of whole microseconds")
    return duration


def parse_stored_duration(text: str) -> timedelta:
    """Parse an ISO 8601 duration like :func:`parse_duration`, but round a fraction of a microsecond.

    Earlier versions of the service stored durations with such fractions.

    Raises:
        ValueError: if the text is not such a duration.
    """
    rule = "must be an ISO 8601 duration of weeks, days, hours, minutes or seconds, such as PT15M or P7D"
    if len(text) <= MAX_DURATION and _CALENDAR.fullmatch(text):
        raise ValueError("years and months have no fixed length; use weeks, days, hours, minutes or seconds")
    if len(text) > MAX_DURATION or not _DURATION.fullmatch(text):
        raise ValueError(rule)
    try:
        duration: timedelta = isodate.parse_duration(text)
    except (isodate.ISO8601Error, ValueError, OverflowError, ArithmeticError):
        raise ValueError(rule) from None
    return duration


def _count_microseconds(text: str) -> Fraction:
    """Return the exact length of a valid duration in microseconds; its sign is ignored."""
    total, amount = Fraction(0), ""
    for character in text:
        if character in _MICROSECONDS:
            total += Fraction(amount) * _MICROSECONDS[character]
            amount = ""
        elif character not in "+-PT":
            amount += "." if character == "," else character
    return total
