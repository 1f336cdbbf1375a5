"""Separate OpenAPI operation to post a connection's telemetry, with the schema of its signals (payload fields)."""

import copy
import re
from typing import Any, Final

from shared.catalog.models import Connection, SignalDefinition, SignalType
from shared.openapi.schemas import Schema
from shared.telemetry.pointers import compile_pointer

_TYPES: Final[dict[SignalType, Schema]] = {
    SignalType.REAL: {"type": "number", "format": "double"},
    SignalType.LONG: {"type": "integer", "format": "int64"},
    SignalType.BOOL: {"type": "boolean"},
    SignalType.STRING: {"type": "string"},
    SignalType.DATETIME: {"type": "string", "format": "date-time"},
}
_EXAMPLES: Final[dict[SignalType, Any]] = {
    SignalType.REAL: 4.2,
    SignalType.LONG: 42,
    SignalType.BOOL: True,
    SignalType.STRING: "running",
    SignalType.DATETIME: "2026-01-05T08:00:00Z",
}
UNIT: Final = "x-unit"
"""Extension with the unit of a signal's values."""


def build_telemetry_path(connection: Connection) -> str:
    """Build the URL path to which callers post the telemetry of a connection."""
    return f"/oi-api/telemetry/{connection.lookup}"


def build_telemetry_operation(accept: Schema, connection: Connection) -> Schema:
    """Build the Operation Object for posting telemetry of a connection with signals (typed payload fields).

    Args:
        accept: Operation Object of the operation that accepts messages for any connection; it is not changed.
        connection: connection that declares signals (typed payload fields).
    """
    body = accept["requestBody"]
    form = body["content"]["application/json"]
    message, messages = (_add_signals(one, connection) for one in form["schema"]["oneOf"])
    schema = {**form["schema"], "oneOf": [message, messages]}
    content = {**body["content"], "application/json": {"schema": schema, "example": _build_example(connection)}}
    return {
        **accept,
        "operationId": f"telemetry_{re.sub(r'[^A-Za-z0-9]', '_', connection.lookup)}",
        "summary": f"Accept telemetry: {connection.name}.",
        "parameters": [each for each in accept["parameters"] if each["in"] != "path"],
        "requestBody": {**body, "content": content},
    }


def _add_signals(schema: Schema, connection: Connection) -> Schema:
    """Add the connection's signals (payload fields) to the JSON schema of a message or of an array of messages."""
    if "items" in schema:
        return {**schema, "items": _add_signals(schema["items"], connection)}
    declared = copy.deepcopy(schema)
    for signal in _list_members(connection):
        parent = declared
        *objects, name = compile_pointer(signal.pointer)
        for token in objects:
            parent = parent.setdefault("properties", {}).setdefault(token, {})
            parent.setdefault("type", "object")
        parent.setdefault("properties", {})[name] = build_signal_schema(signal)
    return declared


def _list_members(connection: Connection) -> list[SignalDefinition]:
    """List the connection's signals, except those that are elements of arrays, which a schema cannot describe."""
    return [
        signal
        for signal in connection.signals
        if not any(token.isdecimal() for token in compile_pointer(signal.pointer)[1:])
    ]


def build_signal_schema(signal: SignalDefinition) -> Schema:
    """Build the JSON schema of a signal's values.

    The range is a part of the description, because the service accepts values outside of it.
    """
    schema = {**_TYPES[signal.type], "description": describe_signal(signal)}
    return schema if signal.unit is None else {**schema, UNIT: signal.unit}


def describe_signal(signal: SignalDefinition) -> str:
    """Write the description of a signal with its name, unit and expected range."""
    sentences = [signal.description.rstrip(".") if signal.description else f"Signal {signal.name}"]
    if signal.unit is not None:
        sentences.append(f"Unit: {signal.unit}")
    if signal.min is not None and signal.max is not None:
        sentences.append(f"Expected range: {signal.min:g} to {signal.max:g}")
    elif signal.min is not None:
        sentences.append(f"Expected minimum: {signal.min:g}")
    elif signal.max is not None:
        sentences.append(f"Expected maximum: {signal.max:g}")
    return ". ".join(sentences) + "."


def _build_example(connection: Connection) -> dict[str, Any]:
    example: dict[str, Any] = {}
    for signal in _list_members(connection):
        parent: Any = example
        *objects, name = compile_pointer(signal.pointer)
        for token in objects:
            parent = parent.setdefault(token, {}) if isinstance(parent, dict) else {}
        if isinstance(parent, dict):
            parent[name] = _choose_value(signal)
    return example


def _choose_value(signal: SignalDefinition) -> Any:
    limits = [limit for limit in (signal.min, signal.max) if limit is not None]
    if not limits:
        return _EXAMPLES[signal.type]
    middle = sum(limits) / len(limits)
    return round(middle) if signal.type is SignalType.LONG else round(middle, 3)
