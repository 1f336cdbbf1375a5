"""HTTP operations of the Model Context Protocol (MCP) server."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from functions import GROUPS
from functions.http_blueprint import get_pipeline
from functions.lazy_groups import load_operations
from functions.public_address import build_misdirected_reply, get_public_url, has_known_host
from shared.auth.principals import Principal
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group, Operation, RawBody
from shared.http.problems import build_problem_reply
from shared.http.unknown_names import UnknownNames
from shared.interpreter import load_modules
from shared.observability.logs import request_id
from shared.wiring import services

if TYPE_CHECKING:
    from shared.mcp_server.capabilities import Capabilities, Tool

ROUTE = "oi-api/mcp"
METADATA = ".well-known/oauth-protected-resource/oi-api/mcp"
_MODULES = (
    "functions.mcp_catalog",
    "functions.mcp_queries",
    "functions.mcp_tools",
    "shared.openapi.document",
)


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
    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    scopes_supported: list[str]
    resource_documentation: str


_PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_PARSE_ERROR: Final = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
_UNKNOWN_METHOD: Final = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
_METADATA = {
    "resource": "https://plant-a.example/oi-api/mcp",
    "resource_name": "Industrial Data Workspace",
    "authorization_servers": ["https://plant-a.example"],
    "bearer_methods_supported": ["header"],
    "scopes_supported": ["Workspace.Mcp.Use"],
    "resource_documentation": "https://plant-a.example/oi-api/explorer",
}
_BODY_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"oneOf": [{"type": "string"}, {"type": "integer", "format": "int64", "minimum": -(2**53)}]},
        "method": {"type": "string"},
        "params": {"type": ["object", "null"]},
    },
}

MCP_DOCS = OperationDocs(
    (
        DocumentedReply(200, "The JSON-RPC response.", RpcReply, {"jsonrpc": "2.0", "id": 1, "result": {}}),
        DocumentedReply(202, "The notification is accepted."),
        DocumentedReply(
            400, "The request is not valid JSON-RPC or its parameters are invalid.", RpcReply, _PARSE_ERROR
        ),
        DocumentedReply(404, "The method is unknown.", RpcReply, _UNKNOWN_METHOD),
    ),
    error_statuses=(400, 403, 406, 413, 415, 421),
    example=_PING,
    body_schema=_BODY_SCHEMA,
)
METADATA_DOCS = OperationDocs(
    (DocumentedReply(200, "The protected resource metadata.", ResourceMetadata, _METADATA),), error_statuses=(421,)
)


def build_mcp_problem(error: WorkspaceError, trace_id: str, request: Request) -> Reply:
    """Build the problem document for an error; a 401 reply links to the protected resource metadata (RFC 9728)."""
    reply = build_problem_reply(error, trace_id)
    if error.kind is Kind.UNAUTHENTICATED:
        if not has_known_host(request):
            return build_misdirected_reply(trace_id)
        reply.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{get_public_url(request)}/{METADATA}"'
    return reply


GROUP = Group("mcp", build_mcp_problem)


@GROUP.endpoint("POST", ROUTE, right=AccessRight.MCP_USE, body=RawBody, unknown=UnknownNames.IGNORE, docs=MCP_DOCS)
async def mcp(call: Call[Any, RawBody]) -> Reply:
    """Process a JSON-RPC request of the Model Context Protocol (MCP)."""
    # Importing the SDK takes half a second, so it is imported in a worker thread at the first request.
    await load_modules(services().runtime, "shared.mcp_server.transport", *_MODULES)
    from shared.mcp_server.transport import handle_mcp_request  # noqa: PLC0415

    configured = services().settings
    return await handle_mcp_request(
        call.request,
        await build_capabilities(call.principal, await services().catalog.get_current_catalog()),
        configured.list_accepted_hosts(),
        configured.list_cors_origins(),
        runtime=services().runtime,
    )


@GROUP.endpoint("GET", METADATA, access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=METADATA_DOCS)
async def mcp_metadata(call: Call) -> Reply:
    """Return the OAuth 2.0 protected resource metadata of the MCP server (RFC 9728)."""
    if not has_known_host(call.request):
        return build_misdirected_reply(request_id.get())
    base = get_public_url(call.request)
    document: dict[str, Any] = {
        "resource": f"{base}/{ROUTE}",
        "resource_name": "Industrial Data Workspace",
        "authorization_servers": [base],
        "bearer_methods_supported": ["header"],
        "scopes_supported": sorted(ROLE_RIGHTS[Role.VIEWER]),
        "resource_documentation": f"{base}/oi-api/explorer",
    }
    return build_json_reply(document)


async def build_capabilities(principal: Principal, catalog: Catalog) -> "Capabilities":
    """Return the tools, resources and prompts that a caller may use.

    Args:
        principal: the caller.
        catalog: catalog of the workspace.
    """
    from functions.mcp_catalog import (  # noqa: PLC0415  imported by _MODULES above
        build_catalog_resources,
        build_catalog_tools,
        build_pending_decision_tools,
    )
    from functions.mcp_queries import build_newest_messages_tools, build_query_tools  # noqa: PLC0415
    from functions.mcp_tools import build_route_tools  # noqa: PLC0415
    from shared.mcp_server.capabilities import Capabilities  # noqa: PLC0415
    from shared.mcp_server.prompts import PROMPTS  # noqa: PLC0415

    async def send_request(request: Request) -> Reply:
        traced = Request(
            request.method,
            request.path,
            request.query,
            {**request.headers, "x-request-id": request_id.get()},
            request.body,
        )
        return await get_pipeline().serve(traced, principal)

    operations = await _map_permitted_operations_by_name(principal)
    plain = [
        *build_catalog_tools(principal, catalog),
        *build_route_tools(operations, send_request),
        *build_pending_decision_tools(principal, catalog, has_amendments="list_pending_amendments" in operations),
        *build_newest_messages_tools(principal, catalog),
    ]
    tools: dict[str, Callable[[], Tool]] = {tool.name: partial(_return_same_tool, tool) for tool in plain}
    if "execute_warm_query" in operations:
        tools |= build_query_tools(operations["execute_warm_query"], catalog)
    return Capabilities(principal.member_id, tools, build_catalog_resources(principal, catalog), PROMPTS)


def _return_same_tool(tool: "Tool") -> "Tool":
    return tool


async def _map_permitted_operations_by_name(principal: Principal) -> Mapping[str, Operation]:
    from shared.openapi.document import is_usable_by_caller  # noqa: PLC0415

    operations = await load_operations(GROUPS)
    features = {
        name for name in {one.feature for one in operations} if name and await services().features.has_feature(name)
    }
    return {one.name: one for one in operations if is_usable_by_caller(one, principal, features)}
