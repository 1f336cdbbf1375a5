"""The pattern of timeRange that clients are shown."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from functions.warm_queries import DURATION, TimeRange

PATTERN = re.compile(str(DURATION["pattern"]))
ADAPTER: TypeAdapter[timedelta | None] = TypeAdapter(TimeRange)


@pytest.mark.parametrize("text", ["P1DT12H", "PT0.5S", "PT15M", "P7D", "P1W2D", "+P1D", "PT8784H", "P366D", "PT1H90M"])
def test_what_is_taken_fits(text: str) -> None:
    """Every form that the service takes is one that clients may send."""
    assert ADAPTER.validate_python(text)
    assert PATTERN.fullmatch(text)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1Y", "P1M", "-P1D", "P1DT", "1D", "P1D ", "pt5m"])
def test_what_is_refused_does_not_fit(text: str) -> None:
    """What the service refuses for its form is none that clients may send."""
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(text)
    assert PATTERN.search(text) is None


@given(st.from_regex(PATTERN, fullmatch=True))
def test_only_the_size_is_left_to_the_service(text: str) -> None:
    """What fits is taken, unless it is nothing, beyond 366 days, or longer than the schema lets a text be."""
    try:
        taken = ADAPTER.validate_python(text)
    except ValidationError as error:
        [told] = error.errors()
        assert "at most 366 days" in told["msg"] or "such as" in told["msg"]
    else:
        assert taken is not None
        assert timedelta(0) < taken <= timedelta(days=366)
