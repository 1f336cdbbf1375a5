"""Tests of the JSON schemas of enumerations."""

from enum import StrEnum

from shared.http.operation_docs import build_enum_schema, build_optional_enum_schema


class Colour(StrEnum):
    """Enumeration that the tests use as an example."""

    RED = "red"
    BLUE = "blue"


def test_the_schema_of_an_enumeration_lists_its_values() -> None:
    """The schema of an enumeration lists its values, and null if the property is optional."""
    [listed] = build_enum_schema(Colour)["allOf"]
    assert listed["enum"] == ["red", "blue"]
    assert build_optional_enum_schema(Colour)["anyOf"] == [listed, {"type": "null"}]
