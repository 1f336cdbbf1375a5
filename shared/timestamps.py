"""Formatting and parsing of timestamps: RFC 3339 in UTC with microseconds and ``Z``."""

import re
from datetime import UTC, datetime

# fromisoformat also accepts weeks, commas and offsets without a colon, which RFC 3339 does not have.
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    return datetime.now(UTC)


def rfc3339(instant: datetime) -> str:
    """Format an aware datetime as RFC 3339 text in UTC with microseconds and ``Z``."""
    # strftime omits the leading zeros of years before 1000.
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Parse an RFC 3339 text that has a time zone; return the time in UTC.

    Raises:
        ValueError: the text is not RFC 3339, has no time zone, or is outside the range of a datetime.
    """
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected")
    if not found[1]:
        raise ValueError("the date-time has no time zone; end it with Z or an offset")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except ValueError:
        raise ValueError("the date-time has a day or time that does not exist") from None
    except OverflowError:
        raise ValueError("the date-time is outside the years 1 to 9999") from None
