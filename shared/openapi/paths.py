"""One operation as the Operation Object of OpenAPI."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from shared.http.answers import JSON, Answer
from shared.http.messages import PROBLEM_JSON
from shared.http.operations import Access, NoBody, NoQuery, Operation
from shared.openapi.schemas import Schema, Schemas, parameters_of

BEARER = "bearer"
_PLACEHOLDER = re.compile(r"\{\*?([^{}]+)\}")


def path_of(operation: Operation) -> str:
    """Return the path template of an operation."""
    return "/" + _PLACEHOLDER.sub(r"{\1}", operation.route)


def camel(name: str) -> str:
    """Return a function's name as an operationId."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def operation_object(operation: Operation, schemas: Schemas) -> Schema:
    """Return the Operation Object; the schemas that it needs are added."""
    made: Schema = {
        "operationId": camel(operation.name),
        "tags": [operation.group],
        "summary": operation.summary,
        "description": description_of(operation),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": responses_of(operation, schemas),
        "security": [] if operation.access is Access.PUBLIC else [{BEARER: []}],
    }
    body = _request_body(operation, schemas)
    return {**made, "requestBody": body} if body else made


def description_of(operation: Operation) -> str:
    """Return who may call an operation, as a sentence."""
    match operation.access:
        case Access.PUBLIC:
            return "Needs no credential."
        case Access.KEYS:
            return "Takes an API key, a token, or an Entra ID token where the deployment has one."
        case Access.KEY_OR_TOKEN:
            return "Takes an API key or a token."
        case Access.TOKEN:
            return f"Needs the access right `{operation.right}`." if operation.right else "Takes any valid token."


def responses_of(operation: Operation, schemas: Schemas) -> Schema:
    """Return the Responses Object: the answers, and a problem document for each refusal."""
    answers = {str(answer.status): answer_object(answer, schemas) for answer in operation.docs.answers}
    refusals = {str(status): {"$ref": f"#/components/responses/{name_of(status)}"} for status in refusals_of(operation)}
    return {**answers, **refusals}


def answer_object(answer: Answer, schemas: Schemas) -> Schema:
    """Return the Response Object of an answer."""
    content: Schema = {}
    if answer.shape is not None:
        content[JSON] = {"schema": schemas.of(answer.shape, "serialization"), "example": answer.example}
    content |= {form: {"schema": dict(schema)} for form, schema in answer.forms.items()}
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()}
    return {
        "description": answer.description,
        **({"content": content} if content else {}),
        **({"headers": headers} if headers else {}),
    }


def refusals_of(operation: Operation) -> list[int]:
    """Return the statuses of an operation's problem documents: those that its declaration implies, and its own."""
    return sorted({*_implied(operation), *operation.docs.refusals})


def name_of(status: int) -> str:
    """Return the name of a status's problem document under ``components``."""
    return HTTPStatus(status).phrase.replace(" ", "").replace("-", "")


def problem_object(status: int) -> Schema:
    """Return the Response Object of a problem document."""
    phrase = HTTPStatus(status).phrase
    example = {
        "type": "urn:oi:problem:example",
        "title": phrase,
        "status": status,
        "detail": "What went wrong, in a sentence.",
        "code": "EXAMPLE",
        "traceId": "0af7651916cd43dd8448eb211c80319c",
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    made: Schema = {"description": phrase, "content": {PROBLEM_JSON: {"schema": schema, "example": example}}}
    return {**made, "headers": _PROBLEM_HEADERS[status]} if status in _PROBLEM_HEADERS else made


def _header(description: str) -> Schema:
    return {"description": description, "required": True, "schema": {"type": "string"}}


_PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": _header("`Bearer`.")},
    429: {"Retry-After": _header("Seconds to wait.")},
    503: {"Retry-After": _header("Seconds to wait.")},
}


def _implied(operation: Operation) -> Iterator[int]:
    yield 500
    if operation.access is not Access.PUBLIC:
        yield from (401, 429, 503)
    if operation.right is not None:
        yield 403
    if operation.feature:
        yield 503
    if operation.query is not NoQuery:
        yield 400
    if operation.body is not NoBody:
        yield from (400, 413)
    if "{" in operation.route:
        yield from (400, 404)


def _path_parameters(operation: Operation) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PLACEHOLDER.findall(operation.route)
    ]


def _query_parameters(operation: Operation) -> list[Schema]:
    return [] if operation.query is NoQuery else parameters_of(operation.query)


def _request_body(operation: Operation, schemas: Schemas) -> Schema:
    takes: Any = operation.docs.takes
    if operation.body is NoBody and takes is None:
        return {}
    schema = schemas.of(operation.body, "validation") if takes is None else dict(takes)
    example = {} if operation.docs.example is None else {"example": operation.docs.example}
    required = takes is not None or _needs_members(operation.body)
    return {"required": required, "content": {JSON: {"schema": schema, **example}}}


def _needs_members(model: Any) -> bool:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return True
    return any(member.is_required() for member in model.model_fields.values())
