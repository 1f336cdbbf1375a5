"""Tests of the strict JSON parser."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text_formats import strict_json
from shared.text_formats.strict_json import MAX_CONTAINERS, MAX_DEPTH, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_valid_json_is_parsed(value: object) -> None:
    """Each JSON value is parsed to the value that was written."""
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


TEXTS = st.recursive(
    st.sampled_from(['""', '"a\\"', '"\\u0022"', '"\\""', "1", "-0", "1e5", "1E-400", "1e400", "1.50", "null", "true"])
    | st.integers(-(2**70), 2**70).map(str)
    | st.floats().map(repr)
    | st.text(max_size=3).map(json.dumps),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{' , '.join(each)}]")
        | st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"\\""']), inner), max_size=3).map(
            lambda each: "{" + ",".join(f"{key}:{value}" for key, value in each) + "}"
        )
    ),
    max_leaves=10,
)
"""JSON texts, and texts that are nearly JSON, with equal keys and all kinds of numbers and escapes."""


@given(TEXTS)
def test_the_fast_and_the_slow_parser_agree(text: str) -> None:
    """The fast parser returns the same values and types as the slow parser, or does not support the text."""
    found = strict_json._try_parse_with_orjson(text.encode())
    if found is not strict_json._UNDECIDED:
        assert repr(found) == repr(strict_json._parse_with_standard_library(text.encode(), int))


@pytest.mark.parametrize("text", ['{"a": 1, "b": [true, null, 1.5, "\u00e9\\n"]}', "[[], {}]", '"x"', "-17"])
def test_the_fast_parser_supports_ordinary_texts(text: str) -> None:
    """The fast parser supports objects, arrays, numbers, and strings without escaped code units."""
    assert strict_json._try_parse_with_orjson(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark; send UTF-8 without one"),
        (b"\xff", "UTF-8"),
        (b"NaN", "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (b"1e999", "double"),
        (b"9" * 5000, "digits"),
        (b'{"a":1,"a":1}', "'a' occurs twice"),
        (b'[{"b":{"a":1,"a":2}}]', "'a' occurs twice"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b"[" * 99_000, "nested"),
        (b"[" * 300_000, "more than 100000 arrays"),
        (b"[" + b"{}," * 100_000 + b"{}]", "more than 100000 arrays and objects"),
    ],
)
def test_invalid_json_is_rejected(body: bytes, rule: str) -> None:
    """A text that is not strict JSON raises an error with the rule, and never a RecursionError."""
    with pytest.raises(ValueError, match=rule):
        parse_json(body)


@pytest.mark.parametrize("character", ["[", '\\"{', "{["])
def test_brackets_inside_strings_are_not_counted(character: str) -> None:
    """Only brackets outside strings count as arrays and objects."""
    text = character * (MAX_CONTAINERS + 1)
    assert parse_json(json.dumps([text]).encode()) == [text]


def test_the_maximum_of_arrays_is_accepted() -> None:
    """A text with the maximum of 100,000 arrays and objects is accepted."""
    assert len(parse_json(b"[" + b"[]," * (MAX_CONTAINERS - 2) + b"{}]")) == MAX_CONTAINERS - 1


def test_a_pair_of_surrogates_is_a_character() -> None:
    """An escaped pair of surrogates is parsed to one character."""
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_the_maximum_depth_is_accepted() -> None:
    """A text with the maximum of 100 levels is accepted."""
    assert parse_json(b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH)


@pytest.mark.parametrize("value", [[[]] * 60_000, [[[1.5, "[", None], {"a": [True]}]] * 20_000])
def test_a_text_with_many_arrays_is_parsed_to_the_same_value(value: object) -> None:
    """The parser for texts with many arrays returns the same values as the ordinary parser."""
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("end", [b"[1,]", b'{"a":1,"a":2}', b"NaN", b"1e999", b"[" * 2_000])
def test_a_text_with_many_arrays_has_the_same_errors(end: bytes) -> None:
    """The parser for texts with many arrays rejects the same texts as the ordinary parser."""
    with pytest.raises(ValueError, match=r"not JSON|twice|is not JSON|outside|nested"):
        parse_json(b"[" + b"[]," * 60_000 + end + b"]")


@pytest.mark.parametrize(
    "element",
    [
        b'{"a":1,"a":2}',
        b"1e400",
        b"[" * 100 + b"]" * 100,
        b'"\\ud800"',
        b"NaN",
        b"1" * 4_301,
        b"[" * 5_000 + b"]" * 5_000,
    ],
)
def test_the_invalid_element_of_an_array_is_found(element: bytes) -> None:
    """If an error has no position, the array element that causes it is found."""
    assert strict_json.find_invalid_element_index(b' [ {"a":[]} ,\n2, ' + element + b" ,3]", 3) == 2


@pytest.mark.parametrize(
    "body", [b"", b"[", b"{}", b"[1,2]", b"[1,2}", b"[1,,1e400]", b"\xff", b"[" + b"[]," * 100_001 + b"1e400]"]
)
def test_errors_outside_of_elements_name_no_element(body: bytes) -> None:
    """For a syntax error, or an error about the whole text, no array element is named."""
    assert strict_json.find_invalid_element_index(body, 10) is None


def test_only_the_elements_that_a_caller_accepts_are_checked() -> None:
    """Elements after the greatest number that the caller accepts are not checked, because each check takes long."""
    assert strict_json.find_invalid_element_index(b"[1,1,1e400]", 3) == 2
    assert strict_json.find_invalid_element_index(b"[1,1,1,1e400]", 3) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON: the text is empty"),
        (b" \n", "not JSON: the text is empty"),
        (b'["\n"]', "not JSON: Invalid control character at line 1 column 3"),
        (b'["', "not JSON: Unterminated string starting at line 1 column 2"),
    ],
)
def test_a_json_error_message_is_one_sentence(body: bytes, message: str) -> None:
    """An error message is one sentence with at most one position."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse_json(body)
