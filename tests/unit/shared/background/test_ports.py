"""Tests that stored due times are limited after clocks are set back."""

from datetime import timedelta

import pytest

from shared.background.ports import CLOCK_TOLERANCE, cap_stored_time
from tests.virtual_time import START


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (timedelta(0), START),
        (-CLOCK_TOLERANCE * 10, START - CLOCK_TOLERANCE * 10),
        (CLOCK_TOLERANCE, START + CLOCK_TOLERANCE),
        (CLOCK_TOLERANCE + timedelta(microseconds=1), START),
    ],
)
def test_a_due_time_too_far_in_the_future_counts_as_now(ahead: timedelta, expected: object) -> None:
    """A job whose due time is too far in the future is due now, because otherwise it would not run for a long time."""
    assert cap_stored_time(START + ahead, START) == expected
