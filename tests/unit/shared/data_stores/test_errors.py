"""Tests of the errors of document stores."""

import pytest

from shared.data_stores.errors import build_throttled_error


@pytest.mark.parametrize(("seconds", "whole"), [(0, 1), (0.2, 1), (1, 1), (1.01, 2), (7, 7)])
def test_the_delay_of_a_throttling_error_is_rounded_up(seconds: float, whole: int) -> None:
    """The delay of a throttling error is the account's delay, rounded up to at least one whole second."""
    assert build_throttled_error(seconds).members["retryAfter"] == whole
