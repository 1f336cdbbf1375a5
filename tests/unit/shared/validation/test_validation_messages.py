"""Tests of the messages about invalid values."""

import pytest

from shared.validation.validation_messages import (
    JSON_POINTER_PATTERN,
    find_value_at_location,
    remove_union_tags,
    reword_pydantic_error,
)


@pytest.mark.parametrize(
    ("kind", "message", "rule"),
    [
        ("missing", "Field required", "is required"),
        ("model_type", "Input should be a valid dictionary or instance of X", "must be an object"),
        ("dict_type", "Input should be a valid dictionary", "must be an object"),
        (
            "model_attributes_type",
            "Input should be a valid dictionary or object to extract fields from",
            "must be an object",
        ),
        ("too_short", "List should have at least 1 item after validation, not 0", "must have at least 1 item"),
        ("too_long", "Tuple should have at most 5 items after validation, not 6", "must have at most 5 items"),
        ("list_type", "Input should be a valid list", "should be a valid array"),
        (
            "int_parsing",
            "Input should be a valid integer, unable to parse it",
            "must be a whole number",
        ),
        ("int_type", "Input should be a valid integer", "must be a whole number"),
        (
            "float_parsing",
            "Input should be a valid number, unable to parse it",
            "should be a valid number",
        ),
        (
            "string_pattern_mismatch",
            f"String should match pattern '{JSON_POINTER_PATTERN}'",
            "must be a JSON pointer such as /ts",
        ),
        (
            "string_pattern_mismatch",
            "String should match pattern '^[A-Za-z0-9][A-Za-z0-9_./-]{0,255}$'",
            "must have up to 256 letters, digits, _, ., / and -, and begin with a letter or a digit",
        ),
        (
            "string_pattern_mismatch",
            "String should match pattern '^[A-Za-z0-9][A-Za-z0-9_-]{1,254}$'",
            "must have 2 to 255 letters, digits, _ and -, and begin with a letter or a digit",
        ),
        (
            "string_pattern_mismatch",
            "String should match pattern '^[A-Za-z][A-Za-z0-9_]{0,63}$'",
            "must have up to 64 letters, digits and _, and begin with a letter",
        ),
        ("string_pattern_mismatch", "String should match pattern '^a+$'", "should match pattern '^a+$'"),
        ("value_error", "Value error, must be a date", "must be a date"),
        ("union_tag_not_found", "Unable to extract tag using discriminator 'kind'", "is required"),
        (
            "union_tag_invalid",
            "Input tag 'wave' found using 'kind' does not match any of the expected tags: 'sine', 'ramp'",
            "must be one of 'sine', 'ramp'",
        ),
        (
            "union_tag_invalid",
            "Input tag 'expected tags: a' found using 'kind' does not match any of the expected tags: 'sine', 'ramp'",
            "must be one of 'sine', 'ramp'",
        ),
        ("string_too_short", "String should have at least 1 character", "should have at least 1 character"),
    ],
)
def test_validation_messages_state_the_rule(kind: str, message: str, rule: str) -> None:
    """The message about an invalid value states the rule in the API's wording."""
    assert reword_pydantic_error(kind, message) == rule


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("workspace.catalog.reed", "is not an access right; did you mean Workspace.Catalog.Read?"),
        ("everything", "is not an access right"),
        (7, "is not an access right"),
    ],
)
def test_the_error_about_an_unknown_right_names_the_most_similar(value: object, rule: str) -> None:
    """The message about an unknown access right names the most similar right."""
    message = "Input should be 'Workspace.Catalog.Read' or 'Workspace.Team.Read'"
    assert reword_pydantic_error("enum", message, value) == rule


def test_the_length_of_a_text_counts_characters() -> None:
    """The message about a text that is too short or too long counts characters."""
    message = "Value should have at most 64 items after validation, not 65"
    assert reword_pydantic_error("too_long", message, "x" * 65) == "must have at most 64 characters"


@pytest.mark.parametrize(
    ("location", "body", "field"),
    [
        (("parts", 0, "sine", "min"), {"parts": [{"kind": "sine"}]}, ("parts", 0, "min")),
        (("parts", 1, "sine"), {"parts": [{"kind": "sine"}]}, ("parts", 1, "sine")),
        (("kind", "sine"), {"kind": "sine"}, ("kind", "sine")),
        (("a", 0), "text", ("a", 0)),
    ],
)
def test_locations_contain_no_tags_of_unions(
    location: tuple[int | str, ...], body: object, field: tuple[int | str, ...]
) -> None:
    """The location of an error contains only steps that the body has, without pydantic's tags of union types."""
    assert remove_union_tags(location, body) == field


@pytest.mark.parametrize(
    ("location", "value"),
    [((), {"a": [1, {"b": 2}]}), (("a", 1, "b"), 2), (("a", 2), None), (("c",), None), (("a", 0, "b"), None)],
)
def test_a_value_is_found_by_its_location(location: tuple[int | str, ...], value: object) -> None:
    """A location leads to a value of the body; a location without a value leads to None."""
    assert find_value_at_location({"a": [1, {"b": 2}]}, location) == value
