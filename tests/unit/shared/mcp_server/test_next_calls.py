"""Tests of the next tool call that an error suggests."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.mcp_server.capabilities import Tool, ToolResult
from shared.mcp_server.next_calls import add_next_call

SCHEMA = {"type": "object", "properties": {"lookup": {}, "limit": {}}, "required": ["lookup"]}
ARGUMENTS = "Its arguments: lookup (required), limit."


async def run_tool(arguments: Mapping[str, Any]) -> ToolResult:
    """Return an empty result: this tool does nothing."""
    return ToolResult({})


TOOL = Tool("run_warm_query", "t", "d", SCHEMA, {}, run_tool)


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
def test_next_call(problem: dict[str, Any], expected: str) -> None:
    """An error suggests a tool of the caller that lists the valid values, or the same tool again."""
    result = add_next_call(ToolResult(problem, is_error=True), TOOL, {"run_warm_query", "list_warm_queries"})
    assert result == ToolResult({**problem, "nextCall": expected}, is_error=True)
