"""Tests of timestamps."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.timestamps import format_rfc3339, from_unix_microseconds, parse_iso8601, parse_rfc3339, to_unix_microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_formatted_timestamp_is_parsed_back(instant: datetime) -> None:
    """A time of any year that is formatted and parsed is unchanged, and the texts sort like the times."""
    text = format_rfc3339(instant)
    assert parse_rfc3339(text) == instant
    assert len(text) == 27


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
        ("2026-01-01t00:00:00.5z", "2026-01-01T00:00:00.500000Z"),
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000000Z"),
        ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z"),
        ("2025-12-31T23:59:59-00:00", "2025-12-31T23:59:59.000000Z"),
    ],
)
def test_all_forms_of_rfc_3339_are_parsed(text: str, expected: str) -> None:
    """RFC 3339 texts are parsed in upper and lower case, with any offset and number of fraction digits."""
    assert format_rfc3339(parse_rfc3339(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2016-12-31T23:59:60Z",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-W01-1T00:00:00Z",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00+0100",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "2026-01-01T00:00:00+02:60",
        "2026-01-01T00:00:00-02:99",
        "2026-01-01T00:00:00+24:00",
        "yesterday",
        "\u0662026-01-01T00:00:00Z",
    ],
)
def test_invalid_timestamps_are_rejected(text: str) -> None:
    """A text that is not RFC 3339, or has no zone, raises a ValueError with an example."""
    with pytest.raises(ValueError, match=r"date-time"):
        parse_rfc3339(text)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-05", "2026-01-05T00:00:00.000000Z"),
        ("2026-01-05T08:00", "2026-01-05T08:00:00.000000Z"),
        ("20260105t0930-0130", "2026-01-05T11:00:00.000000Z"),
        ("2026-W02-1T08+02", "2026-01-05T06:00:00.000000Z"),
        ("2026-01-05T08:00:00.5z", "2026-01-05T08:00:00.500000Z"),
        ("2026-01-05T08:00:00+23:59", "2026-01-04T08:01:00.000000Z"),
    ],
)
def test_iso_8601_texts_are_parsed(text: str, instant: str) -> None:
    """ISO 8601 dates and times without a zone are in UTC; basic formats and week dates are parsed."""
    assert format_rfc3339(parse_iso8601(text)) == instant


@pytest.mark.parametrize(
    ("text", "instant", "next_instant"),
    [
        ("2026-01-05T08:00:00.0000009Z", "2026-01-05T08:00:00.000000Z", "2026-01-05T08:00:00.000001Z"),
        ("20260105T095959,9999990001+0200", "2026-01-05T07:59:59.999999Z", "2026-01-05T08:00:00.000000Z"),
        ("2026-01-05T08:00:00.000001000Z", "2026-01-05T08:00:00.000001Z", "2026-01-05T08:00:00.000001Z"),
        ("2026-01-05T08:00:00.12345Z", "2026-01-05T08:00:00.123450Z", "2026-01-05T08:00:00.123450Z"),
    ],
)
def test_iso_8601_times_between_microseconds_are_rounded(text: str, instant: str, next_instant: str) -> None:
    """A time between two microseconds is rounded down, or on request up."""
    assert format_rfc3339(parse_iso8601(text)) == instant
    assert format_rfc3339(parse_iso8601(text, round_up=True)) == next_instant


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("yesterday", "must be an ISO 8601 date-time"),
        ("2026-02-30", "must be an ISO 8601 date-time"),
        ("0001-01-01T00:00:00+01:00", "must be an ISO 8601 date-time"),
        ("2026-01-05T08:00:00+24:00", "must be an ISO 8601 date-time"),
        ("2026-01-05T08:00:00+02:99", "minutes of 00 to 59"),
        ("20260105T080000-0260", "minutes of 00 to 59"),
        ("2026-01-05T08:00:00+02:00:30", "must not have seconds"),
    ],
)
def test_invalid_iso_8601_texts_are_rejected(text: str, rule: str) -> None:
    """A text that is not ISO 8601, or has an offset with more than 59 minutes or seconds, is rejected."""
    with pytest.raises(ValueError, match=rule):
        parse_iso8601(text)


def test_the_last_microsecond_of_the_year_9999_is_not_rounded_up() -> None:
    """A time in the last microsecond of the year 9999 is rounded down even if it should be rounded up."""
    instant = parse_iso8601("9999-12-31T23:59:59.9999999Z", round_up=True)
    assert format_rfc3339(instant) == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-05T08:00:00.0000009Z", "2026-01-05T08:00:00.000001Z"),
        ("2026-01-05T09:59:59.999999000001+02:00", "2026-01-05T08:00:00.000000Z"),
        ("2026-01-05T08:00:00.0000010Z", "2026-01-05T08:00:00.000001Z"),
        ("2026-01-05T08:00:00.000001Z", "2026-01-05T08:00:00.000001Z"),
    ],
)
def test_rfc_3339_times_between_microseconds_are_rounded_up_on_request(text: str, instant: str) -> None:
    """An RFC 3339 time between two microseconds is rounded up on request."""
    assert format_rfc3339(parse_rfc3339(text, round_up=True)) == instant


def test_microseconds_are_converted_back() -> None:
    """A time that is converted to microseconds since 1970 and back is unchanged; times before 1970 are negative."""
    instant = datetime(2026, 1, 5, 8, 0, 0, 123_457, UTC)
    assert from_unix_microseconds(to_unix_microseconds(instant)) == instant
    assert to_unix_microseconds(instant + timedelta(microseconds=1)) - to_unix_microseconds(instant) == 1
    assert to_unix_microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
