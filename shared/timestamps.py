"""Instants as the service writes and reads them: RFC 3339, UTC, ``Z``, microseconds."""

import re
from datetime import UTC, datetime

# Stricter than fromisoformat, which also takes weeks, commas and offsets without a colon.
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def now() -> datetime:
    """Return the current instant, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(instant: datetime) -> str:
    """Return an aware instant as RFC 3339 text in UTC with microseconds and ``Z``."""
    # strftime leaves the zeros before years under 1000 out.
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Return the instant that an RFC 3339 text with a zone names, in UTC.

    Raises:
        ValueError: the text is not RFC 3339, has no zone, or names no instant that a datetime can hold.
    """
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected")
    if not found[1]:
        raise ValueError("the date-time names no zone; end it with Z or an offset")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except ValueError:
        raise ValueError("the date-time names a day or time that there is not") from None
    except OverflowError:
        raise ValueError("the date-time lies outside the years 1 to 9999") from None
