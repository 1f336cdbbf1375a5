"""Responses Objects of OpenAPI: documented replies, and problem documents of errors."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from shared.http.deprecations import has_deprecated_names
from shared.http.messages import PROBLEM_JSON
from shared.http.operation_docs import JSON, DocumentedReply
from shared.http.operations import Access, Operation
from shared.http.problems import TYPE_BASE
from shared.http.unknown_names import IGNORED, UnknownNames
from shared.http.versions import CURRENT, HEADER, SUPPORTED
from shared.openapi.error_codes import ERROR_CODES
from shared.openapi.operation_errors import list_error_codes, list_error_statuses
from shared.openapi.schemas import Schema, SchemaRegistry


def build_responses(operation: Operation, schemas: SchemaRegistry) -> Schema:
    """Build the Responses Object of an operation: its successful replies, and one reply for each error status."""
    errors = list_error_statuses(operation)
    limited = operation.access is not Access.PUBLIC or HTTPStatus.TOO_MANY_REQUESTS in errors
    own = {reply.status for reply in operation.docs.replies}
    responses = {
        str(status): build_error_response(operation, status, schemas) for status in errors if status not in own
    }
    for reply in operation.docs.replies:
        response = build_response(reply, schemas, has_rate_limit_headers=limited)
        response["headers"] = _build_headers_of_operation(operation) | response["headers"]
        if reply.status in errors:
            # Both forms occur with this status: the operation's own form and a problem document.
            codes = list_error_codes(operation, reply.status)
            schemas.shown_errors.update((code, reply.status) for code in codes)
            response["content"] |= build_problem_response(reply.status, codes)["content"]
        responses[str(reply.status)] = response
    return dict(sorted(responses.items()))


def _build_headers_of_operation(operation: Operation) -> Schema:
    """Return the documented headers of an operation's replies: API version, ignored names, and deprecation."""
    is_deprecated = operation.deprecation is not None or has_deprecated_names(operation.body)
    return {
        **(VERSION_HEADER if operation.is_versioned else {}),
        **(_IGNORED_HEADER if operation.unknown is UnknownNames.REPORT else {}),
        **(_DEPRECATION_HEADERS if is_deprecated else {}),
    }


def build_error_response(operation: Operation, status: int, schemas: SchemaRegistry) -> Schema:
    """Build the Response Object of an error: a shared problem document, or the operation's own error format."""
    if operation.docs.errors is None:
        return {"$ref": schemas.register_problem_and_get_reference(status, list_error_codes(operation, status))}
    shape, example = operation.docs.errors
    reply = DocumentedReply(status, HTTPStatus(status).phrase, shape, example, operation.docs.replies[0].forms)
    response = build_response(reply, schemas, has_rate_limit_headers=True)
    response["headers"] = _build_headers_of_operation(operation) | response["headers"]
    if status in {HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE}:
        # A host that limits request lines and headers replies with a problem document itself.
        response["content"] |= build_problem_response(status, ())["content"]
    response["headers"] |= _PROBLEM_HEADERS.get(status, {})
    return response


def build_response(reply: DocumentedReply, schemas: SchemaRegistry, *, has_rate_limit_headers: bool) -> Schema:
    """Build the Response Object of a reply.

    Args:
        reply: declaration of the reply.
        schemas: registry of named schemas.
        has_rate_limit_headers: True if the reply has rate-limit headers.
    """
    content: Schema = {}
    if reply.shape is not None:
        content[JSON] = {"schema": schemas.register_type(reply.shape, "serialization"), "example": reply.example}
    content |= {form: {"schema": dict(schema)} for form, schema in reply.forms.items()}
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in reply.headers.items()}
    headers |= {**(LIMIT_HEADERS if has_rate_limit_headers else {}), **TRACE_HEADER}
    return {
        "description": reply.description,
        **({"content": content} if content else {}),
        "headers": headers,
    }


def build_problem_response(status: int, codes: Sequence[str]) -> Schema:
    """Build the Response Object of a problem document.

    Args:
        status: HTTP status of the reply.
        codes: error codes with this status; empty if they are not known.
    """
    phrase = HTTPStatus(status).phrase
    own = {**_PROBLEM_HEADERS.get(status, {}), **({} if _RETRYABLE_CODES.isdisjoint(codes) else _RETRY_AFTER_HEADER)}
    return {
        "description": phrase,
        "content": {PROBLEM_JSON: _build_problem_schema(status, codes)},
        "headers": {**own, **LIMIT_HEADERS, **TRACE_HEADER, **VERSION_HEADER},
    }


def _build_problem_schema(status: int, codes: Sequence[str]) -> Schema:
    # Code generators ignore properties beside a reference, so their clients accept a code that a later version adds.
    schema = {"$ref": "#/components/schemas/Problem"}
    if not codes:
        return {"schema": schema, "example": build_problem_example("INTERNAL_ERROR", status)}
    examples = {code: {"$ref": f"#/components/examples/{build_error_example_name(code, status)}"} for code in codes}
    return {"schema": {**schema, "properties": {"code": {"enum": list(codes)}}}, "examples": examples}


