"""Tests of the bridge to the transport of the MCP SDK."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import mcp_types as types
import pytest

from shared.http.messages import Reply, Request
from shared.mcp_server.capabilities import (
    MAX_RESULT_BYTES,
    MAX_RESULT_CHARACTERS,
    Capabilities,
    Resource,
    Tool,
    ToolResult,
)
from shared.mcp_server.prompts import COMPARE
from shared.mcp_server.reply_contents import ReplyContents
from shared.mcp_server.transport import PAGE_SIZE, ProtocolSession, handle_mcp_request
from shared.runtime import SYSTEM_RUNTIME
from shared.text_formats.large_json import LongInteger

_BOTH = "application/json, text/event-stream"
_METADATA = "io.modelcontextprotocol"
_NO_CAPABILITIES = Capabilities("ann", {}, {}, ())
_URI = "workspace://warm-queries/rows"
_CONTENTS: tuple[dict[str, Any], ...] = (
    {},
    {"rows": [{"number": number, "none": None, "text": 'ü "x" \\'} for number in range(20_000)]},
    {"long": LongInteger(2**80)},
)
_VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")


async def send_request(
    method: str,
    parameters: Mapping[str, Any],
    *,
    version: str = "2026-07-28",
    accept: str = _BOTH,
    headers: Mapping[str, str] | None = None,
    capabilities: Capabilities = _NO_CAPABILITIES,
) -> Reply:
    """Send a request of the Model Context Protocol, and return the reply."""
    metadata = {f"{_METADATA}/protocolVersion": version, f"{_METADATA}/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": metadata, **parameters}}
    all_headers = {"accept": accept, "mcp-protocol-version": version, "mcp-method": method, **(headers or {})}
    return await send_body(body, all_headers, capabilities)


async def send_body(body: Any, headers: Mapping[str, str], capabilities: Capabilities = _NO_CAPABILITIES) -> Reply:
    """Send a request with this JSON value as its body, and return the reply."""
    all_headers = {"host": "127.0.0.1:7071", "content-type": "application/json", "accept": _BOTH, **headers}
    request = Request("POST", "/oi-api/mcp", "", all_headers, json.dumps(body).encode())
    replying = handle_mcp_request(request, capabilities, ["127.0.0.1:*"], runtime=SYSTEM_RUNTIME)
    return await asyncio.wait_for(replying, 30)


async def send_listen_request(accept: str = _BOTH, **parameters: Any) -> Reply:
    """Send the request ``subscriptions/listen`` of the revision 2026-07-28, and return the reply."""
    return await send_request("subscriptions/listen", parameters, accept=accept)


def build_capabilities(content: Mapping[str, Any], *, is_error: bool = False) -> Capabilities:
    """Return capabilities with a tool and a resource that have this content."""

    async def run(_: Mapping[str, Any]) -> ToolResult:
        return ToolResult(content, is_error)

    tool = Tool("read", "Read", "Read rows.", {"type": "object", "properties": {}}, {"type": "object"}, run)
    resource = Resource(_URI, "rows", "Rows", "All rows.", content)
    return Capabilities("ann", {"read": lambda: tool}, {_URI: lambda: resource}, ())


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [({"notifications": {}}, 404, -32601), ({}, 400, -32602)],
    ids=["valid", "invalid"],
)
async def test_a_request_for_subscriptions_gets_a_json_rpc_error(
    parameters: dict[str, Any], status: int, code: int
) -> None:
    """The server has no subscriptions; a valid request gets "method not found", and an invalid one its fault."""
    reply = await send_listen_request(**parameters)
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (status, code)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_an_error_of_the_transport_without_a_body_has_a_detail(accept: str) -> None:
    """If the header Accept lacks one of the two media types, the problem document says so."""
    reply = await send_listen_request(accept, notifications={})
    detail = "The header Accept must list `application/json` and `text/event-stream`."
    assert (reply.status, json.loads(reply.body).get("detail")) == (406, detail)


@pytest.mark.parametrize("headers", [{}, {"mcp-protocol-version": "2026-07-28"}], ids=["handshake", "stateless"])
@pytest.mark.parametrize(
    "body",
    [
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        {"jsonrpc": "2.0", "id": 1},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        "ping",
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
    ],
    ids=[
        *("batch", "no-method", "no-version", "number-as-method", "array-as-params", "string"),
        *("fraction-as-id", "null-as-id", "boolean-as-id", "object-as-id"),
    ],
)
async def test_a_body_that_is_no_json_rpc_message_is_an_invalid_request(body: Any, headers: Mapping[str, str]) -> None:
    """JSON that is no JSON-RPC message gets the error "Invalid Request" with the rule, in every protocol revision."""
    reply = await send_body(body, headers)
    document = json.loads(reply.body)
    assert (reply.status, document["id"], document["error"]["code"]) == (400, None, -32600)
    assert document["error"]["message"].startswith("The body must be one JSON-RPC 2.0 message: an object with ")


async def test_an_unknown_protocol_revision_is_rejected() -> None:
    """A request of an unknown revision gets an error that names the header and the supported revisions."""
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    reply = await send_body(ping, {"mcp-protocol-version": "1999-01-01"})
    assert reply.status == 400
    assert json.loads(reply.body) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32022,
            "message": "The header MCP-Protocol-Version names an unsupported revision; use 2026-07-28 or 2025-11-25.",
            "data": {"supported": ["2026-07-28", "2025-11-25"], "requested": "1999-01-01"},
        },
    }


async def test_a_header_may_have_characters_beyond_latin_1() -> None:
    """A request is processed if a header has characters beyond Latin-1, which the host on Azure decodes from UTF-8."""
    reply = await send_request("tools/list", {}, headers={"x-user": "\N{LATIN CAPITAL LETTER L WITH STROKE}ukasz"})
    assert reply.status == 200


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("content", _CONTENTS, ids=["empty", "large", "long-integer"])
async def test_a_tool_result_is_sent_as_text_and_as_an_object(content: dict[str, Any], version: str) -> None:
    """The reply to a tool call contains the result's exact values twice: as JSON text, and as structured content."""
    reply = await send_request(
        "tools/call",
        {"name": "read", "arguments": {}},
        version=version,
        headers={"mcp-name": "read"},
        capabilities=build_capabilities(content),
    )
    result = json.loads(reply.body)["result"]
    assert result["structuredContent"] == json.loads(result["content"][0]["text"]) == content
    assert not result.get("isError")


