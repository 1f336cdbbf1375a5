"""The custom scalars: DateTime is RFC 3339 with a zone, JSON is any JSON value."""

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

_DIGITS: Final = 4_000
"""About as many as the interpreter reads at once, which is what it reads in a body, too."""

DATE_TIME = ScalarType("DateTime")
JSON = ScalarType("JSON")


@DATE_TIME.serializer
def write_date_time(value: datetime) -> str:
    """Return an instant as RFC 3339 in UTC."""
    return rfc3339(value)


@DATE_TIME.value_parser
def read_date_time(value: Any) -> datetime:
    """Return the instant that a text names.

    Raises:
        GraphQLError: it is no RFC 3339 date-time with a zone.
    """
    if not isinstance(value, str):
        raise GraphQLError("DateTime: RFC 3339 text is expected")
    try:
        return parse_rfc3339(value)
    except ValueError as error:
        raise GraphQLError(f"DateTime: {error}") from None


@JSON.value_parser
def read_json(value: Any) -> Any:
    """Return a JSON value as it is.

    Raises:
        GraphQLError: it holds NaN or an infinity.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise GraphQLError("JSON: a number in the range of a double is expected")
    return value


@JSON.literal_parser
def read_json_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
    """Return the JSON value that a literal in a query stands for.

    Raises:
        GraphQLError: it is an enum value, or a field stands in it twice.
    """
    match node:
        case VariableNode():
            return (variables or {}).get(node.name.value)
        case ListValueNode():
            return [read_json_literal(item, variables) for item in node.values]
        case ObjectValueNode():
            return _object(node, variables)
        case _:
            return _plain(node)


def _plain(node: ValueNode) -> Any:
    match node:
        case NullValueNode():
            return None
        case StringValueNode() | BooleanValueNode():
            return node.value
        case IntValueNode():
            if len(node.value) > _DIGITS:
                raise GraphQLError("JSON: a number has too many digits", node)
            return int(node.value)
        case FloatValueNode():
            return read_json(float(node.value))
        case _:
            raise GraphQLError("JSON: a JSON value is expected", node)


def _object(node: ObjectValueNode, variables: dict[str, Any] | None) -> dict[str, Any]:
    members = {field.name.value: read_json_literal(field.value, variables) for field in node.fields}
    if len(members) != len(node.fields):
        raise GraphQLError("JSON: a member stands in it twice", node)
    return members
