"""Tests of the pattern for the parameter timeRange in the OpenAPI document."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from functions.warm_queries import DURATION, Duration

PATTERN = re.compile(str(DURATION["pattern"]))
ADAPTER: TypeAdapter[timedelta | None] = TypeAdapter(Duration)


@pytest.mark.parametrize("text", ["P1DT12H", "PT0.5S", "PT15M", "P7D", "P1W2D", "+P1D", "PT8784H", "P366D", "PT1H90M"])
def test_accepted_durations_match_the_pattern(text: str) -> None:
    """Each duration that the service accepts matches the published pattern."""
    assert ADAPTER.validate_python(text)
    assert PATTERN.fullmatch(text)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1Y", "P1M", "-P1D", "P1DT", "1D", "P1D ", "pt5m"])
def test_rejected_durations_do_not_match_the_pattern(text: str) -> None:
    """A text that is not a valid duration does not match the published pattern."""
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(text)
    assert PATTERN.search(text) is None


@given(st.from_regex(PATTERN, fullmatch=True))
def test_matching_durations_are_rejected_only_for_their_size_or_precision(text: str) -> None:
    """A timeRange that matches the pattern is rejected only if it is zero, over 366 days, too long or too precise."""
    try:
        duration = ADAPTER.validate_python(text)
    except ValidationError as error:
        [only] = error.errors()
        assert any(rule in only["msg"] for rule in ("at most 366 days", "such as", "whole microseconds"))
    else:
        assert duration is not None
        assert timedelta(0) < duration <= timedelta(days=366)
