"""JSON schemas of Python types; each named type once under ``components``."""

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE

type Schema = dict[str, Any]
type Mode = Literal["validation", "serialization"]

_TEMPLATE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class ClosedBody:
    """Marks a body that accepts only the members of its model.

    Attributes:
        owned: members set by the service; clients may send them back with their current value.
    """

    owned: Collection[str] = ()

    def apply(self, schema: Schema) -> Schema:
        """Return the schema of the body, closed at each level."""
        schema_copy: Schema = _close(schema)
        if self.owned:
            owned_schema = {
                "readOnly": True,
                "description": "Set by the service; it may be sent back with its current value.",
            }
            schema_copy["properties"] = {
                **schema_copy["properties"],
                **{name: dict(owned_schema) for name in sorted(self.owned)},
            }
        return schema_copy


class SchemaRegistry:
    """Named schemas of one document.

    Attributes:
        named: schemas by name.
    """

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def register(self, shape: Any, mode: Mode, longest: int = 0, closed: ClosedBody | None = None) -> Schema:
        """Return the schema of a type, and add the named types in it.

        Args:
            shape: the type.
            mode: validation for requests, serialization for replies.
            longest: maximum size of the body in bytes, 0 if unlimited.
            closed: additional accepted members; None if the body accepts any member.
        """
        schema_copy = _copy_schema(shape, mode)
        if longest:
            schema_copy = limit_lengths(schema_copy, longest)
        if closed is not None:
            schema_copy = closed.apply(schema_copy)
        for name, schema in schema_copy.pop("$defs", {}).items():
            self._add(name, schema)
        title = schema_copy.get("title")
        if schema_copy.get("type") == "object" and title and "properties" in schema_copy:
            self._add(title, schema_copy)
            return {"$ref": _TEMPLATE.format(model=title)}
        return schema_copy

    def _add(self, name: str, schema: Schema) -> None:
        # Two types with one name would silently document wrong members.
        if self.named.setdefault(name, schema) != schema:
            raise ValueError(f"two types have the schema name {name}")


def inline_schema(shape: Any, mode: Mode) -> Schema:
    """Return the schema of a type with its named types under ``$defs``."""
    return copy.deepcopy(_build_schema(shape, mode, DEFAULT_REF_TEMPLATE))


def list_parameters(model: type[BaseModel]) -> list[Schema]:
    """Return the query parameters of a model; nested types are written inline."""
    schema_copy = _copy_schema(model, "validation")
    definitions = schema_copy.get("$defs", {})
    required = schema_copy.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, **_to_parameter(schema, definitions)}
        for name, schema in schema_copy.get("properties", {}).items()
    ]


def _to_parameter(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a property's schema as a parameter; without null, which a query string cannot contain."""
    description = schema.pop("description", "")
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    merged = {**schema, **(choices[0] if choices else {})}
    name = merged.pop("$ref", "").rpartition("/")[2]
    merged = {**definitions.get(name, {}), **merged}
    merged.pop("title", None)
    return {**({"description": description} if description else {}), "schema": merged}


def _copy_schema(shape: Any, mode: Mode) -> Schema:
    return copy.deepcopy(_build_schema(shape, mode, _TEMPLATE))


@cache
def _build_schema(shape: Any, mode: Mode, template: str) -> Schema:
    # Documents and tool lists are built for each caller from the same types.
    schema_copy: Schema = TypeAdapter(shape).json_schema(by_alias=True, ref_template=template, mode=mode)
    _add_formats(schema_copy)
    return schema_copy


def _add_formats(schema: Any) -> None:
    """Add the format of integers for typed clients, and remove null defaults, which add no information."""
    if isinstance(schema, list):
        for each in schema:
            _add_formats(each)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "integer":
        schema.setdefault("format", "int64")
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    for key, each in schema.items():
        if key not in _VALUES:
            _add_formats(each)


def _close(schema: Any) -> Any:
    """Return a schema whose objects with named members accept no other members."""
    if isinstance(schema, list):
        return [_close(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    schema_copy = {key: each if key in _VALUES else _close(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), Mapping) and schema.get("type") == "object":
        schema_copy["additionalProperties"] = False
    return schema_copy


_VALUES = frozenset({"example", "examples", "default", "const", "enum"})
"""Keywords that contain values, not schemas."""


def limit_lengths(schema: Any, longest: int) -> Any:
    """Return a schema whose strings and arrays without a limit are limited by the size of their container.

    Args:
        schema: schema of a request value.
        longest: maximum characters of the parameter or body.
    """
    if isinstance(schema, list):
        return [limit_lengths(each, longest) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    schema_copy = {key: each if key in _VALUES else limit_lengths(each, longest) for key, each in schema.items()}
    if schema_copy.get("type") == "string" and not {"enum", "const", "format", "maxLength"} & schema_copy.keys():
        schema_copy["maxLength"] = longest
    if schema_copy.get("type") == "array" and "maxItems" not in schema_copy:
        schema_copy["maxItems"] = longest // 2
    return schema_copy
