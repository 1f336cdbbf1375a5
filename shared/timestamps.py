"""Instants as the service writes and reads them: RFC 3339, UTC, ``Z``, microseconds."""

from datetime import UTC, datetime


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
    if len(text) < 20 or text[10] not in "Tt ":  # noqa: PLR2004  shortest form: 2026-01-01T00:00:00Z
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected")
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected") from None
    if instant.tzinfo is None:
        raise ValueError("the date-time names no zone; end it with Z or an offset")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("the date-time lies outside the years 1 to 9999") from None