@pytest.mark.parametrize("version", _VERSIONS)
async def test_a_tool_call_builds_only_the_called_tool(version: str) -> None:
    """A tool call builds the called tool once and no other tool, in every protocol revision."""
    built: list[str] = []

    async def run(_: Mapping[str, Any]) -> ToolResult:
        return ToolResult({})

    def build(name: str) -> Tool:
        built.append(name)
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return Tool(name, "Read", "Read rows.", schema, {"type": "object"}, run)

    names = ("first", "second", "third")
    reply = await send_request(
        "tools/call",
        {"name": "third", "arguments": {"text": "x"}},
        version=version,
        headers={"mcp-name": "third"},
        capabilities=Capabilities("ann", {name: partial(build, name) for name in names}, {}, ()),
    )
    assert (reply.status, built) == (200, ["third"])


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("content", _CONTENTS, ids=["empty", "large", "long-integer"])
async def test_a_resource_is_sent_as_text(content: dict[str, Any], version: str) -> None:
    """The reply with a resource contains its exact values as JSON text."""
    reply = await send_request(
        "resources/read",
        {"uri": _URI},
        version=version,
        headers={"mcp-name": _URI},
        capabilities=build_capabilities(content),
    )
    [read] = json.loads(reply.body)["result"]["contents"]
    assert (read["uri"], json.loads(read["text"])) == (_URI, content)


@pytest.mark.parametrize("is_error", [False, True], ids=["result", "error"])
async def test_the_sdk_gets_no_large_content(*, is_error: bool) -> None:
    """The SDK, which works on the event loop, gets a short placeholder for a large result, error or resource."""
    capabilities = build_capabilities(_CONTENTS[1], is_error=is_error)
    server = ProtocolSession(capabilities, ReplyContents(runtime=SYSTEM_RUNTIME), runtime=SYSTEM_RUNTIME).build_server()
    calls = {
        "tools/call": types.CallToolRequestParams(name="read"),
        "resources/read": types.ReadResourceRequestParams(uri=_URI),
    }
    for method, parameters in calls.items():
        entry: Any = server.get_request_handler(method)
        result = await entry.handler(None, parameters)
        assert len(result.model_dump_json()) < 1_000


