"""Tests of the client's strict JSON encoder and parser."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oi.json_text import JsonTextError, encode_json, get_value_at_pointer_part, parse_json, split_json_pointer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_encoded_values_are_parsed_to_equal_values(value: object) -> None:
    """Encoding a value and parsing the text gives an equal value."""
    try:
        text = encode_json(value).decode()
    except JsonTextError:
        assert "\\ud" in json.dumps(value)
        return
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        ('{"a": }', "a value is expected at column 7"),
        ('{"a": 1,\n "b" 2}', "a colon is expected at line 2, column 6"),
        ("{a: 1}", "a name in double quotes is expected at column 2"),
        ("[1 2]", "a comma is expected at column 4"),
        ("1 2", "text follows the value at column 3"),
        ('"abc', "the string that begins here is not closed at column 1"),
        ('"a\tb"', "a control character in a string must be escaped at column 3"),
        ('"\\x"', "an escape in a string is not valid at column 2"),
        ("[NaN]", "NaN is not a JSON number; send null or a finite number"),
        ("[-Infinity]", "-Infinity is not a JSON number; send null or a finite number"),
        ("1e400", "the number 1e400 is outside the range of a double"),
        ("1" * 5000, "an integer has more than 4300 digits"),
        ("[" * 200_000, "the value is nested too deeply"),
        ('{"a": 1, "b": {"c": 1, "c": 1}}', 'the property "c" occurs twice in one object'),
    ],
)
def test_errors_about_invalid_json_state_the_rule_and_the_position(text: str, message: str) -> None:
    """The error about invalid JSON states the broken rule and the position."""
    with pytest.raises(JsonTextError) as raised:
        parse_json(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "a number is NaN or infinite, which JSON cannot express"),
        (float("-inf"), "a number is NaN or infinite, which JSON cannot express"),
        ("\ud800", "a text has an unpaired surrogate, which is not a character"),
    ],
)
def test_values_without_a_json_form_are_rejected(value: object, message: str) -> None:
    """A value that JSON cannot represent raises an error with the reason."""
    with pytest.raises(JsonTextError) as raised:
        encode_json([value])
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/a/1/b~1c~0", 5),
        ("/a/01", None),
        ("/a/2", None),
        ("/a/-", None),
        ("/a/b", None),
        ("/x", None),
        ("/a/1/n", None),
    ],
)
def test_json_pointers_select_values(pointer: str, expected: object) -> None:
    """A pointer selects a value as in RFC 6901; if the value does not exist, it is reported as missing."""
    value: object = {"a": [0, {"b/c~": 5, "n": None}]}
    for part in split_json_pointer(pointer):
        value = get_value_at_pointer_part(value, part)
    assert value == expected


def test_repeated_property_names_are_found_in_linear_time() -> None:
    """In an object with very many properties, duplicate names are found in linear time."""
    text = "{" + ",".join(f'"{number}":0' for number in (*range(200_000), 199_999)) + "}"
    with pytest.raises(JsonTextError, match='"199999" occurs twice'):
        parse_json(text)
