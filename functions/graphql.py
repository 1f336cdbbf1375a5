"""GraphQL endpoint: HTTP operations and GraphQL over HTTP (June 2025 working draft)."""

from typing import Any

from functions.graphql_transport import build_graphql_problem, build_graphql_reply, read_parameters
from functions.replies import graphql as replies
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group, RawBody
from shared.http.unknown_names import UnknownNames
from shared.wiring import services
from shared.worker_threads import load_modules

GROUP = Group("graphql", build_graphql_problem)
ROUTE = "v1/{workspaceId}/graphql"


@GROUP.endpoint(
    "POST", ROUTE, access=Access.KEY_OR_TOKEN, body=RawBody, unknown=UnknownNames.IGNORE, docs=replies.POSTED
)
async def graphql(call: Call[Any, RawBody]) -> Reply:
    """Execute a GraphQL query or mutation."""
    return await _run(call)


@GROUP.endpoint("GET", ROUTE, access=Access.KEY_OR_TOKEN, unknown=UnknownNames.IGNORE, docs=replies.ASKED)
async def graphql_query(call: Call) -> Reply:
    """Execute a GraphQL query; mutations require POST."""
    return await _run(call)


async def _run(call: Call[Any, Any]) -> Reply:
    workspace = (await services().catalog.current()).workspace
    if workspace is None or call.path["workspaceId"] != workspace.id:
        raise WorkspaceError(
            Kind.FORBIDDEN, "OTHER_WORKSPACE", "The credential does not belong to the workspace in the URL."
        )
    parameters = await read_parameters(call.request)
    await load_modules("shared.graphql_api.service")
    outcome = await services().graphql.run(
        call.principal,
        parameters.query,
        parameters.variables,
        parameters.operation_name,
        queries_only=call.request.method != "POST",
    )
    return build_graphql_reply(call.request, outcome.body, executed=outcome.executed)
