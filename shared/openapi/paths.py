"""Path Items of OpenAPI, built from declared operations: the path template, its parameters and the Operation Object."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from shared.http.operation_docs import JSON
from shared.http.operations import Access, NoBody, NoQuery, Operation, RawBody
from shared.http.unknown_names import UnknownNames
from shared.http.versions import HEADER, SUPPORTED
from shared.openapi.responses import build_responses
from shared.openapi.schemas import ClosedBody, Schema, SchemaRegistry, add_length_limits

LONGEST_PARAMETER: Final = 65_536
"""Maximum characters of a parameter; most hosts limit request lines to fewer."""
PLACEHOLDER: Final = re.compile(r"\{\*?([^{}]+)\}")


def build_path_template(operation: Operation) -> str:
    """Build the OpenAPI path template of an operation from its route."""
    return "/" + PLACEHOLDER.sub(r"{\1}", operation.route)


def to_camel_case(name: str) -> str:
    """Convert the snake_case name of a function to the camelCase form of an operationId."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def build_path_parameters(operation: Operation) -> list[Schema]:
    """Build the path parameters of an operation."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": description,
            "example": example,
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_PARAMETER,
                **operation.docs.path.get(name, {}),
            },
        }
        for name in PLACEHOLDER.findall(operation.route)
        for description, example in [_describe_path_parameter(operation.route.split("/")[1], name)]
    ]


class _ParameterText(NamedTuple):
    """Description and example of a path parameter."""

    description: str
    example: str


def _describe_path_parameter(route_segment: str, parameter_name: str) -> _ParameterText:
    """Return the description and the example of a path parameter.

    Args:
        route_segment: second segment of the operation's route, such as ``telemetry`` in ``oi-api/telemetry/{lookup}``.
        parameter_name: name of the parameter.
    """
    if (route_segment, parameter_name) == ("team", "id"):
        return _ParameterText("Id of the member, percent-encoded.", "auditor@plant-a.example")
    if (route_segment, parameter_name) == ("webhooks", "id"):
        return _ParameterText("Id of the webhook.", "3b1f8e0c7a5d4e2f9c6b8a7d5e4f3c2b")
    if (route_segment, parameter_name) == ("alerts", "id"):
        return _ParameterText("Id of the alert.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847")
    texts = _LOOKUPS[route_segment] if parameter_name == "lookup" else _PATH_PARAMETERS[parameter_name]
    return _ParameterText(*texts)


_PATH_PARAMETERS = {
    "queryId": ("Lookup key of the warm query.", "pressure-5m"),
    "workspaceId": ("Id of the workspace.", "plant-a"),
    "surfaceLookup": ("Lookup key of the surface.", "cooling"),
    "connLookup": ("Lookup key of a data connection of the surface.", "pump-rig"),
    "downloadId": ("Id of the download.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "deliveryId": ("Id of the delivery, the header `webhook-id`.", "msg_b2nq5tcyvxk4wdz7g3mhpf6rsajue2lo"),
    "importId": ("Id of the import.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "bundleId": ("Id of the audit bundle.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "documentId": ("Id of the document.", "wo-1"),
    "id": ("RecordID of the amendment.", "000000000001"),
    "grantId": ("Id of the grant.", "0197a0b1c2d37e4f8a9b0c1d2e3f4a5b"),
    "jti": ("Id of the token, its claim `jti`.", "0af7651916cd43dd8448eb211c80319c"),
    "keyId": ("Id of the API key, the part between its underscores.", "k7w2m4qa"),
    "containerName": ("Name of the container.", "workorders"),
    "store": ("Lookup key of the document store.", "mes"),
    "database": ("Lookup key of the database.", "orders"),
    "table": ("Name of the table.", "workorders"),
    "file": ("Name of the file.", "index.html"),
}


_CONNECTION: Final = ("Lookup key of the data connection.", "pump-rig")
_LOOKUPS = {
    "warm-queries": ("Lookup key of the warm query; for its execution also its API path.", "pressure-5m"),
    "telemetry": _CONNECTION,
    "downloads": _CONNECTION,
    "imports": _CONNECTION,
    "data-stores": ("Lookup key of the database.", "orders"),
    "connections": _CONNECTION,
    "surfaces": ("Lookup key of the surface.", "cooling"),
    "alert-rules": ("Lookup key of the alert rule.", "pressure-high"),
}
"""Descriptions and examples of ids in URLs (lookups), by the second segment of a route."""


BEARER: Final = "bearer"
"""Name of the security scheme."""


def build_operation_object(operation: Operation, schemas: SchemaRegistry) -> Schema:
    """Build the OpenAPI Operation Object of a declared operation, and register the schemas that it needs."""
    operation_object: Schema = {
        "operationId": to_camel_case(operation.name),
        "tags": [operation.group],
        "summary": operation.summary,
        "description": describe_required_access(operation),
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


def describe_required_access(operation: Operation) -> str:
    """Write a sentence about the credentials that an operation accepts, or about the rights that it requires."""
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
        form: {"schema": add_length_limits(described, longest) if "properties" in described else dict(described)}
        for form, described in operation.docs.body_forms.items()
    }
    for form, shown in operation.docs.form_examples.items():
        forms[form]["example"] = shown
    if operation.body is RawBody and takes is None and operation.docs.body_forms:
        return {"required": True, "content": forms}
    schema = _build_body_schema(operation, schemas) if takes is None else add_length_limits(takes, longest)
    example = {} if operation.docs.example is None else {"example": operation.docs.example}
    required = takes is not None or _has_required_properties(operation.body)
    return {"required": required, "content": {JSON: {"schema": schema, **example}, **forms}}


def _build_body_schema(operation: Operation, schemas: SchemaRegistry) -> Schema:
    if operation.unknown is not UnknownNames.REJECT:
        return schemas.register_type(operation.body, "validation", operation.body_limit)
    server_set = operation.server_set.names if operation.server_set else ()
    return schemas.register_type(operation.body, "validation", operation.body_limit, ClosedBody(server_set))


def _has_required_properties(model: Any) -> bool:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return True
    return any(member.is_required() for member in model.model_fields.values())


_VERSION: Final[Mapping[str, Any]] = {
    "description": "Version of the API that the caller expects; the newest if the header is missing.",
    "schema": {"type": "string", "title": "ApiVersion", "enum": list(SUPPORTED)},
    "example": SUPPORTED[-1],
}


def build_query_parameters(operation: Operation, schemas: SchemaRegistry) -> list[Schema]:
    """Build the query parameters of an operation, and register the enumerations of their values."""
    declared = [{**one, "in": "query"} for one in operation.docs.query]
    if operation.query is NoQuery:
        return declared
    parameters = [*declared, *schemas.register_query_parameters(operation.query)]
    owner = to_camel_case(operation.name)
    return [{**one, "schema": _build_parameter_schema(one, owner, schemas)} for one in parameters]


def _build_parameter_schema(parameter: Schema, operation_id: str, schemas: SchemaRegistry) -> Schema:
    limited: Schema = add_length_limits(parameter["schema"], LONGEST_PARAMETER)
    return schemas.replace_enums_by_references(limited, operation_id[0].upper() + operation_id[1:], parameter["name"])


def build_header_parameters(operation: Operation, schemas: SchemaRegistry) -> list[Schema]:
    """Build the header parameters of an operation, and register the enumerations of their values."""
    return [
        {
            **header,
            "name": name,
            "in": "header",
            "required": False,
            "schema": schemas.replace_enums_by_references(
                add_length_limits(header["schema"], LONGEST_PARAMETER), "", name
            ),
        }
        for name, header in _map_header_objects_by_name(operation).items()
    ]


def _map_header_objects_by_name(operation: Operation) -> dict[str, Mapping[str, Any]]:
    return {**operation.docs.headers, **({HEADER: _VERSION} if operation.is_versioned else {})}