def build_error_example_name(code: str, status: int) -> str:
    """Return the name of an error's example under ``components``.

    For the code's first status in :data:`ERROR_CODES`, the name is the code. For each other status, the status is
    appended to the code, for example ``PROTOCOL_REFUSED.403``.
    """
    return code if status == ERROR_CODES[code].statuses[0] else f"{code}.{status}"


def build_problem_example(code: str, status: int) -> Schema:
    """Build an example of the problem document with an error code and an HTTP status."""
    return {
        "type": TYPE_BASE + code.lower().replace("_", "-"),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": ERROR_CODES[code].detail,
        "code": code,
        "traceId": "0af7651916cd43dd8448eb211c80319c",
    }


class ErrorComponents(NamedTuple):
    """Shared error replies and their examples, each by its name in the section ``components``."""

    responses: Schema
    examples: Schema


def build_error_components(schemas: SchemaRegistry) -> ErrorComponents:
    """Build the shared error replies and their examples for the section ``components``."""
    responses = {
        name: build_problem_response(status, codes) for name, (status, codes) in sorted(schemas.problems.items())
    }
    examples = {
        build_error_example_name(code, status): {"summary": code, "value": build_problem_example(code, status)}
        for code, status in sorted(schemas.shown_errors)
    }
    return ErrorComponents(responses, examples)


def _build_header_object(description: str, *, required: bool = True) -> Schema:
    return {"description": description, "required": required, "schema": {"type": "string"}}


HEADERS: Schema = {
    "RateLimit": _build_header_object(
        'Remaining requests of the caller: `"default";r=599;t=60`, requests and seconds until the limit is restored '
        "(draft-ietf-httpapi-ratelimit-headers-10).",
        required=False,
    ),
    "RateLimit-Policy": _build_header_object(
        'Limit of the caller: `"default";q=600;w=60`, requests per window in seconds.', required=False
    ),
    HEADER: {
        "description": "Version of the API of this reply.",
        "required": False,
        "schema": {"type": "string", "enum": list(SUPPORTED)},
        "example": CURRENT,
    },
    "x-request-id": _build_header_object(
        "Identifies the request in the service log: the caller's own id, or a new one."
    ),
    IGNORED: _build_header_object("Names of ignored parameters, body properties and values.", required=False),
    "Deprecation": _build_header_object(
        "Date of the deprecation, if the request uses a deprecated operation or name, such as `@1796083200` "
        "(RFC 9745).",
        required=False,
    ),
    "Sunset": _build_header_object(
        "Present together with `Deprecation`: the date from which the request can fail (RFC 8594).", required=False
    ),
    "Link": _build_header_object(
        'Present together with `Deprecation`: the page about deprecations, with `rel="deprecation"` (RFC 8288).',
        required=False,
    ),
}
"""Headers of many replies, by their names under ``components``."""

LIMIT_HEADERS: Schema = {name: {"$ref": f"#/components/headers/{name}"} for name in ("RateLimit", "RateLimit-Policy")}
VERSION_HEADER: Schema = {HEADER: {"$ref": f"#/components/headers/{HEADER}"}}
TRACE_HEADER: Schema = {"x-request-id": {"$ref": "#/components/headers/x-request-id"}}
_IGNORED_HEADER: Schema = {IGNORED: {"$ref": f"#/components/headers/{IGNORED}"}}
_DEPRECATION_HEADERS: Schema = {
    name: {"$ref": f"#/components/headers/{name}"} for name in ("Deprecation", "Sunset", "Link")
}
_RETRY_AFTER_HEADER: Schema = {
    "Retry-After": _build_header_object("Seconds to wait; only with a temporary error.", required=False)
}
_RETRYABLE_CODES = frozenset({"RECEIPT_NOT_READY", "SIGNATURE_TOKEN_USED"})
"""Codes whose replies have ``Retry-After`` although most replies with the same status have none."""

_PROBLEM_HEADERS = {
    401: {
        "WWW-Authenticate": _build_header_object(
            "`Bearer`; with `error` and `max_age` (RFC 9470) if the person must sign in again."
        )
    },
    405: {"Allow": _build_header_object("Methods of the address, separated by commas.")},
    415: {
        "Accept-Encoding": _build_header_object(
            "Content encodings that the operation accepts; missing if the media type is the cause.", required=False
        )
    },
    426: {
        "Upgrade": _build_header_object("`websocket`."),
        "Sec-WebSocket-Version": _build_header_object(
            "Supported version, if the request has another one.", required=False
        ),
    },
    429: {"Retry-After": _build_header_object("Seconds to wait.")},
    503: {"Retry-After": _build_header_object("Seconds to wait; missing if waiting does not help.", required=False)},
    507: {"Retry-After": _build_header_object("Seconds to wait; missing if waiting does not help.", required=False)},
}
