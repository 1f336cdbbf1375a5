"""Approved warm queries as separate operations: concrete path, declared parameters, known columns."""

import re
from collections.abc import Sequence
from typing import Any, Final

from shared.catalog.models import ParameterType, QueryParameter, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.http.operations import Operation
from shared.openapi.paths import LONGEST_PARAMETER, build_operation
from shared.openapi.schemas import Schema, SchemaRegistry, limit_lengths
from shared.timestamps import rfc3339
from shared.warm_queries.ports import Column

PARAMETER_PREFIX: Final = "p."
_TYPES: Final[dict[str, Schema]] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "real": {"type": "number", "format": "double"},
    "decimal": {"type": ["number", "string"]},
    "string": {"type": "string"},
    "datetime": {"type": "string", "format": "date-time"},
    "timespan": {"type": "string"},
    "guid": {"type": "string", "format": "uuid"},
}
_PARAMETERS: Final[dict[ParameterType, Schema]] = {
    ParameterType.BOOL: {"type": "boolean"},
    ParameterType.INT: {"type": "integer", "format": "int32"},
    ParameterType.LONG: {"type": "integer", "format": "int64"},
    ParameterType.REAL: {"type": "number", "format": "double"},
    ParameterType.DECIMAL: {"type": "number"},
    ParameterType.DATETIME: {"type": "string", "format": "date-time"},
    ParameterType.GUID: {"type": "string", "format": "uuid"},
}


def build_query_path(query: WarmQuery) -> str:
    """Return the path of a query."""
    return f"/oi-api/warm-queries/{query.lookup}"


def build_query_operation(
    execute: Operation, stored: CatalogEntry[WarmQuery], columns: Sequence[Column] | None, schemas: SchemaRegistry
) -> Schema:
    """Return the Operation Object of an approved query.

    Args:
        execute: operation that executes any query.
        stored: catalog entry of the query.
        columns: columns of the query, None if unknown.
        schemas: registry of named schemas.
    """
    query = stored.value
    operation_object = build_operation(execute, schemas)
    general = [parameter for parameter in operation_object["parameters"] if parameter["in"] == "query"]
    operation_object["operationId"] = f"warmQuery_{re.sub(r'[^A-Za-z0-9]', '_', query.lookup)}"
    operation_object["summary"] = query.name
    operation_object["description"] = _build_description(query)
    operation_object["parameters"] = [*general, *map(_build_parameter, query.parameters)]
    if columns is not None:
        operation_object["responses"]["200"]["content"]["application/json"] = _type_rows(operation_object, columns)
    return operation_object


def _build_description(query: WarmQuery) -> str:
    sentences = [query.description] if query.description else []
    approval = query.approval
    if approval is not None:
        sentences.append(f"Approved by {approval.approved_by} at {rfc3339(approval.approved_at)}.")
    return "\n\n".join(sentences)


def build_parameter_schema(parameter: QueryParameter) -> Schema:
    """Return the JSON schema of a declared parameter's values."""
    schema = dict(_PARAMETERS.get(parameter.type, {"type": "string"}))
    if not parameter.required and parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _build_parameter(parameter: QueryParameter) -> Schema:
    return {
        "name": f"{PARAMETER_PREFIX}{parameter.name}",
        "in": "query",
        "required": parameter.required,
        "description": f"Kusto type `{parameter.type}`.",
        "schema": limit_lengths(build_parameter_schema(parameter), LONGEST_PARAMETER),
    }


def _type_rows(operation_object: Schema, columns: Sequence[Column]) -> Schema:
    """Return the JSON form of the reply with typed columns."""
    form: dict[str, Any] = operation_object["responses"]["200"]["content"]["application/json"]
    row = {"type": "object", "properties": {column.name: _build_column_schema(column) for column in columns}}
    rows = {"type": "object", "properties": {"results": {"type": "array", "items": row}}}
    return {"schema": {"allOf": [form["schema"], rows]}, "example": _build_example(form["example"], columns)}


def _build_column_schema(column: Column) -> Schema:
    schema = _TYPES.get(column.type)
    return {} if schema is None else {"anyOf": [schema, {"type": "null"}]}


def _build_example(example: dict[str, Any], columns: Sequence[Column]) -> dict[str, Any]:
    column_objects = [{"name": column.name, "type": column.type} for column in columns]
    return {**example, "results": [], "rowCount": 0, "columns": column_objects}
