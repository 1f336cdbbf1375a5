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
async def test_subscriptions_are_refused_as_an_unknown_method(
    parameters: dict[str, Any], status: int, code: int
) -> None:
    """The server has no subscriptions; the request for them gets an error of JSON-RPC."""
    reply = await send_listen_request(**parameters)
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (status, code)


async def test_a_refusal_without_text_states_its_reason() -> None:
    """A refusal for which the transport gives no text has a detail."""
    reply = await send_listen_request("application/json", notifications={})
    assert (reply.status, json.loads(reply.body)["detail"]) == (
        406,
        "This method replies with events; accept `text/event-stream`, too.",
    )
