"""Tests of timestamp formats of messages."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.models import TimestampFormat
from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.timestamp_formats import parse_timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS, MILLISECONDS = TimestampFormat.EPOCH_SECONDS, TimestampFormat.EPOCH_MILLISECONDS
INSTANTS = st.datetimes(timezones=st.just(UTC))
EXACT_AS_DOUBLE = st.integers(-8_000_000_000_000_000, 2**33 * 1_000_000).map(
    lambda microseconds: EPOCH + timedelta(microseconds=microseconds)
)


def _format_unix_time(instant: datetime, unit: timedelta) -> str:
    microseconds = (instant - EPOCH) // timedelta(microseconds=1)
    return f"{Decimal(microseconds) / (unit // timedelta(microseconds=1)):f}"


@pytest.mark.parametrize(("form", "unit"), [(SECONDS, timedelta(seconds=1)), (MILLISECONDS, timedelta(milliseconds=1))])
@given(instant=EXACT_AS_DOUBLE)
def test_timestamps_that_are_numbers_are_exact(form: TimestampFormat, unit: timedelta, instant: datetime) -> None:
    """From 1700 to 2242, a timestamp that is a JSON number is exact to the microsecond."""
    assert parse_timestamp(parse_lossless_json(_format_unix_time(instant, unit).encode()), form) == instant


@pytest.mark.parametrize(("form", "unit"), [(SECONDS, timedelta(seconds=1)), (MILLISECONDS, timedelta(milliseconds=1))])
@given(instant=INSTANTS)
def test_timestamps_that_are_texts_are_exact(form: TimestampFormat, unit: timedelta, instant: datetime) -> None:
    """From the year 1 to 9999, a timestamp that is a number in a text is exact to the microsecond."""
    assert parse_timestamp(_format_unix_time(instant, unit), form) == instant


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (1767600000, SECONDS, "2026-01-05T08:00:00"),
        (1767600000.123456, SECONDS, "2026-01-05T08:00:00.123456"),
        ("1767600000.1234569", SECONDS, "2026-01-05T08:00:00.123456"),
        (1767600000123, MILLISECONDS, "2026-01-05T08:00:00.123"),
        (1767600000123.4, MILLISECONDS, "2026-01-05T08:00:00.123400"),
        (-0.5, SECONDS, "1969-12-31T23:59:59.500000"),
        (1e-07, SECONDS, "1970-01-01T00:00:00"),
        ("2026-01-05T09:00:00+01:00", TimestampFormat.RFC3339, "2026-01-05T08:00:00"),
    ],
)
def test_digits_beyond_microseconds_are_cut_off(value: object, form: TimestampFormat, expected: str) -> None:
    """Digits beyond microseconds are cut off, and times before 1970 are negative."""
    assert parse_timestamp(value, form) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize("form", [SECONDS, MILLISECONDS])
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "",
        " 1",
        "1 ",
        "+1",
        "1e9",
        "0x1",
        "1_000",
        "1.",
        ".5",
        "\u0661",
        "NaN",
        "2026-01-05T08:00:00Z",
        [],
        {},
    ],
)
def test_values_that_are_no_epoch_times_are_rejected(form: TimestampFormat, value: object) -> None:
    """The formats for epoch times accept numbers and decimal texts, but no booleans."""
    with pytest.raises(ValueError, match="must be a number"):
        parse_timestamp(value, form)


@pytest.mark.parametrize("value", [1767600000, True, None])
def test_rfc3339_accepts_text_only(value: object) -> None:
    """The default format rfc3339 rejects numbers."""
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_timestamp(value, TimestampFormat.RFC3339)


@pytest.mark.parametrize("value", [253402300800, 1767600000123, 1767600000123.0, "1767600000123"])
def test_a_time_out_of_range_is_rejected(value: object) -> None:
    """A time outside the years 1 to 9999 is rejected, and the error suggests the format for milliseconds."""
    with pytest.raises(ValueError, match="years 1 to 9999; is the format epochMilliseconds"):
        parse_timestamp(value, SECONDS)


@pytest.mark.parametrize(
    "value", [-62135596801, 10**4000, -(10**4000), 1.7e300, 1e20, "9" * 20, parse_lossless_json(b"1" * 30)]
)
def test_milliseconds_are_suggested_only_if_valid(value: object) -> None:
    """The format for milliseconds is suggested only if the number is a valid time in milliseconds."""
    with pytest.raises(ValueError, match=r"years 1 to 9999$"):
        parse_timestamp(value, SECONDS)
