"""Tests of the text format of timespans."""

from datetime import timedelta

import pytest

from emulators.kusto.timespans import TimespanRangeError, check_timespan_literal, format_timespan, parse_kusto_timespan

SPANS = {
    "00:00:01": timedelta(seconds=1),
    "1.02:03:04.5000000": timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=500),
    "-01:00:00": timedelta(hours=-1),
    "00:00:00.0000010": timedelta(microseconds=1),
}


@pytest.mark.parametrize("text", SPANS)
def test_formatted_timespans_are_parsed_to_the_same_value(text: str) -> None:
    """A timespan is formatted as in Kusto, and parsing this text gives the same timespan."""
    assert format_timespan(SPANS[text]) == text
    assert parse_kusto_timespan(text) == SPANS[text]


@pytest.mark.parametrize(("text", "span"), [("1h", timedelta(hours=1)), ("2", timedelta(days=2))])
def test_short_forms_of_timespans_are_parsed(text: str, span: timedelta) -> None:
    """A number with a unit is parsed as a timespan; a number without a unit is a number of days."""
    assert parse_kusto_timespan(text) == span


@pytest.mark.parametrize("text", ["00:00:00.0000001", "99999999d"])
def test_unrepresentable_timespans_are_rejected(text: str) -> None:
    """A timespan is rejected if it is out of range or has a fraction of a microsecond."""
    with pytest.raises(TimespanRangeError):
        check_timespan_literal(f"time({text})")
