"""GraphQL over HTTP (June 2025 working draft): how a request is read and how an answer is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import WorkspaceError, invalid
from shared.graphql_api.error_codes import to_error_object
from shared.http.messages import JSON, Reply, Request, json_bytes
from shared.http.negotiation import preferred
from shared.http.problems import STATUS, headers_of, problem_reply
from shared.text_formats.strict_json import parse_body

GRAPHQL_JSON: Final = "application/graphql-response+json"
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
"""Those of the protocol; others are refused as everywhere."""


@dataclass(frozen=True, slots=True)
class GraphQLParameters:
    """The members of a GraphQL request."""

    query: str
    variables: Mapping[str, Any]
    operation_name: str | None


async def read_parameters(request: Request) -> GraphQLParameters:
    """Return what a request asks for, from its body or, for GET, its query string.

    Raises:
        WorkspaceError: INVALID naming the member, or INVALID ``BODY_NOT_JSON``.
    """
    members = await (_from_query(request) if request.method != "POST" else _from_body(request))
    query, name = members.get("query"), members.get("operationName")
    if not isinstance(query, str) or not query.strip():
        raise invalid("query", "a GraphQL document is required, as a string")
    if name is not None and not isinstance(name, str):
        raise invalid("operationName", "a string is expected")
    _object(members, "extensions")
    return GraphQLParameters(query, _object(members, "variables"), name or None)


def answer(request: Request, body: Mapping[str, Any], *, executed: bool) -> Reply:
    """Return a reply in the media type that the client prefers; only the newer one tells refusals by its status."""
    media_type = media_type_of(request)
    status = 400 if media_type == GRAPHQL_JSON and not executed else 200
    return Reply(status, json_bytes(body), {"Content-Type": f"{media_type}; charset=utf-8"})


def media_type_of(request: Request) -> str:
    """Return the media type that a client is answered in."""
    return preferred(request.headers.get("accept", ""), (JSON, GRAPHQL_JSON))


def graphql_problem(error: WorkspaceError, request_id: str, request: Request) -> Reply:
    """Return the reply of a request that never came to its fields: an ``errors`` array under the error's status.

    Clients that prefer the newer media type read the body of a refusal in no other.
    """
    media_type = media_type_of(request)
    if media_type == JSON and request.method not in _METHODS:
        return problem_reply(error, request_id)
    shown = to_error_object(error)
    shown["extensions"]["traceId"] = request_id
    headers = {"Content-Type": f"{media_type}; charset=utf-8", **headers_of(error)}
    return Reply(int(STATUS[error.kind]), json_bytes({"errors": [shown]}), headers)


async def _from_query(request: Request) -> dict[str, Any]:
    try:
        members: dict[str, Any] = dict(request.query_pairs())
    except ValueError as error:
        raise invalid("query", f"the query string cannot be read: {error}") from None
    for name in ("variables", "extensions"):
        if members.get(name):
            members[name] = await _json(members[name].encode("utf-8", "surrogatepass"), name)
        else:
            members.pop(name, None)
    return members


async def _from_body(request: Request) -> dict[str, Any]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise invalid("Content-Type", f"{JSON} is expected", code="BODY_NOT_JSON")
    body = await _json(request.body, "body")
    if not isinstance(body, dict):
        raise invalid("body", "a JSON object is expected", code="BODY_NOT_JSON")
    return body


async def _json(text: bytes, name: str) -> Any:
    try:
        return await parse_body(text)
    except ValueError as error:
        raise invalid(name, str(error), code="BODY_NOT_JSON") from None


def _object(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    if value is not None and not isinstance(value, dict):
        raise invalid(name, "an object is expected")
    return value or {}
