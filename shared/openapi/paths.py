"""Operation Objects of OpenAPI, built from declared operations."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from shared.http.load_shedding import ALWAYS_ADMITTED
from shared.http.messages import PROBLEM_JSON
from shared.http.operation_docs import JSON, DocumentedReply
from shared.http.operations import Access, NoBody, NoQuery, Operation
from shared.http.unknown_names import UnknownNames
from shared.openapi.schemas import ClosedBody, Schema, SchemaRegistry, limit_lengths, list_parameters

BEARER = "bearer"
LONGEST_PARAMETER = 65_536
"""Maximum characters of a parameter; most hosts limit request lines to fewer."""
_PLACEHOLDER = re.compile(r"\{\*?([^{}]+)\}")


def build_path_template(operation: Operation) -> str:
    """Return the path template of an operation."""
    return "/" + _PLACEHOLDER.sub(r"{\1}", operation.route)


def to_camel_case(name: str) -> str:
    """Convert a function's name to an operationId."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def build_operation(operation: Operation, schemas: SchemaRegistry) -> Schema:
    """Return the Operation Object, and register the schemas that it needs."""
    operation_object: Schema = {
        "operationId": to_camel_case(operation.name),
        "tags": [operation.group],
        "summary": operation.summary,
        "description": describe_access(operation),
        "parameters": [
            *_build_path_parameters(operation),
            *_build_query_parameters(operation),
            *_build_header_parameters(operation),
        ],
        "responses": build_responses(operation, schemas),
        "security": [] if operation.access is Access.PUBLIC else [{BEARER: []}],
    }
    body = _build_request_body(operation, schemas)
    return {**operation_object, "requestBody": body} if body else operation_object


def describe_access(operation: Operation) -> str:
    """Return a sentence about the credentials and the right that an operation requires."""
    match operation.access:
        case Access.PUBLIC:
            return "Requires no credential."
        case Access.KEYS:
            return "Accepts an API key, a token, or an Entra ID token if the deployment supports it."
        case Access.KEY_OR_TOKEN:
            return "Accepts an API key or a token."
        case Access.TOKEN:
            return f"Requires the access right `{operation.right}`." if operation.right else "Accepts any valid token."


def build_responses(operation: Operation, schemas: SchemaRegistry) -> Schema:
    """Return the Responses Object: success replies, and a problem document for each error."""
    known = operation.access is not Access.PUBLIC
    operation_object = {
        str(status): build_error_response(operation, status, schemas) for status in list_error_statuses(operation)
    }
    for answer in operation.docs.replies:
        response = build_response(answer, schemas, limited=known)
        if str(answer.status) in operation_object:
            # Both forms occur with this status: the operation's own form and a problem document.
            response["content"] |= build_problem_response(answer.status)["content"]
        operation_object[str(answer.status)] = response
    return dict(sorted(operation_object.items()))


def build_error_response(operation: Operation, status: int, schemas: SchemaRegistry) -> Schema:
    """Return the Response Object of an error: a shared problem document, or the operation's own error form."""
    if operation.docs.errors is None or status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return {"$ref": f"#/components/responses/{build_problem_name(status)}"}
    shape, example = operation.docs.errors
    header = DocumentedReply(status, HTTPStatus(status).phrase, shape, example, operation.docs.replies[0].forms)
    operation_object = build_response(header, schemas, limited=status != _UNAUTHENTICATED)
    if status == HTTPStatus.REQUEST_URI_TOO_LONG:
        # A host that limits request lines replies with a problem document itself.
        operation_object["content"] |= build_problem_response(status)["content"]
    return {**operation_object, "headers": {**operation_object.get("headers", {}), **_PROBLEM_HEADERS.get(status, {})}}


def build_response(answer: DocumentedReply, schemas: SchemaRegistry, *, limited: bool) -> Schema:
    """Return the Response Object of a reply.

    Args:
        answer: what is answered.
        schemas: registry of named schemas.
        limited: whether the reply has rate-limit headers.
    """
    content: Schema = {}
    if answer.shape is not None:
        content[JSON] = {"schema": schemas.register(answer.shape, "serialization"), "example": answer.example}
    content |= {form: {"schema": dict(schema)} for form, schema in answer.forms.items()}
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()}
    headers |= {**(LIMIT_HEADERS if limited else {}), **TRACE_HEADER}
    return {
        "description": answer.description,
        **({"content": content} if content else {}),
        "headers": headers,
    }


def list_error_statuses(operation: Operation) -> list[int]:
    """Return the statuses of an operation's errors: implied by its declaration, and its own."""
    return sorted({*_list_implied_statuses(operation), *operation.docs.error_statuses})


def build_problem_name(status: int) -> str:
    """Return the name of a status's problem document under ``components``."""
    return HTTPStatus(status).phrase.replace(" ", "").replace("-", "")


