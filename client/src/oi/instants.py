"""Format of the timestamps in requests."""

from datetime import UTC, datetime


def format_instant(value: datetime | str | None) -> str | None:
    """Format a time as RFC 3339 in UTC; text is not changed, and a time without a zone is local time.

    Example:
        >>> format_instant(datetime(2026, 1, 5, 8, tzinfo=UTC))
        '2026-01-05T08:00:00+00:00'
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value
