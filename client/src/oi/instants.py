"""Formats timestamps for requests."""

from datetime import UTC, datetime


def format_instant(value: datetime | str | None) -> str | None:
    """Format a time as RFC 3339 in UTC; return text unchanged. A time without a time zone is taken as local time.

    Example:
        >>> format_instant(datetime(2026, 1, 5, 8, tzinfo=UTC))
        '2026-01-05T08:00:00+00:00'
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value
