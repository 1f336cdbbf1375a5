"""Tests of the MCP tools that call routes."""

import pytest

from functions import GROUPS, mcp_tools
from functions.mcp_tools import ROUTE_TOOLS, RouteTool, build_route_tools
from shared.errors import WorkspaceError
from shared.http.messages import Reply, Request
from shared.mcp_server.capabilities import Tool, ToolResult, add_next_call_advice
from shared.openapi.error_codes import ERROR_CODES
from shared.openapi.operation_errors import OWN_CODES
from shared.text_formats.serialisation import serialise_json

OPERATIONS = {operation.name for group in GROUPS for operation in group.operations}
TEMPORARY = {"THROTTLED", "CHECKPOINT_NOT_FOUND"}


async def refuse_request(_: Request) -> Reply:
    """Raise an error, because the test sends no request."""
    raise AssertionError("unexpected request")


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


@pytest.mark.parametrize("spec", ROUTE_TOOLS, ids=lambda spec: spec.name)
def test_required_arguments_have_no_default(spec: RouteTool) -> None:
    """The description of a required argument states no default."""
    [operation] = [one for group in GROUPS for one in group.operations if one.name == spec.operation]
    [tool] = build_route_tools({operation.name: operation}, refuse_request)
    properties = tool.input_schema["properties"]
    assert [name for name in tool.input_schema["required"] if "efault" in properties[name]["description"]] == []


async def call_list_amendments(body: bytes) -> ToolResult:
    """Call the tool ``list_amendments``, whose operation replies with this body; return the result."""

    async def send(_: Request) -> Reply:
        return Reply(200, body, {"X-Provenance-Has-More": "true"})

    [operation] = [one for group in GROUPS for one in group.operations if one.name == "query_scope_amendments"]
    [tool] = build_route_tools({operation.name: operation}, send)
    return await tool.run({"scopeKey": "line"})


async def test_an_array_becomes_the_property_records() -> None:
    """A reply that is an array becomes the property `records` of the result, with its exact text."""
    result = await call_list_amendments(b'[{"n":1e2}]')
    assert serialise_json(result.content) == b'{"records":[{"n":1e2}],"hasMore":true,"ignored":[]}'


async def test_an_object_is_the_result() -> None:
    """A reply that is an object is the result, with its exact text."""
    assert (await call_list_amendments(b'{"n":1e2}')).json_text == b'{"n":1e2}'


async def test_a_too_large_array_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply with an array of more bytes than a tool's result can have is rejected."""
    monkeypatch.setattr(mcp_tools, "MAX_RESULT_BYTES", 4)
    assert not (await call_list_amendments(b"[12]")).is_error
    with pytest.raises(WorkspaceError) as refusal:
        await call_list_amendments(b"[123]")
    assert refusal.value.code == "RESULT_TOO_LARGE"
