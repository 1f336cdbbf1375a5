"""Tests of the bridge to the transport of the MCP SDK."""

import asyncio
import json
from typing import Any

import pytest

from shared.http.messages import Reply, Request
from shared.mcp_server.capabilities import Capabilities
from shared.mcp_server.transport import handle_request
from shared.runtime import SYSTEM_RUNTIME

_BOTH = "application/json, text/event-stream"
_METADATA = "io.modelcontextprotocol"


async def send_listen_request(accept: str = _BOTH, **parameters: Any) -> Reply:
    """Send the request ``subscriptions/listen`` of the revision 2026-07-28, and return the reply."""
    version = "2026-07-28"
    metadata = {f"{_METADATA}/protocolVersion": version, f"{_METADATA}/clientCapabilities": {}}
    method = "subscriptions/listen"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": metadata, **parameters}}
    headers = {
        "host": "127.0.0.1:7071",
        "content-type": "application/json",
        "accept": accept,
        "mcp-protocol-version": version,
        "mcp-method": method,
    }
    request = Request("POST", "/oi-api/mcp", "", headers, json.dumps(body).encode())
    replying = handle_request(request, Capabilities("ann", {}, {}, ()), ["127.0.0.1:*"], runtime=SYSTEM_RUNTIME)
    return await asyncio.wait_for(replying, 30)


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
