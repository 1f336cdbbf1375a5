"""Replies of the Model Context Protocol server."""

from typing import Any, Final, NotRequired, TypedDict

from shared.http.operation_docs import DocumentedReply, OperationDocs


class RpcReply(TypedDict):
    """A JSON-RPC 2.0 response."""

    jsonrpc: str
    id: str | int | None
    result: NotRequired[dict[str, Any]]
    error: NotRequired[dict[str, Any]]


class ResourceMetadata(TypedDict):
    """OAuth 2.0 protected resource metadata (RFC 9728)."""

    resource: str
    resource_name: str
    bearer_methods_supported: list[str]
    scopes_supported: list[str]
    resource_documentation: str
    authorization_servers: NotRequired[list[str]]


_PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_REFUSED: Final = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
_NO_METHOD: Final = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
_METADATA = {
    "resource": "https://plant-a.example/oi-api/mcp",
    "resource_name": "Industrial Data Workspace",
    "bearer_methods_supported": ["header"],
    "scopes_supported": ["Workspace.Mcp.Use"],
    "resource_documentation": "https://plant-a.example/oi-api/explorer",
}
_TAKES: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"oneOf": [{"type": "string"}, {"type": "integer", "format": "int64", "minimum": -(2**53)}]},
        "method": {"type": "string"},
        "params": {"type": ["object", "null"]},
    },
}

EXCHANGED = OperationDocs(
    (
        DocumentedReply(200, "The response of the protocol.", RpcReply, {"jsonrpc": "2.0", "id": 1, "result": {}}),
        DocumentedReply(202, "A notification was taken."),
        DocumentedReply(400, "No request of the protocol, or one that it cannot answer.", RpcReply, _REFUSED),
        DocumentedReply(404, "The protocol has no such method.", RpcReply, _NO_METHOD),
    ),
    refusals=(400, 403, 406, 413, 415, 421),
    example=_PING,
    body_schema=_TAKES,
)
METADATA = OperationDocs(
    (DocumentedReply(200, "How the server is protected.", ResourceMetadata, _METADATA),), refusals=(421,)
)
