"""GraphQL endpoint: HTTP operations that follow GraphQL over HTTP (June 2025 working draft)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.graphql_api.error_codes import MAX_REPLY_BYTES, build_reply_too_large_error, to_graphql_error_object
from shared.http.messages import JSON, Reply, Request
from shared.http.negotiation import choose_media_type
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group, RawBody
from shared.http.problems import STATUS, build_error_headers, build_problem_reply
from shared.http.unknown_names import UnknownNames
from shared.interpreter import load_modules
from shared.text_formats.serialisation import (
    estimate_json_size,
    join_parts_up_to,
    serialise_json,
    serialise_json_in_parts,
)
from shared.text_formats.strict_json import parse_json_body
from shared.wiring import services

ROUTE = "v1/{workspaceId}/graphql"
GRAPHQL_JSON: Final = "application/graphql-response+json"
_ESTIMATED_CHARACTERS: Final = 65_536
"""Number of characters up to which the size of a reply is estimated; a worker thread serialises longer replies."""
_CHARACTERS_PER_CALL: Final = 1_048_576
"""Maximum length of a reply that one call of the serialiser writes; to write it in parts takes ten times as long."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
"""HTTP methods of the endpoint; error replies to other methods are problem documents."""


class GraphQLError(TypedDict):
    """A GraphQL error; `extensions` contains its code."""

    message: str
    path: list[str | int]
    locations: NotRequired[list[dict[str, int]]]
    extensions: dict[str, Any]


class GraphQLReply(TypedDict):
    """A GraphQL response."""

    data: NotRequired[dict[str, Any] | None]
    errors: NotRequired[list[GraphQLError]]


_EXAMPLE: Final = {"query": "{ workspace { id name stats { connectionCount } } }"}
_BODY_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "variables": {"type": ["object", "null"]},
        "operationName": {"type": ["string", "null"]},
        "extensions": {"type": ["object", "null"]},
    },
}
_QUERY_PARAMETERS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "query",
        "required": True,
        "description": "The GraphQL document; mutations require POST.",
        "schema": {"type": "string", "pattern": r"\S", "maxLength": 65_536},
        "example": _EXAMPLE["query"],
    },
    {
        "name": "operationName",
        "required": False,
        "description": "Name of the operation to execute, if the document contains several.",
        "schema": {"type": "string", "maxLength": 65_536},
    },
    {
        "name": "variables",
        "required": False,
        "description": "Values of the operation's variables, as JSON.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {}}},
    },
)
_DATA = {"data": {"workspace": {"id": "plant-a", "name": "Plant A", "stats": {"connectionCount": 4}}}}
_ERROR = {"message": "The query cannot be read.", "path": [], "extensions": {"code": "VALIDATION_ERROR"}}
_ERRORS = (GraphQLReply, {"errors": [_ERROR]})
_GRAPHQL_MEDIA_TYPE: Final = {"application/graphql-response+json": {"$ref": "#/components/schemas/GraphQLReply"}}
_RESPONSE = DocumentedReply(200, "Data, errors, or both.", GraphQLReply, _DATA, _GRAPHQL_MEDIA_TYPE)

POST_DOCS = OperationDocs(
    (_RESPONSE,), error_statuses=(400, 403, 413), example=_EXAMPLE, body_schema=_BODY_SCHEMA, errors=_ERRORS
)
GET_DOCS = OperationDocs((_RESPONSE,), error_statuses=(400, 403, 405), errors=_ERRORS, query=_QUERY_PARAMETERS)


@dataclass(frozen=True, slots=True)
class GraphQLParameters:
    """Parameters of a GraphQL request over HTTP, such as `query` and `variables`."""

    query: str
    variables: Mapping[str, Any]
    operation_name: str | None


async def parse_graphql_parameters(request: Request) -> GraphQLParameters:
    """Parse the GraphQL parameters from the body of a POST or from the query string of a GET.

    Raises:
        WorkspaceError: INVALID with the name of an invalid parameter, or INVALID ``BODY_NOT_JSON``.
    """
    members = await (
        _parse_parameters_in_query_string(request) if request.method != "POST" else _parse_parameters_in_body(request)
    )
    query, name = members.get("query"), members.get("operationName")
    if not isinstance(query, str) or not query.strip():
        raise build_invalid_field_error("query", "must be a string that contains a GraphQL document")
    if name is not None and not isinstance(name, str):
        raise build_invalid_field_error("operationName", "must be a string")
    _require_object_or_missing(members, "extensions")
    return GraphQLParameters(query, _require_object_or_missing(members, "variables") or {}, name or None)


