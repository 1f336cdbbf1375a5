"""Formats timestamps and durations for requests, and reads the times in the headers of replies."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def format_instant(value: datetime | str | None) -> str | None:
    """Format a time as RFC 3339 in UTC; return text unchanged. A time without a time zone is taken as local time.

    Example:
        >>> format_instant(datetime(2026, 1, 5, 8, tzinfo=UTC))
        '2026-01-05T08:00:00+00:00'
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value


def format_iso_duration(value: timedelta) -> str:
    """Format a duration as ISO 8601, exact to the microsecond.

    Example:
        >>> format_iso_duration(timedelta(minutes=-90))
        '-P0DT5400.000000S'
    """
    sign, length = ("-", -value) if value < timedelta() else ("", value)
    return f"{sign}P{length.days}DT{length.seconds}.{length.microseconds:06d}S"


def parse_retry_after_seconds(retry_after: str, date_header: str) -> float | None:
    """Return the seconds in a ``Retry-After`` header (RFC 9110 section 10.2.3), which can also be a date.

    Args:
        retry_after: value of the header; empty if it is missing.
        date_header: header ``Date`` of the same reply; empty if it is missing.

    Returns:
        None if the header is missing or malformed, or if the date is not in the future.

    Example:
        >>> parse_retry_after_seconds("Mon, 05 Jan 2026 08:00:20 GMT", "Mon, 05 Jan 2026 08:00:00 GMT")
        20.0
    """
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        until = _parse_http_date_as_unix_seconds(retry_after)
    except (ValueError, OverflowError):
        return None
    seconds = until - parse_date_header_as_unix_seconds(date_header)
    # A pause of 0 would repeat requests without any pause.
    return seconds if seconds > 0 else None


def parse_date_header_as_unix_seconds(date_header: str) -> float:
    """Return the time of a ``Date`` header in seconds since 1970; the time of this computer if it is malformed."""
    try:
        return _parse_http_date_as_unix_seconds(date_header)
    except (ValueError, OverflowError):
        return time.time()


def _parse_http_date_as_unix_seconds(text: str) -> float:
    moment = parsedate_to_datetime(text)
    # The oldest of the formats that HTTP permits (RFC 9110 section 5.6.7) names no zone, and means UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
