"""Approved warm queries (saved KQL queries) as separate operations: concrete path, parameters, known columns."""

import re
from collections.abc import Sequence
from typing import Any, Final

from shared.catalog.models import ParameterType, QueryParameter, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.openapi.paths import LONGEST_PARAMETER
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
_EXAMPLES: Final[dict[str, Any]] = {
    "bool": True,
    "int": 42,
    "long": 42,
    "real": 4.2,
    "decimal": "4.2",
    "string": "rig-1",
    "datetime": "2026-01-05T08:00:00.000000Z",
    "timespan": "00:05:00",
    "guid": "74be27de-1e4e-49d9-b579-fe0b331d3642",
    "dynamic": {"Pressure": 4.2},
}
"""Examples of values by Kusto type."""
_ANSWER, _SUMMARY, _ROWS = "QueryAnswer", "QuerySummary", "results"
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
    """Build the URL path at which an approved query is executed."""
    return f"/oi-api/warm-queries/{query.lookup}"


def build_query_operation(execute: Schema, stored: CatalogEntry[WarmQuery], columns: Sequence[Column] | None) -> Schema:
    """Build the Operation Object of an approved query.

    Args:
        execute: Operation Object of the operation that executes any query; this function does not change it.
        stored: catalog entry of the query.
        columns: columns of the query, None if unknown.
    """
    query = stored.value
    operation_object = dict(execute)
    general = [parameter for parameter in operation_object["parameters"] if parameter["in"] != "path"]
    operation_object["operationId"] = f"warmQuery_{re.sub(r'[^A-Za-z0-9]', '_', query.lookup)}"
    operation_object["summary"] = query.name
    operation_object["description"] = _build_description(query)
    operation_object["parameters"] = [*general, *map(_build_parameter, query.parameters)]
    if columns is not None:
        responses = operation_object["responses"]
        content = {**responses["200"]["content"], "application/json": _build_reply_form(operation_object, columns)}
        operation_object["responses"] = {**responses, "200": {**responses["200"], "content": content}}
    return operation_object


def _build_description(query: WarmQuery) -> str:
    sentences = [query.description] if query.description else []
    approval = query.approval
    if approval is not None:
        sentences.append(f"Approved by {approval.approved_by} at {rfc3339(approval.approved_at)}.")
    return "\n\n".join(sentences)


def build_parameter_schema(parameter: QueryParameter) -> Schema:
    """Build the JSON schema for the values of a declared query parameter."""
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


def register_query_summary(schemas: SchemaRegistry) -> None:
    """Register the schema of a query's result without its rows, which each query with known columns completes.

    Code generators merge properties of the same name of two schemas in different ways, so the rows have one schema
    only.
    """
    answer = schemas.named[_ANSWER]
    members = {name: schema for name, schema in answer["properties"].items() if name != _ROWS}
    required = [name for name in answer["required"] if name != _ROWS]
    about = {"title": _SUMMARY, "description": "Result of a query without its rows."}
    schemas.named[_SUMMARY] = {**answer, **about, "properties": members, "required": required}


def _build_reply_form(operation_object: Schema, columns: Sequence[Column]) -> Schema:
    """Build the schema of the query's JSON reply, whose rows have the types of the columns."""
    form: dict[str, Any] = operation_object["responses"]["200"]["content"]["application/json"]
    names = [column.name for column in columns]
    row = {
        "type": "object",
        "title": "Row",
        "properties": {column.name: _build_column_schema(column) for column in columns},
        **({"required": names} if names else {}),
    }
    rows = {"type": "object", "properties": {_ROWS: {"type": "array", "items": row}}, "required": [_ROWS]}
    schema = {"allOf": [{"$ref": f"#/components/schemas/{_SUMMARY}"}, rows]}
    return {"schema": schema, "example": _build_example_reply(form["example"], operation_object["summary"], columns)}


def _build_column_schema(column: Column) -> Schema:
    schema = _TYPES.get(column.type)
    return {} if schema is None else {"anyOf": [schema, {"type": "null"}]}


def _build_example_reply(example: dict[str, Any], name: str, columns: Sequence[Column]) -> dict[str, Any]:
    column_objects = [{"name": column.name, "type": column.type} for column in columns]
    row = {column.name: _EXAMPLES.get(column.type) for column in columns}
    return {**example, "query": name, _ROWS: [row], "rowCount": 1, "columns": column_objects}
