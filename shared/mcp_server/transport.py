"""Bridge from one HTTP request to the SDK's Streamable HTTP transport: stateless, with JSON replies."""

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
    request: Request, capabilities: Capabilities, hosts: Sequence[str], origins: Sequence[str] = ()
) -> Reply:
    """Return the reply to one protocol request.

    Args:
        request: the POST request.
        capabilities: capabilities of the caller.
        hosts: accepted values of the Host header, ``name:*`` for any port; prevents DNS rebinding.
        origins: accepted origins of scripts, in addition to those of the hosts.
    """
    host_origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    manager = StreamableHTTPSessionManager(
        ProtocolSession(capabilities).build_server(),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=list(hosts), allowed_origins=[*host_origins, *origins]
        ),
    )
    collector, parse_error = _ReplyCollector(), await _find_parse_error(request.body)
    # The transport parses JSON leniently; an empty body makes it reply with its host_origins parse error.
    body = b"" if parse_error else request.body
    async with manager.run():
        await manager.handle_request(_build_scope(request), _build_receive(body), collector.send)
    build_reply = _to_problem_reply(collector.build_reply())
    return _add_parse_error(build_reply, parse_error) if parse_error else build_reply


async def _find_parse_error(body: bytes) -> str:
    try:
        await parse_body(body)
    except ValueError as error:
        return str(error)
    return ""


def _add_parse_error(build_reply: Reply, parse_error: str) -> Reply:
    """Return a reply; a JSON-RPC parse error (section 5.1) gets the reason of the strict parser."""
    document = json.loads(build_reply.body)
    if document.get("error", {}).get("code") == PARSE_ERROR:
        document["error"]["message"] = f"Parse error: {parse_error}"
        document["id"] = None
        build_reply.body = json_bytes(document)
    return build_reply


def _to_problem_reply(build_reply: Reply) -> Reply:
    """Return the transport's reply; convert a plain-text error to the problem document of other routes."""
    if build_reply.status < _FIRST_ERROR or build_reply.headers.get("Content-Type", "").startswith(JSON):
        return build_reply
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", build_reply.body.decode())
    return problem_reply(error, request_id.get(), HTTPStatus(build_reply.status))


class _ReplyCollector:
    """Collects the messages of an ASGI application."""

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

    def build_reply(self) -> Reply:
        headers = {name.title(): value for name, value in self._headers.items() if name.lower() != "content-length"}
        return Reply(self._status, bytes(self._body), headers)


def _build_scope(request: Request) -> dict[str, Any]:
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


def _build_receive(body: bytes) -> Any:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    return receive
