"""ISO 8601 durations without years and months, whose length is not fixed."""

import re
from datetime import timedelta

import isodate

MAX_DURATION = 64
"""Maximum length of a duration in characters."""
_AMOUNT = "[0-9]+(?:[.,][0-9]+)?"
_DAYS = f"(?:{_AMOUNT}W(?:{_AMOUNT}D)?|{_AMOUNT}D)"
_CLOCK = f"T(?:{_AMOUNT}H(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?|{_AMOUNT}M(?:{_AMOUNT}S)?|{_AMOUNT}S)"
DURATION_PATTERN = f"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK})"
"""Durations that :func:`parse_duration` accepts, without a sign, as a pattern that is also valid in JSON Schema."""
_DURATION = re.compile(f"[+-]?{DURATION_PATTERN}")
_FRACTION_OF_MICROSECOND = re.compile(r"[.,][0-9]{6}0*+[1-9][0-9]*S")
_CALENDAR = re.compile(r"[+-]?P[0-9.,WD]*[YM][0-9.,WDYMTHS]*")


def parse_duration(text: str) -> timedelta:
    """Parse an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises:
        ValueError: if the text is not such a duration, or if its seconds have a fraction of a microsecond.
    """
    rule = "must be an ISO 8601 duration of weeks, days, hours, minutes or seconds, such as PT15M or P7D"
    if len(text) <= MAX_DURATION and _CALENDAR.fullmatch(text):
        raise ValueError("years and months have no fixed length; use weeks, days, hours, minutes or seconds")
    if len(text) > MAX_DURATION or not _DURATION.fullmatch(text):
        raise ValueError(rule)
    if _FRACTION_OF_MICROSECOND.search(text):
        raise ValueError("must be a duration of whole microseconds")
    try:
        duration: timedelta = isodate.parse_duration(text)
    except (isodate.ISO8601Error, ValueError, OverflowError, ArithmeticError):
        raise ValueError(rule) from None
    return duration
