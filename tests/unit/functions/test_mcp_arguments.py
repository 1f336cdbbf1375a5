"""Tests of the descriptions of MCP tool arguments."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from functions.mcp_arguments import DESCRIPTIONS, add_argument_descriptions, build_argument_schema
from shared.catalog.models import ParameterType, QueryParameter
from shared.catalog.parameters import to_kql_literal


def test_each_tool_argument_gets_its_description() -> None:
    """An argument gets the tool's own description, or else the general one; the original schema is not changed."""
    schema = {"type": "object", "properties": {"limit": {"type": "integer"}, "lookup": {"type": "string"}}}
    described = add_argument_descriptions(schema, limit="Maximum number of rows.")
    assert described["properties"] == {
        "limit": {"type": "integer", "description": "Maximum number of rows."},
        "lookup": {"type": "string", "description": DESCRIPTIONS["lookup"]},
    }
    assert schema["properties"] == {"limit": {"type": "integer"}, "lookup": {"type": "string"}}


def test_a_tool_argument_without_a_description_raises_an_error() -> None:
    """A tool with an argument without a description raises an error, because an assistant could not use it."""
    with pytest.raises(KeyError):
        add_argument_descriptions({"properties": {"speed": {}}})


@pytest.mark.parametrize("kind", ParameterType)
def test_each_type_of_parameter_has_an_example(kind: ParameterType) -> None:
    """The description of each type of query parameter has the Kusto type and an example."""
    parameter = QueryParameter.model_validate({"name": "p", "type": kind.value})
    description = build_argument_schema(parameter)["description"]
    assert f"(Kusto {kind})" in description
    assert ", for example " in description


@pytest.mark.parametrize(
    ("default", "published"),
    [
        ({"a": [1]}, {"a": [1]}),
        (["rig-1"], ["rig-1"]),
        (4, 4),
        (False, False),
        ("[1]", [1]),
        ('"rig-1"', '"rig-1"'),
        ("null", None),
        ("no JSON", None),
    ],
)
def test_a_dynamic_argument_accepts_any_json_value(default: Any, published: Any) -> None:
    """A dynamic argument accepts each JSON type, and its default is a valid argument with the declared value."""
    schema = build_argument_schema(QueryParameter(name="p", type=ParameterType.DYNAMIC, default=default))
    assert schema.get("default") == published
    assert set(schema["type"]) == {"object", "array", "string", "number", "boolean"}
    if published is not None:
        assert Draft202012Validator(schema).is_valid(published)
        declared = to_kql_literal(ParameterType.DYNAMIC, default)
        assert to_kql_literal(ParameterType.DYNAMIC, published) == declared
