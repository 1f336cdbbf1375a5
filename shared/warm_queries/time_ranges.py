"""Time ranges that limit the telemetry that a KQL query reads: parsing, validation and conversion to KQL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shared.catalog.durations import parse_duration
from shared.errors import FieldError, build_invalid_fields_error
from shared.timestamps import format_rfc3339, parse_rfc3339

MAX_TIME_RANGE: Final = timedelta(days=366)
FROM, TO = "_oi_from", "_oi_to"
"""KQL parameters for the limits of the range; declared parameters begin with a letter and so have other names."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_MAX_MILLISECONDS: Final = 253_402_300_799_999
"""Last millisecond of the year 9999."""


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """Time range of a query with a fixed start and an optional end.

    Attributes:
        start: first time of the range.
        end: first time after the range; None for no upper limit.
    """

    start: datetime
    end: datetime | None = None


type TimeRange = timedelta | TimeInterval
"""A duration that ends now, or a range between two times."""


def parse_time_range_duration(text: Any) -> timedelta:
    """Parse the duration of a time range that ends now, such as ``PT15M``.

    Raises:
        ValueError: if the value is not an ISO 8601 duration, is not positive, or is longer than 366 days.
    """
    if not isinstance(text, str):
        raise ValueError("must be an ISO 8601 duration such as PT15M")  # noqa: TRY004  pydantic catches ValueError
    duration = parse_duration(text)
    if not timedelta(0) < duration <= MAX_TIME_RANGE:
        raise ValueError("must be positive and at most 366 days")
    return duration


def parse_rfc3339_or_milliseconds(value: Any) -> datetime:
    """Parse a time: RFC 3339 text, or milliseconds since 1970 as a number or as digits.

    Raises:
        ValueError: if the value has neither form.
    """
    if isinstance(value, str) and not _MILLISECONDS.fullmatch(value):
        try:
            return parse_rfc3339(value)
        except ValueError:
            raise ValueError("must be an RFC 3339 time or milliseconds since 1970") from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not 0 <= int(value) <= _MAX_MILLISECONDS:
        raise ValueError("must be an RFC 3339 time or milliseconds since 1970")
    return _EPOCH + timedelta(milliseconds=int(value))


def select_time_range(
    duration: timedelta | None, start: datetime | None, end: datetime | None, now: datetime
) -> TimeRange | None:
    """Return the time range of a request from its parameters ``timeRange``, ``from`` and ``to``; None without them.

    Raises:
        WorkspaceError: INVALID with the parameters that contradict each other, or with ``from`` if the range is longer
            than 366 days.
    """
    errors: list[FieldError] = []
    if duration is not None and (start is not None or end is not None):
        errors.append(FieldError("timeRange", "cannot be combined with `from` and `to`"))
    if start is None and end is not None:
        errors.append(FieldError("to", "requires `from`"))
    if start is not None and (end or now) - start > MAX_TIME_RANGE:
        errors.append(FieldError("from", "must be at most 366 days before `to`, or before now without `to`"))
    if start is not None and end is not None and end <= start:
        errors.append(FieldError("to", "must be later than `from`"))
    if errors:
        raise build_invalid_fields_error(errors)
    return duration if start is None else TimeInterval(start, end)


def is_fixed_time_range(time_range: TimeRange | None) -> bool:
    """Return whether a query reads the same time range at each execution; False for a duration that ends now."""
    return not isinstance(time_range, timedelta)


def get_time_parameter_name(time_range: TimeRange) -> str:
    """Return the name of the parameter that sets a time range, ``timeRange`` or ``from``, for error messages."""
    return "timeRange" if isinstance(time_range, timedelta) else "from"


def build_time_condition_kql(column_name: str, time_range: TimeRange) -> str:
    """Build the KQL condition for a time range; ``build_time_parameter_literals`` returns its parameters' values."""
    if isinstance(time_range, timedelta):
        return f"{column_name} between ({FROM} .. {TO})"
    return f"{column_name} >= {FROM}" + ("" if time_range.end is None else f" and {column_name} < {TO}")


def build_time_parameter_literals(time_range: TimeRange, now: datetime) -> Mapping[str, str]:
    """Build the values of the KQL parameters in ``build_time_condition_kql``, as Kusto literals by parameter name."""
    selected = TimeInterval(now - time_range, now) if isinstance(time_range, timedelta) else time_range
    limits = {FROM: selected.start, TO: selected.end}
    return {name: f"datetime({format_rfc3339(limit)})" for name, limit in limits.items() if limit is not None}
