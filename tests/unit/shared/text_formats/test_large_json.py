"""Tests of integers beyond 64 bits in JSON texts, and of parsing large texts in slices."""

import json
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats import large_json
from shared.text_formats.large_json import (
    LongInteger,
    long_integer_to_int,
    long_integer_to_json,
    may_have_long_integers,
    parse_json_in_slices,
    parse_json_integer,
)


@given(st.integers())
def test_integers_beyond_64_bits_are_found(number: int) -> None:
    """Each integer that orjson would convert to a double is found."""
    if not -(2**63) <= number < 2**64:
        assert may_have_long_integers(b'{"a": [1, %d]}' % number)


@pytest.mark.parametrize("text", [b"[1234567890123456789]", b"-123456789012345678", b'"no digits"', b""])
def test_shorter_integers_are_not_reported(text: bytes) -> None:
    """A text in which no run of digits is long enough for an integer beyond 64 bits is parsed by the fast parser."""
    assert not may_have_long_integers(text)


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64 - 1, -(2**63)])
def test_integers_of_64_bits_are_parsed_as_int(number: int) -> None:
    """An integer that orjson can write is parsed as ``int``."""
    assert type(parse_json_integer(str(number))) is int
    assert parse_json_integer(str(number)) == number


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "9" * 4_300, "-" + "9" * 4_300])
def test_the_digits_of_a_long_integer_are_copied(digits: str) -> None:
    """An integer beyond 64 bits is parsed to a number with the same digits, in linear time."""
    number = parse_json_integer(digits)
    assert type(number) is LongInteger
    assert orjson.dumps([number], default=long_integer_to_json) == f"[{digits}]".encode()
    assert json.dumps([number], default=long_integer_to_int) == f"[{digits}]"


def test_values_that_are_no_long_integers_are_rejected() -> None:
    """The conversions of long integers reject any other value, because it has no JSON form."""
    for convert in (long_integer_to_json, long_integer_to_int):
        with pytest.raises(TypeError, match="Decimal"):
            convert(Decimal(1))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.integers(0, 40), st.integers(0, 20), st.sampled_from([None, 2]))
def test_sliced_parsing_equals_the_standard_library(value: object, size: int, small: int, indent: int | None) -> None:
    """For slices of any size and any white space, the result equals that of the standard library."""
    text = json.dumps(value, indent=indent)
    assert parse_json_in_slices(text) == value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_json, "_SLICE", size)
        patch.setattr(large_json, "_SMALL", small)
        assert parse_json_in_slices(text) == value


@pytest.mark.parametrize(
    "value",
    [
        [list(range(100_000))],
        {"a": {"b": [["text, text"] * 20_000, 1]}},
        [[[str(number), [number], {"n": number}] for number in range(10_000)]],
        [[{str(number): number / 3 for number in range(20_000)}]],
    ],
    ids=["numbers", "texts", "mixed", "one-object"],
)
def test_a_large_value_at_any_depth_is_parsed_in_several_calls(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call parses more than about twice the size of a slice, because other threads wait for the end of each call."""
    calls: list[int] = []
    parse, decoder = large_json._parse_with_fast_parser_if_exact, large_json._DECODER

    class Decoder:
        def raw_decode(self, text: str, at: int = 0) -> tuple[object, int]:
            found, end = decoder.raw_decode(text, at)
            calls.append(end - at)
            return found, end

    def parse_complete_text(text: str) -> object:
        calls.append(len(text))
        return parse(text)

    monkeypatch.setattr(large_json, "_DECODER", Decoder())
    monkeypatch.setattr(large_json, "_parse_with_fast_parser_if_exact", parse_complete_text)
    assert parse_json_in_slices(json.dumps(value, separators=(",", ":"))) == value
    assert max(calls) <= 2 * large_json._SLICE + 10


@pytest.mark.parametrize("wrap", ["[%s]", '{"a":%s}'])
def test_a_large_text_that_is_nested_too_deeply_raises_a_recursion_error(
    wrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested large values raise the error that the parser of the standard library raises for deep nesting."""
    monkeypatch.setattr(large_json, "_SLICE", 2)
    monkeypatch.setattr(large_json, "_SMALL", 1)
    text = "1"
    for _ in range(2_000):
        text = wrap % text
    with pytest.raises(RecursionError):
        parse_json_in_slices(text)


ROWS = st.lists(
    st.lists(st.text('],[{}"\\\\a') | st.integers() | st.lists(st.lists(st.text("],["))))
    | st.dictionaries(st.text(), st.text("},{"))
)


@given(ROWS, st.integers(1, 30))
def test_properties_parsed_together_equal_the_standard_library(rows: list[object], size: int) -> None:
    """Slicing between properties does not change the result, even if the properties contain brackets in texts."""
    text = json.dumps(rows, separators=(",", ":"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_json, "_SLICE", size)
        assert parse_json_in_slices(text) == rows


@pytest.mark.parametrize(
    "text", ["[[1],[2],[3", "[[1],[2],[3]", "[[1],[2],[3],]", "[[1],,[2]]", '[["],["]', "[[1],[2]] x"]
)
def test_invalid_json_after_a_cut_is_rejected(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the last part of a JSON text is reported, although earlier slices were parsed without error."""
    monkeypatch.setattr(large_json, "_SLICE", 2)
    with pytest.raises(ValueError, match="line 1"):
        parse_json_in_slices(text)


@pytest.mark.parametrize("size", [2, large_json._SLICE])
def test_numbers_of_any_length_are_parsed_exactly(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers of any length are parsed as in the standard library."""
    monkeypatch.setattr(large_json, "_SLICE", size)
    for number in (
        "1234567890123456789",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "-0",
        "0.1",
    ):
        text = f"[[{number}],[1],[2],[3]]"
        assert repr(parse_json_in_slices(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ['["\\ud800"]', '{"a": 1, "a": 2}', f"{'[' * 1100}{']' * 1100}"])
def test_short_texts_that_only_the_standard_library_accepts_are_parsed(text: str) -> None:
    """A short text that only the parser of the standard library accepts is parsed by that parser."""
    assert repr(parse_json_in_slices(text)) == repr(json.loads(text))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1E400", "-1e999"])
@pytest.mark.parametrize("text", ["%s", '{"a": [%s]}', "[[12345678901234567890123, %s], [1], [2]]"])
@pytest.mark.parametrize("size", [2, large_json._SLICE])
def test_numbers_that_json_does_not_have_are_rejected(
    number: str, text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN, infinity and numbers beyond the range of doubles are errors, next to integers of any length, too."""
    monkeypatch.setattr(large_json, "_SLICE", size)
    with pytest.raises(ValueError, match=r"is not JSON|outside the range of a double"):
        parse_json_in_slices(text % number)


@pytest.mark.parametrize(
    "text", ["", "[", "[1,]", "[1 2]", '{"a"}', '{"a":1,}', "{1:2}", '{"a":1', "[1] x", '["a', "[,]"]
)
@pytest.mark.parametrize("size", [-1, large_json._SLICE])
def test_invalid_json_is_rejected(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid JSON text raises an error, whether it is parsed in slices or in one call."""
    monkeypatch.setattr(large_json, "_SLICE", size)
    monkeypatch.setattr(large_json, "_SMALL", size)
    with pytest.raises(ValueError, match="line 1"):
        parse_json_in_slices(text)
