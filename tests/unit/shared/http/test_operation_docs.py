"""Tests of the JSON schemas of enumerations."""

from enum import StrEnum

from shared.http.operation_docs import build_enum, build_optional_enum


class Colour(StrEnum):
    """Example of an enumeration."""

    RED = "red"
    BLUE = "blue"


def test_the_schema_lists_the_values() -> None:
    """A property that is text in its model shows its values, and null only if it is optional."""
    [listed] = build_enum(Colour)["allOf"]
    assert listed["enum"] == ["red", "blue"]
    assert build_optional_enum(Colour)["anyOf"] == [listed, {"type": "null"}]
