"""Formatting and parsing of timestamps: RFC 3339 in UTC with microseconds and ``Z``."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

# fromisoformat also accepts weeks, commas and offsets without a colon, which RFC 3339 does not have.
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?([Zz]|[+-](\d\d):(\d\d))?", re.ASCII)
_MAX_HOURS, _MAX_MINUTES = "23", "59"
_BELOW_MICROSECOND = re.compile(r"[.,][0-9]{6}0*[1-9]")

LONGEST_SETBACK: Final = timedelta(hours=1)
"""Longest time by which the clock of a host may be set back; cursors by time read the last hour's records again."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_LENGTH_WITHOUT_ZONE: Final = len("2026-01-05T08:00:00.000000")


def now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    return datetime.now(UTC)


def format_rfc3339(instant: datetime) -> str:
    """Format an aware datetime as RFC 3339 text in UTC with microseconds and ``Z``."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    # strftime omits the leading zeros of years before 1000.
    return instant.isoformat(timespec="microseconds")[:_LENGTH_WITHOUT_ZONE] + "Z"


def to_unix_microseconds(instant: datetime) -> int:
    """Convert an aware datetime to microseconds since 1970; earlier times are negative."""
    return (instant - _EPOCH) // _MICROSECOND


def from_unix_microseconds(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a datetime in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def parse_rfc3339(text: str, *, round_up: bool = False) -> datetime:
    """Parse an RFC 3339 text that has a time zone; return the time in UTC.

    Args:
        text: text to parse.
        round_up: True to round a time between two microseconds up, as an inclusive start and an exclusive end of a
            range require; otherwise, it is rounded down.

    Raises:
        ValueError: the text is not RFC 3339, has no time zone, or is outside the range of a datetime.
    """
    if is_canonical_timestamp(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # the code below chooses the message
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected")
    if not found[1]:
        raise ValueError("the date-time has no time zone; end it with Z or an offset")
    check_utc_offset(found[2], found[3])
    try:
        instant = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except ValueError:
        raise ValueError("the date-time has a day or time that does not exist") from None
    except OverflowError:
        raise ValueError("the date-time is outside the years 1 to 9999") from None
    return _round_up_if_between_microseconds(instant, text) if round_up else instant


def parse_iso8601(text: str, *, round_up: bool = False) -> datetime:
    """Parse an ISO 8601 text, also a date alone; a time without a zone is in UTC. Return the time in UTC.

    Args:
        text: text to parse.
        round_up: as for :func:`parse_rfc3339`.

    Raises:
        ValueError: the text is not ISO 8601, has an invalid offset, or is outside the range of a datetime.
    """
    try:
        instant = datetime.fromisoformat(text.upper())
        found = instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be an ISO 8601 date-time such as 2026-01-01T00:00:00Z") from None
    if instant.tzinfo and text[-1] not in "Zz":
        offset = text[max(text.rfind("+"), text.rfind("-")) + 1 :].replace(":", "")
        check_utc_offset(offset[:2], offset[2:4])
        if offset[4:]:
            raise ValueError("the offset of the date-time must not have seconds")
    return _round_up_if_between_microseconds(found, text) if round_up else found


def _round_up_if_between_microseconds(instant: datetime, text: str) -> datetime:
    """Return the next microsecond if a timestamp has digits below its microsecond; the last one of 9999 stays."""
    is_between = _BELOW_MICROSECOND.search(text) and instant < _LATEST
    return instant + _MICROSECOND if is_between else instant


def check_utc_offset(hours: str | None, minutes: str | None) -> None:
    """Check the hours and minutes of a timestamp's offset from UTC; both are None if the timestamp has no offset.

    Raises:
        ValueError: RFC 3339 forbids the offset. ``fromisoformat`` would accept minutes above 59 as further hours.
    """
    if hours and minutes and (hours > _MAX_HOURS or minutes > _MAX_MINUTES):
        raise ValueError("the offset of the date-time must have hours of 00 to 23 and minutes of 00 to 59")


def is_canonical_timestamp(text: str) -> bool:
    """Return whether a text looks like a timestamp that :func:`format_rfc3339` writes; the digits are not checked.

    This check is faster than a regular expression. It is worthwhile because this service wrote most of the timestamps
    that it reads.
    """
    return len(text) == _LENGTH_WITHOUT_ZONE + 1 and text[4:20:3] == "--T::." and text[-1] == "Z" and text.isascii()