@pytest.mark.parametrize(
    ("text", "is_too_large"),
    [
        (b'{"n":1e2}', False),
        (b'"%b"' % (b"x" * (MAX_RESULT_CHARACTERS - 2)), False),
        (b'"%b"' % (b"x" * (MAX_RESULT_CHARACTERS - 1)), True),
        (b"\xff" * (MAX_RESULT_BYTES + 1), True),
    ],
    ids=["small", "largest", "too-large", "too-large-to-decode"],
)
async def test_json_text_of_a_result_is_sent_unchanged(text: bytes, *, is_too_large: bool) -> None:
    """A result that is already JSON text is sent unchanged, unless it is too large."""

    async def run(_: Mapping[str, Any]) -> ToolResult:
        return ToolResult(json_text=text)

    tool = Tool("read", "Read", "Read rows.", {"type": "object", "properties": {}}, {"type": "object"}, run)
    capabilities = Capabilities("ann", {"read": lambda: tool}, {}, ())
    call = {"name": "read", "arguments": {}}
    reply = await send_request("tools/call", call, headers={"mcp-name": "read"}, capabilities=capabilities)
    assert (b"RESULT_TOO_LARGE" in reply.body) is is_too_large
    assert (b'"structuredContent":' + text in reply.body) is not is_too_large


@pytest.mark.parametrize("is_error", [False, True], ids=["result", "error"])
async def test_a_too_large_result_is_replaced_by_an_error(*, is_error: bool) -> None:
    """A result, or an error, of more than 4 MiB is replaced by an error with advice for the next call."""
    content = {"text": "ü" * (MAX_RESULT_CHARACTERS - len('{"text":""}'))}
    call = {"name": "read", "arguments": {}}
    for text, is_too_large in ((content["text"], is_error), (content["text"] + "x", True)):
        capabilities = build_capabilities({"text": text}, is_error=is_error)
        reply = await send_request("tools/call", call, headers={"mcp-name": "read"}, capabilities=capabilities)
        result = json.loads(reply.body)["result"]
        problem = json.loads(result["content"][0]["text"])
        assert (result.get("isError", False), problem.get("code")) == (
            (True, "RESULT_TOO_LARGE") if is_too_large else (False, None)
        )
        assert ("nextCall" in problem) is is_too_large


async def test_a_value_of_a_prompt_is_inserted_unchanged() -> None:
    """The value of a prompt's argument is inserted as it is, also if it contains another argument's name in braces."""
    capabilities = Capabilities("ann", {}, {}, (COMPARE,))
    arguments = {"first": "a {second} {timeRange} {x}", "second": "b {first}"}
    get = {"name": COMPARE.name, "arguments": arguments}
    reply = await send_request("prompts/get", get, headers={"mcp-name": COMPARE.name}, capabilities=capabilities)
    text = json.loads(reply.body)["result"]["messages"][0]["content"]["text"]
    assert text.startswith("Compare the surfaces a {second} {timeRange} {x} and b {first} over the last P1D. ")


async def list_resources(uris: Iterable[str], cursor: str | None = None) -> dict[str, Any]:
    """Return one page of the resources with these URIs, and the cursor of the next page."""
    resources = {uri: partial(Resource, uri, uri, uri, "Rows.", {}) for uri in uris}
    capabilities = Capabilities("ann", {}, resources, ())
    reply = await send_request("resources/list", {"cursor": cursor}, capabilities=capabilities)
    result: dict[str, Any] = json.loads(reply.body)["result"]
    return result


async def test_pages_of_a_list_neither_repeat_nor_skip_items_after_changes() -> None:
    """If items are added or removed between pages, no unchanged item is repeated or skipped; pages can be empty."""
    uris = [f"workspace://warm-queries/{number:03}" for number in range(PAGE_SIZE + 2)]
    first = await list_resources(reversed(uris))
    assert [one["uri"] for one in first["resources"]] == uris[:PAGE_SIZE]
    kept = [uri for index, uri in enumerate(uris) if index not in (0, 1, PAGE_SIZE - 1)]
    added = ["workspace://surfaces/new", *uris]
    for changed, expected in ((kept, uris[PAGE_SIZE:]), (added, uris[PAGE_SIZE:]), (uris[:PAGE_SIZE], []), ([], [])):
        second = await list_resources(changed, first["nextCursor"])
        assert ([one["uri"] for one in second["resources"]], second.get("nextCursor")) == (expected, None)


async def test_the_cursor_of_another_list_is_rejected() -> None:
    """A cursor is accepted only by the list that returned it."""
    cursor = (await list_resources(map(str, range(PAGE_SIZE + 1))))["nextCursor"]
    reply = await send_request("tools/list", {"cursor": cursor})
    assert json.loads(reply.body)["error"]["code"] == -32602
