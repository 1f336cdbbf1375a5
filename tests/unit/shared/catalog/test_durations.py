"""Tests of parsing ISO 8601 durations."""

from datetime import timedelta

import pytest

from shared.catalog.durations import parse_duration, parse_stored_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT15M", timedelta(minutes=15)),
        ("P7D", timedelta(days=7)),
        ("P1W2DT3H4M5.5S", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5.5)),
        ("PT0,5S", timedelta(seconds=0.5)),
        ("PT0.0000010S", timedelta(microseconds=1)),
        ("-PT1H", timedelta(hours=-1)),
    ],
)
def test_a_duration_of_fixed_length_is_parsed(text: str, duration: timedelta) -> None:
    """Weeks, days, hours, minutes and seconds are added up; a decimal comma counts as a point."""
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["P1Y", "P1M", "P1Y2M3DT4H", "-P1M"])
def test_years_and_months_in_durations_have_their_own_message(text: str) -> None:
    """Years and months, whose length varies, are rejected with the units to use instead."""
    with pytest.raises(ValueError, match="years and months have no fixed length"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["PT0.0000001S", "P366DT0.0000001S", "PT1,00000001S", "PT0.00000001M", "P0.000000000001W"]
)
def test_fractions_of_a_microsecond_are_rejected(text: str) -> None:
    """A duration with a fraction of a microsecond is rejected, because the fraction would be lost."""
    with pytest.raises(ValueError, match="whole microseconds"):
        parse_duration(text)


def test_fractions_of_a_microsecond_in_stored_durations_are_rounded() -> None:
    """A stored duration can have a fraction of a microsecond, which is rounded."""
    assert parse_stored_duration("PT33.3333333S") == timedelta(seconds=33, microseconds=333_333)


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "15m", "PT1D", "P1H", "PT5M3H", "PT1e3S", "PT1S\n", "PT" + "9" * 70 + "S", "P" + "9" * 60 + "D"],
)
def test_invalid_durations_are_rejected(text: str) -> None:
    """Units in another order, unknown units, and durations out of range are rejected."""
    with pytest.raises(ValueError, match="must be an ISO 8601 duration"):
        parse_duration(text)
