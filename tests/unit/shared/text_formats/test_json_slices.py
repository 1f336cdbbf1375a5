"""Tests of the JSON parser that reads in slices."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats.json_slices import loads_in_slices

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.integers(0, 4), st.sampled_from([None, 2]))
def test_the_result_equals_the_standard_library(value: object, levels: int, indent: int | None) -> None:
    """The result is the same for every number of levels, with and without white space."""
    assert loads_in_slices(json.dumps(value, indent=indent), levels) == value


@pytest.mark.parametrize(
    "text", ["", "[", "[1,]", "[1 2]", '{"a"}', '{"a":1,}', "{1:2}", '{"a":1', "[1] x", '["a', "[,]"]
)
def test_invalid_json_is_rejected(text: str) -> None:
    """A text that is not JSON raises an error at every level."""
    for levels in range(3):
        with pytest.raises(ValueError, match="line 1"):
            loads_in_slices(text, levels)
