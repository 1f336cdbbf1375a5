"""Tests of schemas of types: enumerations as named schemas, and request bodies that allow no other properties."""

from enum import StrEnum
from typing import Annotated, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, WithJsonSchema

from shared.http.operation_docs import build_enum_schema, build_optional_enum_schema
from shared.openapi.schemas import SchemaRegistry, list_query_parameters


class Colour(StrEnum):
    """Colour of a lamp."""

    RED = "red"
    GREEN = "green"


class Lamp(TypedDict):
    """Lamp with fields that use enumerations in every form."""

    state: Literal["on", "off"]
    colour: Colour
    last: Literal["on", "off"] | None


class LampQuery(BaseModel):
    """Query parameters of type ``Colour``: with a default, optional, and declared by a JSON schema."""

    colour: Colour = Field(Colour.RED, description="The colour.")
    second: Colour | None = Field(None, description="Another colour.")
    checked_later: Annotated[str | None, WithJsonSchema(build_optional_enum_schema(Colour))] = None
    required: Annotated[str, WithJsonSchema(build_enum_schema(Colour))]


def test_each_enumeration_of_a_type_is_a_named_schema() -> None:
    """An inline enumeration is named after its type and field; a declared one has its own name."""
    schemas = SchemaRegistry()
    assert schemas.register_type(Lamp, "serialization") == {"$ref": "#/components/schemas/Lamp"}
    members = schemas.named["Lamp"]["properties"]
    assert members["state"]["$ref"] == "#/components/schemas/LampState"
    assert members["colour"] == {"$ref": "#/components/schemas/Colour"}
    assert members["last"]["anyOf"][0] == {"$ref": "#/components/schemas/LampLast"}
    assert schemas.named["LampState"] == {"title": "LampState", "type": "string", "enum": ["on", "off"]}
    assert schemas.named["Colour"]["enum"] == ["red", "green"]


def test_parameters_refer_to_the_same_enumeration() -> None:
    """Parameters with the same enumeration refer to one schema and have their own defaults."""
    schemas = SchemaRegistry()
    parameters = {one["name"]: one for one in schemas.register_query_parameters(LampQuery)}
    named = {
        name: schemas.replace_enums_by_references(one["schema"], "Light", name) for name, one in parameters.items()
    }
    reference = {"$ref": "#/components/schemas/Colour"}
    assert named["colour"] == {**reference, "default": "red"}
    assert named["second"] == named["checked_later"] == named["required"] == reference
    assert list(schemas.named) == ["Colour"]
    assert [name for name, one in parameters.items() if one["required"]] == ["required"]


class ChoiceQuery(BaseModel):
    """Query parameter that accepts values of two types."""

    choice: int | Colour | None = Field(None, description="Number or colour.")


def test_a_parameter_of_two_types_keeps_both() -> None:
    """A parameter that accepts values of two types has the schemas of both."""
    [parameter] = SchemaRegistry().register_query_parameters(ChoiceQuery)
    number = {"type": "integer", "format": "int64"}
    assert parameter["schema"] == {"anyOf": [number, {"$ref": "#/components/schemas/Colour"}]}
    [argument] = list_query_parameters(ChoiceQuery)
    assert argument["schema"]["anyOf"][0] == number
    assert argument["schema"]["anyOf"][1]["enum"] == ["red", "green"]


def test_mcp_tools_get_inline_enumerations() -> None:
    """Schemas of MCP tools contain no references to named schemas, because each must be complete in itself."""
    assert "$ref" not in str(list_query_parameters(LampQuery))
    [colour, *_] = list_query_parameters(LampQuery)
    assert colour["schema"]["enum"] == ["red", "green"]


def test_two_schema_types_cannot_have_one_name() -> None:
    """If two different types have the same name, an error is raised, because one would be documented wrongly."""
    schemas = SchemaRegistry()
    schemas.replace_enums_by_references({"type": "string", "enum": ["a"]}, "Lamp", "state")
    with pytest.raises(ValueError, match="LampState"):
        schemas.replace_enums_by_references({"type": "string", "enum": ["b"]}, "Lamp", "state")
