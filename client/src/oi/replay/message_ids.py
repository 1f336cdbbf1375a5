"""Timestamps and message ids by the service's rules, so that client and service compute the same id for a message."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d++)?([Zz]|[+-](\d\d):(\d\d))?", re.ASCII)
_ID_CHARACTERS = 32


def parse_rfc3339_time(text: str) -> datetime:
    """Parse an RFC 3339 timestamp with a time zone; return the time in UTC.

    Raises:
        ValueError: the text is not RFC 3339, has no time zone or an invalid one, or names a time that does not exist.

    Example:
        >>> parse_rfc3339_time("2026-01-05T09:00:00+01:00").isoformat()
        '2026-01-05T08:00:00+00:00'
    """
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise ValueError("an RFC 3339 date-time such as 2026-01-01T00:00:00Z is expected")
    if not found[1]:
        raise ValueError("the date-time has no time zone; end it with Z or an offset")
    # `fromisoformat` would accept minutes above 59 as further hours.
    if found[2] and (found[2] > "23" or found[3] > "59"):
        raise ValueError("the offset of the date-time must have hours of 00 to 23 and minutes of 00 to 59")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("the date-time has a day or time that does not exist") from None


def parse_time_zone(name: str) -> tzinfo:
    """Return the time zone with an IANA name, such as Europe/Berlin.

    Raises:
        ValueError: there is no time zone with this name.
    """
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, LookupError, ValueError):
        raise ValueError(f"unknown time zone {name!r}") from None


def format_rfc3339_time(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC with microseconds.

    Example:
        >>> format_rfc3339_time(datetime(2026, 1, 5, 8, tzinfo=UTC))
        '2026-01-05T08:00:00.000000Z'
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def derive_message_id(connection_lookup: str, device_id: str, moment: datetime, payload: Mapping[str, Any]) -> str:
    """Compute the id of a message without an id: the id that the service would derive from the same content.

    Args:
        connection_lookup: short name of the connection in URLs (lookup).
        device_id: device id.
        moment: time of measurement.
        payload: the other properties of the message, in any order.
    """
    content = [connection_lookup, device_id, format_rfc3339_time(moment), payload]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]
