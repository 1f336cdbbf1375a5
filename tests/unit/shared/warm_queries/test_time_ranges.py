"""Tests of the time range that limits a query."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import WorkspaceError
from shared.warm_queries.time_ranges import (
    TimeInterval,
    build_time_condition_kql,
    build_time_parameter_literals,
    get_time_parameter_name,
    is_fixed_time_range,
    parse_rfc3339_or_milliseconds,
    select_time_range,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("value", ["2026-03-01T00:00:00Z", "2026-03-01T01:00:00+01:00", "1772323200000", 1772323200000])
def test_a_time_is_rfc_3339_or_milliseconds(value: Any) -> None:
    """A time can be RFC 3339 text, a text of digits, or a number; the latter are milliseconds since 1970."""
    assert parse_rfc3339_or_milliseconds(value) == NOW


@given(st.integers(0, 253_402_300_799_999))
def test_times_in_milliseconds_are_exact(milliseconds: int) -> None:
    """Each millisecond up to the year 9999 is exact, as text, integer and float."""
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert (
        parse_rfc3339_or_milliseconds(milliseconds)
        == parse_rfc3339_or_milliseconds(str(milliseconds))
        == parse_rfc3339_or_milliseconds(float(milliseconds))
        == expected
    )


@pytest.mark.parametrize(
    "value", ["", "yesterday", "2026-03-01", "-1", "1e3", "253402300800000", -1, 0.5, True, [], {}, "\u0661"]
)
def test_values_that_are_no_times_are_rejected(value: Any) -> None:
    """A value that is not a time is rejected, and the error names both accepted forms."""
    with pytest.raises(ValueError, match="RFC 3339 time or milliseconds"):
        parse_rfc3339_or_milliseconds(value)


def list_invalid_fields(duration: timedelta | None, start: datetime | None, end: datetime | None) -> list[str]:
    """Select a time range that must be rejected; return the names of the fields that the error reports."""
    with pytest.raises(WorkspaceError) as caught:
        select_time_range(duration, start, end, NOW)
    return [error["field"] for error in caught.value.members["errors"]]  # type: ignore[attr-defined]


def test_a_time_range_spans_at_most_366_days() -> None:
    """A time range is a duration, two times, one time, or missing, and spans at most 366 days."""
    year = timedelta(days=366)
    assert select_time_range(None, None, None, NOW) is None
    assert select_time_range(HOUR, None, None, NOW) == HOUR
    assert select_time_range(None, NOW - year, None, NOW) == TimeInterval(NOW - year)
    assert select_time_range(None, NOW, NOW + year, NOW) == TimeInterval(NOW, NOW + year)


def test_contradictory_parameters_are_rejected() -> None:
    """``from`` or ``to`` with ``timeRange``, ``to`` without an earlier ``from``, and over 366 days are rejected."""
    assert list_invalid_fields(HOUR, NOW, None) == ["timeRange"]
    assert list_invalid_fields(HOUR, None, NOW) == ["timeRange", "to"]
    assert list_invalid_fields(None, None, NOW) == ["to"]
    assert list_invalid_fields(None, NOW, NOW) == ["to"]
    assert list_invalid_fields(None, NOW, NOW - HOUR) == ["to"]
    late = timedelta(days=366, milliseconds=1)
    assert list_invalid_fields(None, NOW - late, None) == ["from"]
    assert list_invalid_fields(None, NOW, NOW + late) == ["from"]


def test_a_duration_includes_both_ends() -> None:
    """A range by duration includes both ends; a range between two times excludes its end."""
    assert build_time_condition_kql("T", HOUR) == "T between (_oi_from .. _oi_to)"
    assert build_time_condition_kql("T", TimeInterval(NOW, NOW + HOUR)) == "T >= _oi_from and T < _oi_to"
    assert build_time_condition_kql("T", TimeInterval(NOW)) == "T >= _oi_from"
    start, end = "datetime(2026-03-01T00:00:00.000000Z)", "datetime(2026-03-01T01:00:00.000000Z)"
    assert build_time_parameter_literals(TimeInterval(NOW, NOW + HOUR), NOW) == {"_oi_from": start, "_oi_to": end}
    assert build_time_parameter_literals(HOUR, NOW + HOUR) == {"_oi_from": start, "_oi_to": end}
    assert build_time_parameter_literals(TimeInterval(NOW), NOW) == {"_oi_from": start}


def test_results_of_fixed_time_ranges_can_be_cached() -> None:
    """The result of a time range can be cached only if the range has fixed times; a duration ends at the present."""
    assert (is_fixed_time_range(None), is_fixed_time_range(TimeInterval(NOW)), is_fixed_time_range(HOUR)) == (
        True,
        True,
        False,
    )
    assert (get_time_parameter_name(TimeInterval(NOW)), get_time_parameter_name(HOUR)) == ("from", "timeRange")
