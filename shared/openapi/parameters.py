"""Query and header parameters of OpenAPI operations."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.http.operations import NoQuery, Operation
from shared.http.versions import HEADER, SUPPORTED
from shared.openapi.paths import LONGEST_PARAMETER, to_camel_case
from shared.openapi.schemas import Schema, SchemaRegistry, limit_lengths

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
