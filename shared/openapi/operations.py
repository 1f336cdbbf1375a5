"""Operation Objects of OpenAPI, built from declared operations.

Separate from ``document`` because it describes one operation, without the catalog of the workspace.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from shared.http.operation_docs import JSON
from shared.http.operations import Access, NoBody, NoQuery, Operation, RawBody
from shared.http.unknown_names import UnknownNames
from shared.http.versions import HEADER, SUPPORTED
from shared.openapi.paths import LONGEST_PARAMETER, build_path_parameters, to_camel_case
from shared.openapi.responses import build_responses
from shared.openapi.schemas import ClosedBody, Schema, SchemaRegistry, limit_lengths

BEARER: Final = "bearer"
"""Name of the security scheme."""


def build_operation(operation: Operation, schemas: SchemaRegistry) -> Schema:
    """Build the OpenAPI Operation Object of a declared operation, and register the schemas that it needs."""
    operation_object: Schema = {
        "operationId": to_camel_case(operation.name),
        "tags": [operation.group],
        "summary": operation.summary,
        "description": describe_access(operation),
        "parameters": [
            *build_path_parameters(operation),
            *build_query_parameters(operation, schemas),
            *build_header_parameters(operation, schemas),
        ],
        "responses": build_responses(operation, schemas),
        **({"deprecated": True} if operation.deprecation else {}),
        "security": [] if operation.access is Access.PUBLIC else [{BEARER: []}],
    }
    body = _build_request_body(operation, schemas)
    return {**operation_object, "requestBody": body} if body else operation_object


def describe_access(operation: Operation) -> str:
    """Write a sentence about the credentials and the right that an operation requires."""
    match operation.access:
        case Access.PUBLIC:
            return "Requires no credential."
        case Access.KEYS:
            return "Accepts an API key, a token, or an Entra ID token if the deployment supports it."
        case Access.KEY_OR_TOKEN:
            return "Accepts an API key or a token."
        case Access.TOKEN:
            rights = " and ".join(f"`{right}`" for right in operation.rights)
            noun = "access right" if len(operation.rights) == 1 else "access rights"
            return f"Requires the {noun} {rights}." if rights else "Accepts any valid token."


def _build_request_body(operation: Operation, schemas: SchemaRegistry) -> Schema:
    takes: Any = operation.docs.body_schema
    if operation.body is NoBody and takes is None:
        return {}
    longest = max([operation.body_limit, *dict(operation.form_limits).values()])
    forms: dict[str, Schema] = {
        form: {"schema": limit_lengths(described, longest) if "properties" in described else dict(described)}
        for form, described in operation.docs.body_forms.items()
    }
    for form, shown in operation.docs.form_examples.items():
        forms[form]["example"] = shown
    if operation.body is RawBody and takes is None and operation.docs.body_forms:
        return {"required": True, "content": forms}
    schema = _build_body_schema(operation, schemas) if takes is None else limit_lengths(takes, longest)
    example = {} if operation.docs.example is None else {"example": operation.docs.example}
    required = takes is not None or _has_required_members(operation.body)
    return {"required": required, "content": {JSON: {"schema": schema, **example}, **forms}}


def _build_body_schema(operation: Operation, schemas: SchemaRegistry) -> Schema:
    if operation.unknown is not UnknownNames.REJECT:
        return schemas.register(operation.body, "validation", operation.body_limit)
    server_set = operation.server_set.names if operation.server_set else ()
    return schemas.register(operation.body, "validation", operation.body_limit, ClosedBody(server_set))


def _has_required_members(model: Any) -> bool:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return True
    return any(member.is_required() for member in model.model_fields.values())


_VERSION: Final[Mapping[str, Any]] = {
    "description": "Version of the API that the caller expects; the newest if the header is missing.",
    "schema": {"type": "string", "title": "ApiVersion", "enum": list(SUPPORTED)},
    "example": SUPPORTED[-1],
}


def build_query_parameters(operation: Operation, schemas: SchemaRegistry) -> list[Schema]:
    """Build the query parameters of an operation, and register the enumerations that they name."""
    declared = [{**one, "in": "query"} for one in operation.docs.query]
    if operation.query is NoQuery:
        return declared
    parameters = [*declared, *schemas.register_parameters(operation.query)]
    owner = to_camel_case(operation.name)
    return [{**one, "schema": _build_schema(one, owner, schemas)} for one in parameters]


def _build_schema(parameter: Schema, owner: str, schemas: SchemaRegistry) -> Schema:
    limited: Schema = limit_lengths(parameter["schema"], LONGEST_PARAMETER)
    return schemas.name_enums(limited, owner[0].upper() + owner[1:], parameter["name"])


def build_header_parameters(operation: Operation, schemas: SchemaRegistry) -> list[Schema]:
    """Build the header parameters of an operation, and register the enumerations that they name."""
    return [
        {
            **header,
            "name": name,
            "in": "header",
            "required": False,
            "schema": schemas.name_enums(limit_lengths(header["schema"], LONGEST_PARAMETER), "", name),
        }
        for name, header in _list_headers(operation)
    ]


def _list_headers(operation: Operation) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from operation.docs.headers.items()
    if operation.is_versioned:
        yield HEADER, _VERSION
