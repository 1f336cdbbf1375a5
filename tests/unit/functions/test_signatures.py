"""Tests of the query parameters of the list of signatures."""

from functions.signatures import SignaturesQuery


def test_time_limits_between_microseconds_are_rounded_up() -> None:
    """The inclusive start and the exclusive end are both rounded up to the next microsecond."""
    between = "2026-01-05T08:00:00.0000009Z"
    wanted = SignaturesQuery.model_validate({"from": between, "to": between}).to_filter()
    assert (wanted.start, wanted.end) == ("2026-01-05T08:00:00.000001Z", "2026-01-05T08:00:00.000001Z")