def build_graphql_reply(request: Request, body: Mapping[str, Any], *, is_executed: bool, row_bytes: int = 0) -> Reply:
    """Build the HTTP reply of a GraphQL response, in the media type that the client prefers.

    If the reply has more than ``MAX_REPLY_BYTES``, return an error instead.

    Args:
        request: request that gets the reply.
        body: GraphQL response.
        is_executed: False for an invalid GraphQL request. The status is then 400, but 200 if the media type is
            ``application/json``, as the working draft requires.
        row_bytes: size of the rows in ``body`` that are serialised already.
    """
    is_short = estimate_json_size(body, _CHARACTERS_PER_CALL) + row_bytes <= _CHARACTERS_PER_CALL
    parts = (serialise_json(body),) if is_short else serialise_json_in_parts(body)
    content = join_parts_up_to(parts, MAX_REPLY_BYTES)
    if content is None:
        is_executed = False
        content = serialise_json({"errors": [to_graphql_error_object(build_reply_too_large_error())]})
    media_type = _select_reply_media_type(request)
    status = 400 if media_type == GRAPHQL_JSON and not is_executed else 200
    return Reply(status, content, {"Content-Type": f"{media_type}; charset=utf-8"})


def build_graphql_problem(error: WorkspaceError, request_id: str, request: Request) -> Reply:
    """Build the reply to a request that failed before its execution: a GraphQL error with the error's HTTP status."""
    media_type = _select_reply_media_type(request)
    if media_type == JSON and request.method not in _METHODS:
        return build_problem_reply(error, request_id)
    # Clients that prefer the GraphQL media type accept error bodies in that type only.
    graphql_error = to_graphql_error_object(error)
    graphql_error["extensions"]["traceId"] = request_id
    headers = {"Content-Type": f"{media_type}; charset=utf-8", **build_error_headers(error)}
    return Reply(int(STATUS[error.kind]), serialise_json({"errors": [graphql_error]}), headers)


def _select_reply_media_type(request: Request) -> str:
    return choose_media_type(request.headers.get("accept", ""), (JSON, GRAPHQL_JSON))


GROUP = Group("graphql", build_graphql_problem, is_versioned=False)


@GROUP.endpoint("POST", ROUTE, access=Access.KEY_OR_TOKEN, body=RawBody, unknown=UnknownNames.IGNORE, docs=POST_DOCS)
async def graphql(call: Call[Any, RawBody]) -> Reply:
    """Execute a GraphQL query or mutation."""
    return await _execute_graphql_request(call)


@GROUP.endpoint("GET", ROUTE, access=Access.KEY_OR_TOKEN, unknown=UnknownNames.IGNORE, docs=GET_DOCS)
async def graphql_query(call: Call) -> Reply:
    """Execute a GraphQL query; mutations require POST."""
    return await _execute_graphql_request(call)


async def _execute_graphql_request(call: Call[Any, Any]) -> Reply:
    workspace = (await services().catalog.get_current_catalog()).workspace
    if workspace is None or call.path["workspaceId"] != workspace.id:
        raise WorkspaceError(
            Kind.FORBIDDEN, "OTHER_WORKSPACE", "The credential does not belong to the workspace in the URL."
        )
    parameters = await parse_graphql_parameters(call.request)
    await load_modules(services().runtime, "shared.graphql_api.service")
    outcome = await services().graphql.service.run(
        call.principal,
        parameters.query,
        parameters.variables,
        parameters.operation_name,
        queries_only=call.request.method != "POST",
    )
    return await services().runtime.run_in_thread_if_large(
        estimate_json_size(outcome.body, _ESTIMATED_CHARACTERS) + outcome.row_bytes,
        build_graphql_reply,
        call.request,
        outcome.body,
        is_executed=outcome.executed,
        row_bytes=outcome.row_bytes,
    )


async def _parse_parameters_in_query_string(request: Request) -> dict[str, Any]:
    try:
        members: dict[str, Any] = dict(request.query_pairs)
    except ValueError as error:
        raise build_invalid_field_error("query", f"the query string is invalid: {error}") from None
    for name in ("variables", "extensions"):
        if members.get(name):
            members[name] = await _parse_json(members[name].encode("utf-8", "surrogatepass"), name)
        else:
            members.pop(name, None)
    return members


async def _parse_parameters_in_body(request: Request) -> dict[str, Any]:
    media_type = request.media_type
    if media_type != JSON:
        raise build_invalid_field_error("Content-Type", f"must be {JSON}", code="BODY_NOT_JSON")
    body = await _parse_json(request.body, "body")
    if not isinstance(body, dict):
        raise build_invalid_field_error("body", "must be a JSON object", code="BODY_NOT_JSON")
    return body


async def _parse_json(json_text: bytes, field_name: str) -> Any:
    try:
        return await parse_json_body(json_text, services().runtime)
    except ValueError as error:
        raise build_invalid_field_error(field_name, str(error), code="BODY_NOT_JSON") from None


def _require_object_or_missing(members: Mapping[str, Any], member_name: str) -> Mapping[str, Any] | None:
    """Check that a parameter is an object, and return the object; None if the parameter is missing or null."""
    value = members.get(member_name)
    if value is not None and not isinstance(value, dict):
        raise build_invalid_field_error(member_name, "must be an object")
    return value
