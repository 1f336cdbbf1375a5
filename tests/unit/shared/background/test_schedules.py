"""Tests of NCRONTAB schedules."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.background.schedules import Schedule

START = datetime(2026, 1, 31, 23, 59, 58, 500_000, UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * * *", "2026-01-31T23:59:59Z"),
        ("0 */5 * * * *", "2026-02-01T00:00:00Z"),
        ("*/5 * * * *", "2026-02-01T00:00:00Z"),
        ("30 0 9-17 * * MON-FRI", "2026-02-02T09:00:30Z"),
        ("0 0 0 13 * 5", "2026-02-13T00:00:00Z"),
        ("0 0 12 29 FEB *", "2028-02-29T12:00:00Z"),
    ],
)
def test_a_schedule_has_six_fields(expression: str, expected: str) -> None:
    """A schedule has six fields, the first for seconds; day of month and day of week must both match."""
    assert Schedule(expression).next(START) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "@daily",
        "0 0 0 L * *",
        "0 0 0 * * 1#2",
        "61 * * * * *",
        "0 0 0 31 2 *",
        "00:00:30",
        "? * * * * *",
    ],
)
def test_invalid_expressions_are_rejected(expression: str) -> None:
    """An expression is rejected if it is not NCRONTAB or never occurs."""
    with pytest.raises(ValueError, match="NCRONTAB"):
        Schedule(expression)


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1)), st.sampled_from([1, 2, 5, 15, 30]))  # noqa: DTZ001  aware below
def test_an_occurrence_is_the_next_multiple_of_the_step(naive: datetime, step: int) -> None:
    """With a step, the next occurrence is the next multiple of the step, at most one step away."""
    instant = naive.replace(tzinfo=UTC)
    due = Schedule(f"*/{step} * * * * *").next(instant)
    assert instant < due <= instant + timedelta(seconds=step)
    assert due.second % step == 0
    assert due.microsecond == 0


def test_due_times_do_not_depend_on_earlier_calls() -> None:
    """The due time after a given time does not depend on earlier calls."""
    schedule = Schedule("0 */5 * * * *")
    schedule.next(START + timedelta(days=400))
    assert schedule.next(START) == Schedule("0 */5 * * * *").next(START)
    assert schedule.next(START.astimezone(timezone(timedelta(hours=2)))) == schedule.next(START)


def test_the_interval_is_the_time_between_two_occurrences() -> None:
    """The interval of a schedule is the time between two occurrences."""
    assert Schedule("*/10 * * * * *").interval(START) == timedelta(seconds=10)
