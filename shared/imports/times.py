"""Times of imported rows, including local times without a zone."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportMapping
from shared.telemetry.timestamp_formats import parse_timestamp

_TEXT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)
_EXPECTED: Final = "a date-time such as 2026-01-01T00:00:00Z is expected"


class TimeParser:
    """Parser of the times in the rows of an import.

    Args:
        mapping: format of the times and their zone.
    """

    def __init__(self, mapping: ImportMapping) -> None:
        self._format = mapping.timestamp_format
        self._decimal = mapping.decimal
        self._zone = ZoneInfo(mapping.time_zone) if mapping.time_zone else None

    def parse(self, value: Any) -> datetime:
        """Convert the time in a cell to UTC.

        Args:
            value: cell with a text, a number or a datetime.

        Raises:
            ValueError: the value is not a time in the format of the import; the message is the end of a sentence.
        """
        if isinstance(value, datetime):
            return self._to_utc(value)
        if isinstance(value, str):
            value = value.strip()
        if self._format is TimestampFormat.RFC3339:
            return self._parse_text(value if isinstance(value, str) else "")
        if isinstance(value, str) and self._decimal == ",":
            value = value.replace(",", ".")
        return parse_timestamp(str(value) if isinstance(value, Decimal) else value, self._format)

    def _parse_text(self, text: str) -> datetime:
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(_EXPECTED)
        day, minute, second, offset = found.groups()
        try:
            local = datetime.fromisoformat(f"{day}T{minute}{second or ':00'}{(offset or '').upper()}")
        except ValueError:
            raise ValueError("the date-time has a day or time that does not exist") from None
        return self._to_utc(local)

    def _to_utc(self, moment: datetime) -> datetime:
        try:
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
            if self._zone is None:
                raise ValueError("the date-time has no time zone; set `mapping.timeZone`")
            return self._resolve_local_time(moment, self._zone)
        except OverflowError:
            raise ValueError("the date-time is outside the years 1 to 9999") from None

    def _resolve_local_time(self, local: datetime, zone: ZoneInfo) -> datetime:
        """Convert a local time to UTC; reject times that a change of clocks skips or repeats."""
        first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
        if first == second:
            return first
        if abs(first - second) < timedelta(days=1) and first.astimezone(zone).replace(tzinfo=None) == local:
            rule = "occurs twice, because clocks were set back"
        else:
            rule = "does not exist, because clocks were set forward"
        raise ValueError(f"the local time {rule} in {zone.key}; write it with an offset")