def build_problem_response(status: int) -> Schema:
    """Return the Response Object of a problem document."""
    phrase = HTTPStatus(status).phrase
    example = {
        "type": "urn:oi:problem:example",
        "title": phrase,
        "status": status,
        "detail": "Description of the error in one sentence.",
        "code": "EXAMPLE",
        "traceId": "0af7651916cd43dd8448eb211c80319c",
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    operation_object: Schema = {
        "description": phrase,
        "content": {PROBLEM_JSON: {"schema": schema, "example": example}},
    }
    limits = {} if status == _UNAUTHENTICATED else LIMIT_HEADERS
    return {**operation_object, "headers": {**_PROBLEM_HEADERS.get(status, {}), **limits, **TRACE_HEADER}}


def _build_header(description: str, *, required: bool = True) -> Schema:
    return {"description": description, "required": required, "schema": {"type": "string"}}


_UNAUTHENTICATED = 401
"""A 401 reply has no rate-limit headers, because its caller is unknown."""

HEADERS: Schema = {
    "RateLimit": _build_header(
        'Remaining requests of the caller: `"default";r=599;t=60`, requests and seconds until the limit is restored '
        "(draft-ietf-httpapi-ratelimit-headers-10).",
        required=False,
    ),
    "RateLimit-Policy": _build_header(
        'Limit of the caller: `"default";q=600;w=60`, requests per window in seconds.', required=False
    ),
    "x-request-id": _build_header("Identifies the request in the service log: the caller's own id, or a new one."),
}
"""Headers of many replies, by their names under ``components``."""

LIMIT_HEADERS: Schema = {name: {"$ref": f"#/components/headers/{name}"} for name in ("RateLimit", "RateLimit-Policy")}
TRACE_HEADER: Schema = {"x-request-id": {"$ref": "#/components/headers/x-request-id"}}
_PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": _build_header("`Bearer`.")},
    429: {"Retry-After": _build_header("Seconds to wait.")},
    503: {"Retry-After": _build_header("Seconds to wait; missing if waiting does not help.", required=False)},
}


def _list_implied_statuses(operation: Operation) -> Iterator[int]:
    yield 500
    if f"/{operation.route}" not in ALWAYS_ADMITTED:
        yield 503
    if operation.access is not Access.PUBLIC:
        yield from (401, 429)
    if operation.right is not None:
        yield 403
    if operation.query is not NoQuery or operation.unknown is UnknownNames.REJECT:
        yield 400
    if operation.takes_body:
        yield from (400, 413, 415)
    if "{" in operation.route:
        yield from (400, 404)
    if "{" in operation.route or operation.query is not NoQuery:
        yield 414
    if operation.docs.headers:
        yield 431


def _build_path_parameters(operation: Operation) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS[name][0],
            "example": _LOOKUPS[operation.route.split("/")[1]] if name == "lookup" else _PATH_PARAMETERS[name][1],
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_PARAMETER,
                **operation.docs.path.get(name, {}),
            },
        }
        for name in _PLACEHOLDER.findall(operation.route)
    ]


_PATH_PARAMETERS = {
    "lookup": ("Lookup key; for the execution of a warm query also its API path.", ""),
    "queryId": ("Lookup key of the warm query.", "pressure-5m"),
    "workspaceId": ("Id of the workspace.", "plant-a"),
    "surfaceLookup": ("Lookup key of the surface.", "cooling"),
    "connLookup": ("Lookup key of a data connection of the surface.", "pump-rig"),
    "downloadId": ("Id of the download.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "documentId": ("Id of the document.", "wo-1"),
    "id": ("RecordID of the amendment.", "000000000001"),
    "jti": ("Id of the token, its claim `jti`.", "0af7651916cd43dd8448eb211c80319c"),
    "keyId": ("Id of the API key, the part between its underscores.", "k7w2m4qa"),
    "containerName": ("Name of the container.", "workorders"),
    "store": ("Lookup key of the document store.", "mes"),
    "database": ("Lookup key of the database.", "orders"),
    "table": ("Name of the table.", "workorders"),
    "file": ("Name of the file.", "index.html"),
}


_LOOKUPS = {
    "warm-queries": "pressure-5m",
    "telemetry": "pump-rig",
    "downloads": "pump-rig",
    "data-stores": "orders",
}
"""Examples of lookup keys by the second segment of a route."""


def _build_query_parameters(operation: Operation) -> list[Schema]:
    declared = [{**one, "in": "query"} for one in operation.docs.query]
    if operation.query is NoQuery:
        return declared
    return declared + [
        {**one, "schema": limit_lengths(one["schema"], LONGEST_PARAMETER)} for one in list_parameters(operation.query)
    ]


def _build_header_parameters(operation: Operation) -> list[Schema]:
    return [
        {
            **header,
            "name": name,
            "in": "header",
            "required": False,
            "schema": limit_lengths(header["schema"], LONGEST_PARAMETER),
        }
        for name, header in operation.docs.headers.items()
    ]


def _build_request_body(operation: Operation, schemas: SchemaRegistry) -> Schema:
    takes: Any = operation.docs.body_schema
    if operation.body is NoBody and takes is None:
        return {}
    longest = operation.body_limit
    schema = _build_body_schema(operation, schemas) if takes is None else limit_lengths(takes, longest)
    example = {} if operation.docs.example is None else {"example": operation.docs.example}
    required = takes is not None or _has_required_members(operation.body)
    return {"required": required, "content": {JSON: {"schema": schema, **example}}}


def _build_body_schema(operation: Operation, schemas: SchemaRegistry) -> Schema:
    if operation.unknown is not UnknownNames.REJECT:
        return schemas.register(operation.body, "validation", operation.body_limit)
    owned = operation.server_set.names if operation.server_set else ()
    return schemas.register(operation.body, "validation", operation.body_limit, ClosedBody(owned))


def _has_required_members(model: Any) -> bool:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return True
    return any(member.is_required() for member in model.model_fields.values())
