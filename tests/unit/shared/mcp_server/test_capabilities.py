"""Tests of MCP tools and their results."""

from collections.abc import Mapping
from typing import Any

from shared.errors import Kind, WorkspaceError
from shared.mcp_server.capabilities import Tool, ToolResult, to_error_result


async def run_tool(arguments: Mapping[str, Any]) -> ToolResult:
    """Return the arguments of the tool call as the result."""
    return ToolResult(arguments)


def test_former_names_of_arguments_are_known() -> None:
    """Former names of arguments are accepted but not listed in the schema; other names are rejected."""
    schema = {"type": "object", "properties": {"limit": {}}}
    tool = Tool("t", "T", "Does t.", schema, {}, run_tool, hidden_arguments=("count",))
    assert tool.find_unknown_arguments(["limit", "count", "limt"]) == ["limt"]
    assert Tool("t", "T", "Does t.", {}, {}, run_tool).find_unknown_arguments(["limit"]) == ["limit"]


def test_an_error_is_a_result_that_the_model_can_read() -> None:
    """An error of a tool is a result with the API's problem document, which the language model can read."""
    result = to_error_result(WorkspaceError(Kind.NOT_FOUND, "QUERY_NOT_FOUND", "No query.", nearest="q1"))
    assert (result.is_error, result.content["code"], result.content["nearest"]) == (True, "QUERY_NOT_FOUND", "q1")
    assert (result.content["status"], result.content["detail"]) == (404, "No query.")
