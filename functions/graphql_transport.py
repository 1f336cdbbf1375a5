"""Parsing of requests and building of replies for GraphQL over HTTP (June 2025 working draft)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import WorkspaceError, invalid
from shared.graphql_api.error_codes import to_error_object
from shared.http.messages import JSON, Reply, Request, json_bytes
from shared.http.negotiation import choose_media_type
from shared.http.problems import STATUS, error_headers, problem_reply
from shared.text_formats.strict_json import parse_body

GRAPHQL_JSON: Final = "application/graphql-response+json"
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
"""Methods of GraphQL over HTTP; errors on other methods are problem documents."""


@dataclass(frozen=True, slots=True)
class GraphQLParameters:
    """Members of a GraphQL request."""

    query: str
    variables: Mapping[str, Any]
    operation_name: str | None


async def read_parameters(request: Request) -> GraphQLParameters:
    """Parse the GraphQL parameters from the body of a POST or from the query string of a GET.

    Raises:
        WorkspaceError: INVALID with the name of an invalid member, or INVALID ``BODY_NOT_JSON``.
    """
    members = await (_parse_query_string(request) if request.method != "POST" else _parse_body(request))
    query, name = members.get("query"), members.get("operationName")
    if not isinstance(query, str) or not query.strip():
        raise invalid("query", "must be a string that contains a GraphQL document")
    if name is not None and not isinstance(name, str):
        raise invalid("operationName", "must be a string")
    _require_object(members, "extensions")
    return GraphQLParameters(query, _require_object(members, "variables"), name or None)


def build_graphql_reply(request: Request, body: Mapping[str, Any], *, executed: bool) -> Reply:
    """Return a reply in the client's preferred media type.

    Under ``application/json`` the status of an invalid GraphQL request is 200, as the working draft requires.
    """
    media_type = _select_media_type(request)
    status = 400 if media_type == GRAPHQL_JSON and not executed else 200
    return Reply(status, json_bytes(body), {"Content-Type": f"{media_type}; charset=utf-8"})


def build_graphql_problem(error: WorkspaceError, request_id: str, request: Request) -> Reply:
    """Return the reply to a request that failed before execution: an ``errors`` array with the status of the error."""
    media_type = _select_media_type(request)
    if media_type == JSON and request.method not in _METHODS:
        return problem_reply(error, request_id)
    # Clients that prefer the GraphQL media type read error bodies in that type only.
    graphql_error = to_error_object(error)
    graphql_error["extensions"]["traceId"] = request_id
    headers = {"Content-Type": f"{media_type}; charset=utf-8", **error_headers(error)}
    return Reply(int(STATUS[error.kind]), json_bytes({"errors": [graphql_error]}), headers)


def _select_media_type(request: Request) -> str:
    return choose_media_type(request.headers.get("accept", ""), (JSON, GRAPHQL_JSON))


async def _parse_query_string(request: Request) -> dict[str, Any]:
    try:
        members: dict[str, Any] = dict(request.query_pairs())
    except ValueError as error:
        raise invalid("query", f"the query string is invalid: {error}") from None
    for name in ("variables", "extensions"):
        if members.get(name):
            members[name] = await _parse_json(members[name].encode("utf-8", "surrogatepass"), name)
        else:
            members.pop(name, None)
    return members


async def _parse_body(request: Request) -> dict[str, Any]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise invalid("Content-Type", f"must be {JSON}", code="BODY_NOT_JSON")
    body = await _parse_json(request.body, "body")
    if not isinstance(body, dict):
        raise invalid("body", "must be a JSON object", code="BODY_NOT_JSON")
    return body


async def _parse_json(text: bytes, name: str) -> Any:
    try:
        return await parse_body(text)
    except ValueError as error:
        raise invalid(name, str(error), code="BODY_NOT_JSON") from None


def _require_object(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    if value is not None and not isinstance(value, dict):
        raise invalid(name, "must be an object")
    return value or {}
