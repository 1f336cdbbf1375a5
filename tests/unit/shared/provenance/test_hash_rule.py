"""Tests of the format of the time in records."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.provenance.hash_rule import is_record_time
from shared.timestamps import format_rfc3339

TIME = "2026-01-05T08:00:00.000000Z"


@given(st.datetimes())
def test_record_times_of_the_service_are_valid(instant: datetime) -> None:
    """Each time that the service can write into a record is valid."""
    assert is_record_time(format_rfc3339(instant.replace(tzinfo=UTC)))


@pytest.mark.parametrize("year", [0, 1, 1900, 2000, 2023, 2024, 9999])
def test_only_record_times_with_calendar_days_are_valid(year: int) -> None:
    """A time must have a day that exists in the calendar, also in leap years."""
    for month in range(14):
        for day in range(33):
            try:
                there = bool(date(year, month, day))
            except ValueError:
                there = False
            assert is_record_time(f"{year:04d}-{month:02d}-{day:02d}T23:59:59.999999Z") == there


@given(st.integers(0, len(TIME)), st.characters() | st.just(""), st.integers(0, 1))
def test_record_times_with_one_edited_character_are_invalid(place: int, character: str, taken: int) -> None:
    """A time with one character replaced, inserted or removed is invalid, unless a digit replaces a digit."""
    text = TIME[:place] + character + TIME[place + taken :]
    same_form = len(text) == len(TIME) and all(
        one == other or (one in "0123456789" and other in "0123456789") for one, other in zip(text, TIME, strict=True)
    )
    assert not is_record_time(text) or same_form


@pytest.mark.parametrize(
    "text",
    ["2026-01-05T24:00:00.000000Z", "2026-01-05T08:60:00.000000Z", "2026-01-05T08:00:60.000000Z",
     "2026-W01-1T08:00:00.000000Z", "2026-01-05 08:00:00.000000Z", "2026-01-05T08:00:00.000000+00:00Z",
     "2026-01-31T08:00:00,000000Z", "2026-01-31t08:00:00.000000Z", "2026-01-31T08:00:00.000000z",
     "2026-01-31T08:00:00.00000\uff10Z", f"{TIME}\n", ""],
)  # fmt: skip
def test_record_times_in_other_formats_are_invalid(text: str) -> None:
    """A record's time is invalid in every ISO 8601 format except the format of the hash rule."""
    assert not is_record_time(text)
