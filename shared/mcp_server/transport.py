"""Carries one HTTP exchange into the SDK's Streamable HTTP transport and back: stateless, with JSON replies."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import PARSE_ERROR

from shared.errors import Kind, WorkspaceError
from shared.http.messages import JSON, Reply, Request, json_bytes
from shared.http.problems import problem_reply
from shared.mcp_server.capabilities import Capabilities
from shared.mcp_server.session import ProtocolSession
from shared.observability.logs import request_id
from shared.text_formats.strict_json import parse_body

_FIRST_ERROR: Final = 400


async def handle_request(
    request: Request, offers: Capabilities, hosts: Sequence[str], origins: Sequence[str] = ()
) -> Reply:
    """Return the reply to one request of the protocol.

    Args:
        request: the POST.
        offers: what its caller may have.
        hosts: values of the Host header that are taken, ``name:*`` for any port; others might be a rebound name.
        origins: whose scripts may call, beside those of the hosts.
    """
    own = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    manager = StreamableHTTPSessionManager(
        ProtocolSession(offers).server(),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=[*own, *origins]),
    )
    answered, fault = _Answer(), await _fault(request.body)
    # What only a lenient reader would take for JSON is none to the transport either, which tells so in its own form.
    body = b"" if fault else request.body
    async with manager.run():
        await manager.handle_request(_scope(request), _receiver(body), answered.send)
    reply = _told(answered.reply())
    return _with_reason(reply, fault) if fault else reply


async def _fault(body: bytes) -> str:
    try:
        await parse_body(body)
    except ValueError as error:
        return str(error)
    return ""


def _with_reason(reply: Reply, fault: str) -> Reply:
    """Return a refusal; where it is that of an unreadable body (JSON-RPC 2.0 section 5.1), with what is wrong there."""
    document = json.loads(reply.body)
    if document.get("error", {}).get("code") == PARSE_ERROR:
        document["error"]["message"] = f"Parse error: {fault}"
        document["id"] = None
        reply.body = json_bytes(document)
    return reply


def _told(reply: Reply) -> Reply:
    """Return the transport's reply, a refusal in plain words as the problem document that every route gives."""
    if reply.status < _FIRST_ERROR or reply.headers.get("Content-Type", "").startswith(JSON):
        return reply
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", reply.body.decode())
    return problem_reply(error, request_id.get(), HTTPStatus(reply.status))


class _Answer:
    """Collects what an ASGI application sends."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
        else:
            self._body += message.get("body", b"")

    def reply(self) -> Reply:
        kept = {name.title(): value for name, value in self._headers.items() if name.lower() != "content-length"}
        return Reply(self._status, bytes(self._body), kept)


def _scope(request: Request) -> dict[str, Any]:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode("latin-1"),
        "query_string": request.query.encode("latin-1"),
        "headers": headers,
        "client": None,
        "server": None,
    }


def _receiver(body: bytes) -> Any:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    return receive
