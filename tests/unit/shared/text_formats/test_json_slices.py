"""Tests of the JSON parser that parses a text in slices."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats import json_slices
from shared.text_formats.json_slices import loads_in_slices

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.integers(0, 4), st.sampled_from([None, 2]))
def test_the_result_equals_the_standard_library(value: object, levels: int, indent: int | None) -> None:
    """The result equals that of the standard library for any number of sliced levels and any white space."""
    text = json.dumps(value, indent=indent)
    assert loads_in_slices(text, levels) == value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_slices, "_SLICE", 0)
        assert loads_in_slices(text, levels) == value


ROWS = st.lists(
    st.lists(st.text('],[{}"\\\\a') | st.integers() | st.lists(st.lists(st.text("],["))))
    | st.dictionaries(st.text(), st.text("},{"))
)


@given(ROWS, st.integers(1, 30))
def test_members_parsed_together_equal_the_standard_library(rows: list[object], size: int) -> None:
    """Slicing between members never changes the result, even if the texts of the members contain brackets."""
    text = json.dumps(rows, separators=(",", ":"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_slices, "_SLICE", size)
        assert loads_in_slices(text, 1) == rows


@pytest.mark.parametrize(
    "text", ["[[1],[2],[3", "[[1],[2],[3]", "[[1],[2],[3],]", "[[1],,[2]]", '[["],["]', "[[1],[2]] x"]
)
def test_invalid_json_after_a_cut_is_rejected(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a JSON text is reported even if the slices before it were parsed correctly."""
    monkeypatch.setattr(json_slices, "_SLICE", 2)
    with pytest.raises(ValueError, match="line 1"):
        loads_in_slices(text, 1)


def test_numbers_of_members_parsed_together_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers of any length and numbers beyond the range of doubles equal those of the standard library."""
    monkeypatch.setattr(json_slices, "_SLICE", 2)
    for number in (
        "1234567890123456789",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "1E400",
        "-0",
        "0.1",
    ):
        text = f"[[{number}],[1],[2],[3]]"
        assert repr(loads_in_slices(text, 1)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text", ["", "[", "[1,]", "[1 2]", '{"a"}', '{"a":1,}', "{1:2}", '{"a":1', "[1] x", '["a', "[,]"]
)
@pytest.mark.parametrize("size", [-1, json_slices._SLICE])
def test_invalid_json_is_rejected(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is not JSON raises an error at every level, whether it is parsed in slices or in one call."""
    monkeypatch.setattr(json_slices, "_SLICE", size)
    for levels in range(3):
        with pytest.raises(ValueError, match="line 1"):
            loads_in_slices(text, levels)
