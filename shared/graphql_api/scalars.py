"""Custom scalars: DateTime (RFC 3339 with a time zone) and JSON (any JSON value)."""

import math
from datetime import datetime
from typing import Any, Final

from ariadne import ScalarType
from graphql import (
    BooleanValueNode,
    FloatValueNode,
    GraphQLError,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    StringValueNode,
    ValueNode,
    VariableNode,
)

from shared.timestamps import parse_rfc3339, rfc3339

_MAX_DIGITS: Final = 4_000
"""Approximate maximum that the interpreter parses, as in a JSON body."""

DATE_TIME = ScalarType("DateTime")
JSON = ScalarType("JSON")


@DATE_TIME.serializer
def write_date_time(value: datetime) -> str:
    """Serialise an instant as RFC 3339 in UTC."""
    return rfc3339(value)


@DATE_TIME.value_parser
def read_date_time(value: Any) -> datetime:
    """Parse an instant.

    Raises:
        GraphQLError: if the value is not an RFC 3339 date-time with a time zone.
    """
    if not isinstance(value, str):
        raise GraphQLError("DateTime: must be RFC 3339 text")
    try:
        return parse_rfc3339(value)
    except ValueError as error:
        raise GraphQLError(f"DateTime: {error}") from None


@JSON.value_parser
def read_json(value: Any) -> Any:
    """Return a JSON value unchanged.

    Raises:
        GraphQLError: if the value is NaN or infinite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise GraphQLError("JSON: number is out of the range of a double")
    return value


@JSON.literal_parser
def read_json_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
    """Return the JSON value of a literal in a document.

    Raises:
        GraphQLError: if the literal is an enum value or contains a duplicate member.
    """
    match node:
        case VariableNode():
            return (variables or {}).get(node.name.value)
        case ListValueNode():
            return [read_json_literal(item, variables) for item in node.values]
        case ObjectValueNode():
            return _read_object(node, variables)
        case _:
            return _read_scalar(node)


def _read_scalar(node: ValueNode) -> Any:
    match node:
        case NullValueNode():
            return None
        case StringValueNode() | BooleanValueNode():
            return node.value
        case IntValueNode():
            if len(node.value) > _MAX_DIGITS:
                raise GraphQLError("JSON: number has too many digits", node)
            return int(node.value)
        case FloatValueNode():
            return read_json(float(node.value))
        case _:
            raise GraphQLError("JSON: must be a JSON value", node)


def _read_object(node: ObjectValueNode, variables: dict[str, Any] | None) -> dict[str, Any]:
    members = {field.name.value: read_json_literal(field.value, variables) for field in node.fields}
    if len(members) != len(node.fields):
        raise GraphQLError("JSON: duplicate member", node)
    return members
