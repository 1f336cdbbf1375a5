"""OpenAPI operations that no handler declares: operations of approved queries and connections, and event webhooks.

Each approved warm query (saved KQL query) is a separate operation with a concrete path, parameters and known columns.
The telemetry of each connection is posted with a separate operation, with the schema of its signals (payload fields).
The section ``webhooks`` describes the requests that the service sends, one for each event type.
"""

import copy
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from shared.catalog.models import Connection, ParameterType, QueryParameter, SignalDefinition, SignalType, WarmQuery
from shared.catalog.parameters import to_kql_literal
from shared.openapi.paths import LONGEST_PARAMETER, to_camel_case
from shared.openapi.schemas import Schema, SchemaRegistry, add_length_limits
from shared.telemetry.pointers import parse_pointer
from shared.timestamps import format_rfc3339
from shared.warm_queries.ports import Column
from shared.webhooks.event_data import DESCRIPTIONS, EventDescription
from shared.webhooks.events import WebhookEventType

PARAMETER_PREFIX: Final = "p."
_KQL_TYPES: Final[dict[str, Schema]] = {
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
_KQL_EXAMPLES: Final[dict[str, Any]] = {
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


def build_query_url_path(query: WarmQuery) -> str:
    """Build the URL path at which an approved query is executed."""
    return f"/oi-api/warm-queries/{query.lookup}"


def build_query_operation(
    execute_operation_object: Schema, query: WarmQuery, operation_id: str, columns: Sequence[Column] | None
) -> Schema:
    """Build the Operation Object of an approved query.

    Args:
        execute_operation_object: Operation Object of the operation that executes any query; this function does not
            change it.
        query: the query.
        operation_id: id of the operation, unique in the document.
        columns: columns of the query, None if unknown.
    """
    operation_object = dict(execute_operation_object)
    general = [parameter for parameter in operation_object["parameters"] if parameter["in"] != "path"]
    operation_object["operationId"] = operation_id
    operation_object["summary"] = query.name
    operation_object["description"] = _build_query_description(query)
    operation_object["parameters"] = [*general, *map(_build_parameter_object, query.parameters)]
    if columns is not None:
        responses = operation_object["responses"]
        content = {
            **responses["200"]["content"],
            "application/json": _build_reply_media_type(operation_object, columns),
        }
        operation_object["responses"] = {**responses, "200": {**responses["200"], "content": content}}
    return operation_object


def _build_query_description(query: WarmQuery) -> str:
    sentences = [query.description] if query.description else []
    approval = query.approval
    if approval is not None:
        sentences.append(f"Approved by {approval.approved_by} at {format_rfc3339(approval.approved_at)}.")
    return "\n\n".join(sentences)


def build_query_parameter_schema(parameter: QueryParameter) -> Schema:
    """Build the JSON schema for the values of a declared parameter in the query string, with its default if valid."""
    schema = dict(_PARAMETERS.get(parameter.type, {"type": "string"}))
    if parameter.default is not None and _is_default_valid(parameter):
        default = _DEFAULT_CONVERTERS.get(parameter.type, str)(parameter.default)
        if default is not None:
            schema["default"] = default
    return schema


def must_send_parameter(parameter: QueryParameter) -> bool:
    """Return whether a caller must send a declared parameter: it has no default, or an invalid one."""
    return parameter.is_required or not _is_default_valid(parameter)


def _is_default_valid(parameter: QueryParameter) -> bool:
    """Return whether the default has the parameter's type; an earlier version can have stored another one."""
    try:
        to_kql_literal(parameter.type, parameter.default)
    except ValueError:
        return False
    return True


def _convert_decimal_default(value: Any) -> float | None:
    """Convert a decimal to a JSON number; return None if the number would lose digits of the decimal."""
    number = float(value)
    return number if Decimal(repr(number)) == Decimal(str(value)) else None


def _convert_dynamic_default(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_DEFAULT_CONVERTERS: Final[Mapping[ParameterType, Callable[[Any], Any]]] = {
    ParameterType.BOOL: lambda value: str(value).lower() == "true",
    ParameterType.INT: int,
    ParameterType.LONG: int,
    ParameterType.REAL: float,
    ParameterType.DECIMAL: _convert_decimal_default,
    ParameterType.GUID: lambda value: str(uuid.UUID(value)),
    ParameterType.DYNAMIC: _convert_dynamic_default,
}
"""Converters of valid defaults, which can be text or JSON values, to the type of the parameter's schema."""


def _build_parameter_object(parameter: QueryParameter) -> Schema:
    return {
        "name": f"{PARAMETER_PREFIX}{parameter.name}",
        "in": "query",
        "required": must_send_parameter(parameter),
        "description": f"Kusto type `{parameter.type}`.",
        "schema": add_length_limits(build_query_parameter_schema(parameter), LONGEST_PARAMETER),
    }


def register_query_summary_schema(schemas: SchemaRegistry) -> None:
    """Register the schema of a query result without its rows, which the results of all queries have in common.

    The schema of each query with known columns extends this schema by the rows. The rows must not be in both schemas,
    because code generators merge properties of the same name in different ways.
    """
    answer = schemas.named[_ANSWER]
    members = {name: schema for name, schema in answer["properties"].items() if name != _ROWS}
    required = [name for name in answer["required"] if name != _ROWS]
    about = {"title": _SUMMARY, "description": "Result of a query without its rows."}
    schemas.named[_SUMMARY] = {**answer, **about, "properties": members, "required": required}


def _build_reply_media_type(operation_object: Schema, columns: Sequence[Column]) -> Schema:
    """Build the Media Type Object of the query's JSON reply, whose rows have the types of the columns."""
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
    schema = _KQL_TYPES.get(column.type)
    return {} if schema is None else {"anyOf": [schema, {"type": "null"}]}


def _build_example_reply(general_example: dict[str, Any], query_name: str, columns: Sequence[Column]) -> dict[str, Any]:
    column_objects = [{"name": column.name, "type": column.type} for column in columns]
    row = {column.name: _KQL_EXAMPLES.get(column.type) for column in columns}
    return {**general_example, "query": query_name, _ROWS: [row], "rowCount": 1, "columns": column_objects}


_SIGNAL_TYPES: Final[dict[SignalType, Schema]] = {
    SignalType.REAL: {"type": "number", "format": "double"},
    SignalType.LONG: {"type": "integer", "format": "int64"},
    SignalType.BOOL: {"type": "boolean"},
    SignalType.STRING: {"type": "string"},
    SignalType.DATETIME: {"type": "string", "format": "date-time"},
}
_SIGNAL_EXAMPLES: Final[dict[SignalType, Any]] = {
    SignalType.REAL: 4.2,
    SignalType.LONG: 42,
    SignalType.BOOL: True,
    SignalType.STRING: "running",
    SignalType.DATETIME: "2026-01-05T08:00:00Z",
}
UNIT: Final = "x-unit"
"""OpenAPI extension property: unit of a signal's values."""


def build_telemetry_url_path(connection: Connection) -> str:
    """Build the URL path to which callers post the telemetry of a connection."""
    return f"/oi-api/telemetry/{connection.lookup}"


def build_telemetry_operation(accept_operation_object: Schema, connection: Connection, operation_id: str) -> Schema:
    """Build the Operation Object for posting telemetry of a connection with signals (typed payload fields).

    Args:
        accept_operation_object: Operation Object of the operation that accepts messages for any connection; it is not
            changed.
        connection: connection that declares signals (typed payload fields).
        operation_id: id of the operation, unique in the document.
    """
    body = accept_operation_object["requestBody"]
    form = body["content"]["application/json"]
    message, messages = (_add_signals_to_schema(one, connection) for one in form["schema"]["oneOf"])
    schema = {**form["schema"], "oneOf": [message, messages]}
    content = {**body["content"], "application/json": {"schema": schema, "example": _build_example_message(connection)}}
    return {
        **accept_operation_object,
        "operationId": operation_id,
        "summary": f"Accept telemetry: {connection.name}.",
        "parameters": [each for each in accept_operation_object["parameters"] if each["in"] != "path"],
        "requestBody": {**body, "content": content},
    }


def _add_signals_to_schema(schema: Schema, connection: Connection) -> Schema:
    """Add the connection's signals (payload fields) to the JSON schema of a message or of an array of messages."""
    if "items" in schema:
        return {**schema, "items": _add_signals_to_schema(schema["items"], connection)}
    declared = copy.deepcopy(schema)
    for signal in _list_top_level_signals(connection):
        parent = declared
        *objects, name = parse_pointer(signal.pointer)
        for token in objects:
            parent = parent.setdefault("properties", {}).setdefault(token, {})
            parent.setdefault("type", "object")
        parent.setdefault("properties", {})[name] = build_signal_schema(signal)
    return declared


def _list_top_level_signals(connection: Connection) -> list[SignalDefinition]:
    """List the connection's signals, except those in elements of arrays, which a JSON schema cannot describe."""
    return [
        signal
        for signal in connection.signals
        if not any(token.isdecimal() for token in parse_pointer(signal.pointer)[1:])
    ]


def build_signal_schema(signal: SignalDefinition) -> Schema:
    """Build the JSON schema for the values of a signal (payload field).

    The range is a part of the description, because the service accepts values outside of it.
    """
    schema = {**_SIGNAL_TYPES[signal.type], "description": describe_signal(signal)}
    return schema if signal.unit is None else {**schema, UNIT: signal.unit}


def describe_signal(signal: SignalDefinition) -> str:
    """Write a text about a signal (payload field): description (or name if it has none), unit and expected range."""
    sentences = [signal.description.rstrip(".") if signal.description else f"Signal {signal.name}"]
    if signal.unit is not None:
        sentences.append(f"Unit: {signal.unit}")
    if signal.min is not None and signal.max is not None:
        sentences.append(f"Expected range: {_format_signal_limit(signal.min)} to {_format_signal_limit(signal.max)}")
    elif signal.min is not None:
        sentences.append(f"Expected minimum: {_format_signal_limit(signal.min)}")
    elif signal.max is not None:
        sentences.append(f"Expected maximum: {_format_signal_limit(signal.max)}")
    return ". ".join(sentences) + "."


def _format_signal_limit(limit: float) -> str:
    """Format the lower or upper limit of a signal's expected range, with all its digits."""
    return repr(limit).removesuffix(".0")


def _build_example_message(connection: Connection) -> dict[str, Any]:
    """Build an example of a telemetry message with a value for each signal of the connection."""
    example: dict[str, Any] = {}
    for signal in _list_top_level_signals(connection):
        parent: Any = example
        *objects, name = parse_pointer(signal.pointer)
        for token in objects:
            parent = parent.setdefault(token, {}) if isinstance(parent, dict) else {}
        if isinstance(parent, dict):
            parent[name] = _choose_example_value(signal)
    return example


def _choose_example_value(signal: SignalDefinition) -> Any:
    """Return an example value of a signal: about the middle of its expected range, or a fixed value of its type."""
    limits = [limit for limit in (signal.min, signal.max) if limit is not None]
    if not limits:
        return _SIGNAL_EXAMPLES[signal.type]
    low, high = min(limits), max(limits)
    middle = float(f"{(low + high) / 2:.6g}")
    # In a narrow range, six digits can lie outside.
    example = min(max(middle, low), high)
    return round(example) if signal.type is SignalType.LONG else example


GROUP: Final = "webhooks"
_EXAMPLE_TIME: Final = "2026-01-05T08:00:00.000000Z"
_HEADERS: Final = (
    ("webhook-id", "Id of the message, the same in every attempt; ignore a message whose id was processed."),
    ("webhook-timestamp", "Time of the attempt in seconds since 1970; reject a message that is older than 5 minutes."),
    (
        "webhook-signature",
        "Signatures `v1,<base64>` separated by spaces: HMAC-SHA256 of id, timestamp and body, joined by dots.",
    ),
)
_HEADER_EXAMPLES: Final = (
    "msg_b2nq5tcyvxk4wdz7g3mhpf6rsajue2lo",
    "1767600000",
    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
)


def build_event_webhooks(schemas: SchemaRegistry) -> dict[str, Schema]:
    """Return the section ``webhooks``: a Path Item for each event type; register the schemas of the events' data."""
    return {
        kind.value: {"post": _build_webhook_operation_object(kind, one, schemas)} for kind, one in DESCRIPTIONS.items()
    }


def _build_webhook_operation_object(
    kind: WebhookEventType, described: EventDescription, schemas: SchemaRegistry
) -> Schema:
    name = "receive_" + kind.value.replace(".", "_").replace("-", "_")
    event: dict[str, Any] = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": kind.value},
            "timestamp": {"type": "string", "format": "date-time", "description": "Time of the change."},
            "data": schemas.register_type(described.data, "serialization"),
        },
        "required": ["type", "timestamp", "data"],
    }
    example = {"type": kind.value, "timestamp": _EXAMPLE_TIME, "data": described.example}
    return {
        "operationId": to_camel_case(name),
        "tags": [GROUP],
        "summary": described.text,
        "description": "Sent to webhooks of the format `standard`, signed by the Standard Webhooks specification.",
        "parameters": [
            {
                "name": header,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
                "example": sample,
            }
            for (header, description), sample in zip(_HEADERS, _HEADER_EXAMPLES, strict=True)
        ],
        "requestBody": {
            "required": True,
            "description": "The event.",
            "content": {"application/json": {"schema": event, "example": example}},
        },
        "responses": {
            "2XX": {"description": "The message was accepted."},
            "410": {"description": "The webhook is disabled; it receives no further messages."},
            "default": {"description": "The message is sent again later, under the same id."},
        },
        "security": [],
    }
