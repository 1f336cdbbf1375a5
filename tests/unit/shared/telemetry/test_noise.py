"""Tests of random walks."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.noise import SPAN, RandomWalk, derive_stream_key, reflect

KEY = derive_stream_key("walk")


@given(st.lists(st.integers(0, SPAN), min_size=1, max_size=20))
def test_positions_are_independent_of_order(ticks: list[int]) -> None:
    """A position is the same after a restart, a gap or a step back."""
    walk = RandomWalk(KEY)
    assert [walk.position_at(tick) for tick in ticks] == [RandomWalk(KEY).position_at(tick) for tick in ticks]


def test_steps_are_standard_normal() -> None:
    """Steps have mean 0 and deviation 1, and are not correlated."""
    walk = RandomWalk(KEY)
    positions = [walk.position_at(tick) for tick in range(50_001)]
    steps = [after - before for before, after in pairwise(positions)]
    assert positions[0] == 0.0
    assert statistics.fmean(steps) == pytest.approx(0, abs=0.02)
    assert statistics.stdev(steps) == pytest.approx(1, abs=0.02)
    assert statistics.correlation(steps[:-1], steps[1:]) == pytest.approx(0, abs=0.02)


@given(st.floats(-1e6, 1e6), st.floats(-1000, 1000), st.floats(0.001, 1000))
def test_reflected_value_is_within_range(value: float, low: float, span: float) -> None:
    """Any reflected value is within the range; a value within the range is unchanged."""
    high = low + span
    assert low <= reflect(value, low, high) <= high + 1e-9 * max(1.0, abs(high))
    if low <= value <= high:
        assert reflect(value, low, high) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("value", "reflected"), [(11, 9), (-1, 1), (20, 0), (21, 1), (-11, 9), (5, 5)])
def test_reflection(value: float, reflected: float) -> None:
    """Both ends reflect."""
    assert reflect(value, 0, 10) == reflected
    assert reflect(value, 3, 3) == 3
