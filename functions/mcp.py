"""HTTP operations of the Model Context Protocol (MCP) server, with its check of the Host header."""

import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from functions import GROUPS
from functions.http_blueprint import get_pipeline
from functions.lazy_groups import load_operations
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, json_reply
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group, Operation, RawBody
from shared.http.problems import problem_reply
from shared.http.unknown_names import UnknownNames
from shared.observability.logs import request_id
from shared.wiring import services
from shared.worker_threads import load_modules

if TYPE_CHECKING:
    from shared.mcp_server.capabilities import Capabilities

ROUTE = "oi-api/mcp"
METADATA = ".well-known/oauth-protected-resource/oi-api/mcp"
_MODULES = (
    "functions.mcp_catalog",
    "functions.mcp_queries",
    "functions.mcp_tools",
    "shared.openapi.document",
)
ANY_PORT: Final = ":*"
_PORT = re.compile(r"(.*):[0-9]{1,5}", re.DOTALL | re.ASCII)


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
_PARSE_ERROR: Final = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
_UNKNOWN_METHOD: Final = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
_METADATA = {
    "resource": "https://plant-a.example/oi-api/mcp",
    "resource_name": "Industrial Data Workspace",
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
    """Return the problem document of an error; a 401 links to the protected resource metadata (RFC 9728)."""
    reply = problem_reply(error, trace_id)
    if error.kind is Kind.UNAUTHENTICATED:
        if not _is_known_host(request):
            return build_misdirected_reply(trace_id)
        reply.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{_get_public_url(request)}/{METADATA}"'
    return reply


GROUP = Group("mcp", build_mcp_problem)


@GROUP.endpoint("POST", ROUTE, right=AccessRight.MCP_USE, body=RawBody, unknown=UnknownNames.IGNORE, docs=MCP_DOCS)
async def mcp(call: Call[Any, RawBody]) -> Reply:
    """Process a JSON-RPC request of the Model Context Protocol (MCP)."""
    # Importing the SDK takes half a second, so it is imported in a worker thread at the first request.
    await load_modules("shared.mcp_server.transport", *_MODULES)
    from shared.mcp_server.transport import handle_request  # noqa: PLC0415

    configured = services().settings
    return await handle_request(
        call.request, await _build_capabilities(call.principal), configured.hosts(), configured.origins()
    )


@GROUP.endpoint("GET", METADATA, access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=METADATA_DOCS)
async def mcp_metadata(call: Call) -> Reply:
    """Return the OAuth 2.0 protected resource metadata of the MCP server (RFC 9728)."""
    if not _is_known_host(call.request):
        return build_misdirected_reply(request_id.get())
    configured, base = services().settings, _get_public_url(call.request)
    authority = f"{configured.entra_authority.rstrip('/')}/{configured.entra_tenant_id}/v2.0"
    document: dict[str, Any] = {
        "resource": f"{base}/{ROUTE}",
        "resource_name": "Industrial Data Workspace",
        "bearer_methods_supported": ["header"],
        "scopes_supported": [str(right) for right in AccessRight],
        "resource_documentation": f"{base}/oi-api/explorer",
    }
    if configured.entra_tenant_id:
        document["authorization_servers"] = [authority]
    return json_reply(document)


async def _build_capabilities(principal: Principal) -> "Capabilities":
    from functions.mcp_catalog import build_catalog_resources, build_catalog_tools  # noqa: PLC0415  imported by _MODULES above
    from functions.mcp_queries import build_query_tools, build_tail_tools  # noqa: PLC0415
    from functions.mcp_tools import build_route_tools  # noqa: PLC0415
    from shared.mcp_server.capabilities import Capabilities  # noqa: PLC0415
    from shared.mcp_server.prompts import PROMPTS  # noqa: PLC0415

    async def send(request: Request) -> Reply:
        traced = Request(
            request.method,
            request.path,
            request.query,
            {**request.headers, "x-request-id": request_id.get()},
            request.body,
        )
        return await get_pipeline().serve(traced, principal)

    operations, catalog = await _find_permitted_operations(principal), await services().catalog.current()
    tools = [
        *build_catalog_tools(principal, catalog),
        *build_route_tools(operations, send),
        *build_tail_tools(principal, catalog),
    ]
    if "execute_warm_query" in operations:
        tools += build_query_tools(operations["execute_warm_query"], catalog)
    return Capabilities(principal.member_id, tools, build_catalog_resources(principal, catalog), PROMPTS)


async def _find_permitted_operations(principal: Principal) -> Mapping[str, Operation]:
    from shared.openapi.document import is_usable  # noqa: PLC0415

    operations = await load_operations(GROUPS)
    features = {name for name in {one.feature for one in operations} if name and await services().features.has(name)}
    return {one.name: one for one in operations if is_usable(one, principal, features)}


def _is_known_host(request: Request) -> bool:
    return is_allowed_host(request.headers.get("host", ""), services().settings.hosts())


def _get_public_url(request: Request) -> str:
    """Return scheme and authority of links in replies, without a trailing slash.

    The setting ``PUBLIC_URL`` has priority, because a gateway may replace the Host header of the request.
    """
    if services().settings.public_url:
        return services().settings.public_url
    scheme = request.headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    return f"{scheme if scheme in {'http', 'https'} else 'https'}://{request.headers.get('host', '')}"


def is_allowed_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header names an allowed host.

    Args:
        host: value of the header; empty if it is missing.
        hosts: exact values ``name`` or ``name:port``, or ``name:*`` for any port.
    """
    if host in hosts:
        return not host.endswith(ANY_PORT)
    found = _PORT.fullmatch(host)
    return found is not None and found[1] + ANY_PORT in hosts


def build_misdirected_reply(trace_id: str) -> Reply:
    """Build the 421 reply to an unknown Host header (RFC 9110 section 15.5.20).

    The reply does not repeat the header, because its value is not trusted.

    Args:
        trace_id: id of the request.
    """
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", "Unknown Host header; use the address of this service.")
    return problem_reply(error, trace_id, HTTPStatus.MISDIRECTED_REQUEST)
