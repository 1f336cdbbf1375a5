"""Tests of MCP tools, their results and errors, and the compact forms of their schemas."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.mcp_server.capabilities import (
    Tool,
    ToolResult,
    add_next_call_advice,
    compact_input_schema,
    compact_output_schema,
    to_error_result,
)


async def run_tool(arguments: Mapping[str, Any]) -> ToolResult:
    """Return a tool result that contains the arguments of the call."""
    return ToolResult(arguments)


def test_former_names_of_tool_arguments_are_accepted() -> None:
    """Former names of arguments are accepted but not in the schema; other names are rejected."""
    schema = {"type": "object", "properties": {"limit": {}}}
    tool = Tool("t", "T", "Does t.", schema, {}, run_tool, hidden_arguments=("count",))
    assert tool.find_unknown_arguments(["limit", "count", "limt"]) == ["limt"]
    assert Tool("t", "T", "Does t.", {}, {}, run_tool).find_unknown_arguments(["limit"]) == ["limit"]


def test_an_error_is_a_result_that_the_model_can_read() -> None:
    """An error of a tool is a result with the API's problem document, so that the AI model can read it."""
    result = to_error_result(WorkspaceError(Kind.NOT_FOUND, "QUERY_NOT_FOUND", "No query.", nearest="q1"))
    assert (result.is_error, result.content["code"], result.content["nearest"]) == (True, "QUERY_NOT_FOUND", "q1")
    assert (result.content["status"], result.content["detail"]) == (404, "No query.")


def test_arguments_keep_their_rules_and_descriptions() -> None:
    """In schemas of arguments, titles, patterns and lengths are left out, but not arguments with one of these names."""
    schema = {
        "type": "object",
        "description": "Model.",
        "properties": {
            "title": {"type": "string", "title": "Title", "pattern": "^a$", "description": "d", "default": "title"},
            "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "title": "When"},
            "n": {"type": "integer", "minimum": 1, "examples": [1]},
        },
        "required": [],
        "additionalProperties": False,
    }
    assert compact_input_schema(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "d", "default": "title"},
            "when": {"type": ["string", "null"]},
            "n": {"type": "integer", "minimum": 1},
        },
        "additionalProperties": False,
    }


def test_results_keep_the_types_of_their_members() -> None:
    """In schemas of results, a reference to a named type becomes its JSON type, unless the type has rules."""
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}]},
            "any": {"$ref": "#/$defs/Any"},
            "records": {"type": "array", "items": {"$ref": "#/$defs/Record"}},
            "mixed": {"$ref": "#/$defs/Mixed"},
            "same": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "object"}]},
            "one": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "format": "int64"}]},
        },
        "required": ["rows"],
        "$defs": {
            "Row": {"type": "object", "properties": {}},
            "Mode": {"type": "string", "enum": ["x"]},
            "Any": {},
            "Record": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "object"}]},
            "Mixed": {"anyOf": [{"$ref": "#/$defs/Row"}, {"$ref": "#/$defs/Mode"}]},
        },
    }
    assert compact_output_schema(schema) == {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}},
            "mode": {"type": ["string", "null"]},
            "any": {},
            "records": {"type": "array", "items": {"type": "object"}},
            "mixed": {},
            "same": {"type": "object"},
            "one": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer"}]},
        },
    }


SCHEMA = {"type": "object", "properties": {"lookup": {}, "limit": {}}, "required": ["lookup"]}
ARGUMENTS = "Its arguments: lookup (required), limit."


async def return_empty_result(arguments: Mapping[str, Any]) -> ToolResult:
    """Return an empty result: this tool does nothing."""
    return ToolResult({})


TOOL = Tool("run_warm_query", "t", "d", SCHEMA, {}, return_empty_result)


@pytest.mark.parametrize(
    ("code", "correction"),
    [
        ("QUERY_NOT_APPROVED", "after another person has approved the query"),
        ("CHECKPOINT_REFUSED", "after an operator has corrected the cause that `detail` names"),
    ],
)
def test_an_error_that_no_argument_corrects_names_what_must_happen_first(code: str, correction: str) -> None:
    """If another person must correct the cause of an error, and no tool lists valid values, the advice says so."""
    result = add_next_call_advice(ToolResult({"code": code}, is_error=True), TOOL, {"run_warm_query"})
    assert result.content["nextCall"] == f"Call run_warm_query again {correction}. {ARGUMENTS}"


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ({"code": "WARM_QUERY_NOT_FOUND"}, "Call list_warm_queries for the lookups of the queries."),
        (
            {"code": "WARM_QUERY_NOT_FOUND", "nearest": ["a", "b"]},
            "Call run_warm_query again with `a` or `b`, or call list_warm_queries for the lookups of the queries.",
        ),
        ({"code": "SURFACE_NOT_FOUND"}, f"Call run_warm_query again with corrected arguments. {ARGUMENTS}"),
        ({"code": "INVALID_REQUEST"}, f"Call run_warm_query again with corrected arguments. {ARGUMENTS}"),
        ({"code": "QUERY_TIMEOUT"}, f"Call run_warm_query again with a shorter timeRange. {ARGUMENTS}"),
        (
            {"code": "THROTTLED"},
            "Call run_warm_query again later; if the error has the member `retryAfter`, after this many seconds. "
            + ARGUMENTS,
        ),
    ],
)
def test_a_tool_error_proposes_the_next_call(problem: dict[str, Any], expected: str) -> None:
    """An error proposes one of the caller's tools that lists the valid values, or the same tool again."""
    result = add_next_call_advice(ToolResult(problem, is_error=True), TOOL, {"run_warm_query", "list_warm_queries"})
    assert result == ToolResult({**problem, "nextCall": expected}, is_error=True)
