"""Tests of the supported SQL subset, compared with the same rules written in Python."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.cosmos.sql_statement import parse_statement
from emulators.cosmos.wire import CosmosError

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b"]))
TYPES: dict[type, str] = {type(None): "null", bool: "boolean", int: "number", str: "string"}


def _matches_condition(condition: str, document: dict[str, Any], **parameters: Any) -> bool:
    values = {f"@{name}": value for name, value in parameters.items()}
    return parse_statement(f"SELECT * FROM c WHERE {condition}", values).matches(document)


@given(SCALARS, SCALARS)
def test_values_of_different_types_are_not_equal(left: Any, right: Any) -> None:
    """Values of different types are unequal, even 1 and true."""
    expected = TYPES[type(left)] == TYPES[type(right)] and left == right
    assert _matches_condition("c.x = @y", {"x": left}, y=right) is expected
    assert _matches_condition("c.x != @y", {"x": left}, y=right) is not expected


@given(SCALARS, SCALARS)
def test_comparing_the_order_of_different_types_is_undefined(left: Any, right: Any) -> None:
    """Comparing values of different types with <, <=, > or >= gives undefined."""
    comparable = TYPES[type(left)] == TYPES[type(right)]
    below = _matches_condition("c.x < @y", {"x": left}, y=right)
    assert _matches_condition("c.x >= @y", {"x": left}, y=right) is (comparable and not below)
    assert below is (comparable and left is not None and left < right)


@pytest.mark.parametrize("condition", ["c.x = 1", "c.x != 1", "NOT (c.x = 1)", "c.x IN (1)", "c.x < 1", "c.x = c.y"])
def test_conditions_on_missing_fields_match_nothing(condition: str) -> None:
    """A missing field is neither equal nor unequal to any value, so that no condition on it is true."""
    assert not _matches_condition(condition, {})


def test_true_or_undefined_is_true() -> None:
    """If one operand is undefined and the other is true, OR is true and AND is undefined."""
    assert _matches_condition("c.missing = 1 OR c.x = 1", {"x": 1})
    assert not _matches_condition("c.missing = 1 AND c.x = 1", {"x": 1})


@given(st.text())
def test_a_string_literal_equals_a_parameter(text: str) -> None:
    """A string literal equals a parameter with the same text, whatever characters it contains."""
    assert _matches_condition("c.x = @x", {"x": text}, x=text)


@pytest.mark.parametrize(
    ("literal", "value"),
    [("'it\\'s'", "it's"), ('"a\\"b"', 'a"b'), ("'\"'", '"'), ("'\\u00e9'", "é"), ("-1.5e2", -150)],
)
def test_query_literals_have_json_syntax(literal: str, value: Any) -> None:
    """Literals have JSON syntax; strings may be in single or double quotes."""
    assert _matches_condition(f"c.x = {literal}", {"x": value})


@given(st.text(alphabet="SELECT*FROM cWHERE()[]{}'\"=<>!.,@1aANDORNOTIN\\ ", max_size=60))
def test_any_query_text_is_parsed_or_rejected(text: str) -> None:
    """Any text is parsed as a query or rejected, and no other exception is raised."""
    with contextlib.suppress(CosmosError):
        parse_statement(f"SELECT * FROM c WHERE {text}", {})
