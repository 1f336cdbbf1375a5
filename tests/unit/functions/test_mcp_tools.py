"""Tests of the MCP tools that call routes."""

import json

import pytest

from functions import GROUPS, mcp_tools
from functions.mcp_tools import ROUTE_TOOLS, parse_tool_result
from shared.errors import WorkspaceError
from shared.mcp_server.capabilities import Tool, ToolResult, add_next_call_advice
from shared.openapi.error_codes import ERROR_CODES
from shared.openapi.operation_errors import OWN_CODES

OPERATIONS = {operation.name for group in GROUPS for operation in group.operations}
TEMPORARY = {"THROTTLED", "CHECKPOINT_NOT_FOUND"}


async def run_tool(_: object) -> ToolResult:
    """Return an empty result."""
    return ToolResult({})


def test_only_temporary_errors_advise_to_repeat_the_call() -> None:
    """Only an error that is temporary advises the caller to repeat the same call later."""
    tool = Tool("tool", "t", "d", {"properties": {}}, {}, run_tool)
    lists = {spec.name for spec in ROUTE_TOOLS}
    names = [*(spec.operation for spec in ROUTE_TOOLS), "execute_warm_query"]
    codes = {code for name in names for code in OWN_CODES.get(name, ()) if min(ERROR_CODES[code].statuses) < 500}
    assert {*names} <= OPERATIONS
    for code in codes - TEMPORARY:
        content = add_next_call_advice(ToolResult({"code": code}, is_error=True), tool, lists).content
        assert " again later" not in content["nextCall"], code


async def test_a_too_large_reply_is_rejected_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply with more characters than a tool's result can have is rejected although it is not parsed."""
    body = json.dumps({"rows": ["ü"]}, ensure_ascii=False).encode()
    monkeypatch.setattr(mcp_tools, "MAX_RESULT_CHARACTERS", len(body.decode()))
    assert await parse_tool_result(body) == {"rows": ["ü"]}
    with pytest.raises(WorkspaceError) as refusal:
        await parse_tool_result(b"{" + body)
    assert refusal.value.code == "RESULT_TOO_LARGE"
    # This is no UTF-8: a body that is certainly too large is not even decoded.
    monkeypatch.setattr(mcp_tools, "MAX_RESULT_BYTES", len(body))
    with pytest.raises(WorkspaceError) as refusal:
        await parse_tool_result(body + b"\xff")
    assert refusal.value.code == "RESULT_TOO_LARGE"
