"""Formats timestamps and durations for requests."""

from datetime import UTC, datetime, timedelta


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
