"""JSON schemas of Python types; each named type is defined once under ``components``."""

import copy
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE

type Schema = dict[str, Any]
type Mode = Literal["validation", "serialization"]

_TEMPLATE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class ClosedBody:
    """Request body that accepts only the properties of its model.

    Attributes:
        server_set: properties that the service sets; clients may send them back with their current value.
    """

    server_set: Collection[str] = ()

    def build_closed_schema(self, schema: Schema) -> Schema:
        """Return a copy of a body's schema that forbids unknown properties and contains those in ``server_set``."""
        schema_copy: Schema = _forbid_unknown_properties(schema)
        if self.server_set:
            member_schema = {
                "readOnly": True,
                "description": "Set by the service; it may be sent back with its current value.",
            }
            schema_copy["properties"] = {
                **schema_copy["properties"],
                **{name: dict(member_schema) for name in sorted(self.server_set)},
            }
        return schema_copy


class SchemaRegistry:
    """Registry of the named schemas of one OpenAPI document.

    Attributes:
        named: schemas by name.
        problems: HTTP status and error codes of each shared error reply, by name of the reply.
        shown_errors: pairs of error code and HTTP status for which the document needs an example.
    """

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}
        self.problems: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.shown_errors: set[tuple[str, int]] = set()

    def register_problem_and_get_reference(self, status: int, codes: Sequence[str]) -> str:
        """Register the error reply for these codes; return a reference to the reply.

        Operations with the same status and codes share a reply. The name of the reply depends only on status and codes,
        so that the name is the same for all callers.
        """
        phrase = HTTPStatus(status).phrase.replace(" ", "").replace("-", "")
        digest = hashlib.blake2b(" ".join(codes).encode(), digest_size=3).hexdigest()
        name = f"{phrase}.{digest}"
        self.problems[name] = (status, tuple(codes))
        self.shown_errors.update((code, status) for code in codes)
        return f"#/components/responses/{name}"

    def register_type(
        self, python_type: Any, mode: Mode, max_body_bytes: int = 0, closed_body: ClosedBody | None = None
    ) -> Schema:
        """Return the JSON schema of a Python type, and register the named types that the type contains.

        If the type itself is an object with named properties, register it, too, and return a reference to its schema.

        Args:
            python_type: the Python type.
            mode: validation for requests, serialization for replies.
            max_body_bytes: maximum size of the body in bytes, which limits its strings and arrays; 0 if unlimited.
            closed_body: rules for a body that rejects unknown properties; None if the body accepts any property.
        """
        schema_copy = _copy_cached_schema(python_type, mode)
        if max_body_bytes:
            schema_copy = add_length_limits(schema_copy, max_body_bytes)
        if closed_body is not None:
            schema_copy = closed_body.build_closed_schema(schema_copy)
        for name, schema in schema_copy.pop("$defs", {}).items():
            self._add_schema_and_enums(name, schema)
        title = schema_copy.get("title")
        if schema_copy.get("type") == "object" and title and "properties" in schema_copy:
            self._add_schema_and_enums(title, schema_copy)
            return {"$ref": _TEMPLATE.format(model=title)}
        return schema_copy

    def register_query_parameters(self, model: type[BaseModel]) -> list[Schema]:
        """Return the query parameters that a model declares, and register the enumerations that they refer to."""
        schema = _copy_cached_schema(model, "validation")
        for name, definition in schema.get("$defs", {}).items():
            self._add_schema_and_enums(name, definition)
        return _to_query_parameters(schema, {})

    def replace_enums_by_references(self, schema: Schema, owner_name: str, property_name: str) -> Schema:
        """Return a property's schema with references in place of its enumerations, and register these by name.

        Code generators then write one type for each enumeration, and its name is the same wherever it is used.

        Args:
            schema: schema of the property.
            owner_name: name of the type or operation that has the property.
            property_name: name of the property.
        """
        if "anyOf" in schema:
            return {
                **schema,
                "anyOf": [
                    self.replace_enums_by_references(each, owner_name, property_name) for each in schema["anyOf"]
                ],
            }
        if len(schema.get("allOf", ())) == 1 and "enum" in schema["allOf"][0]:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            return {**self.replace_enums_by_references(schema["allOf"][0], owner_name, property_name), **rest}
        if "enum" not in schema:
            return schema
        name = schema.get("title", f"{owner_name}{_to_pascal_case(property_name)}")
        rest = {key: value for key, value in schema.items() if key in _BESIDE_REFERENCE}
        self._add_schema(name, {"title": name, **{key: value for key, value in schema.items() if key not in rest}})
        return {"$ref": _TEMPLATE.format(model=name), **rest}

    def _add_schema_and_enums(self, schema_name: str, schema: Schema) -> None:
        """Register the schema of a named type, and the enumerations of its properties."""
        if "properties" in schema:
            schema = {**schema, "properties": self._replace_property_enums(schema_name, schema["properties"])}
        self._add_schema(schema_name, schema)

    def _replace_property_enums(self, owner_name: str, members: Mapping[str, Schema]) -> Schema:
        # The title of a property is derived from its name; only types have titles of their own.
        untitled = {
            member: {key: value for key, value in schema.items() if key != "title" or "enum" not in schema}
            for member, schema in members.items()
        }
        return {
            member: self.replace_enums_by_references(schema, owner_name, member) for member, schema in untitled.items()
        }

    def _add_schema(self, schema_name: str, schema: Schema) -> None:
        # Two types with one name would silently document wrong properties.
        if self.named.setdefault(schema_name, schema) != schema:
            raise ValueError(f"two different types have the schema name {schema_name}; rename one of them")


def build_schema_with_definitions(python_type: Any, mode: Mode) -> Schema:
    """Return the JSON schema of a Python type with its named types under ``$defs``."""
    return copy.deepcopy(_build_cached_schema(python_type, mode, DEFAULT_REF_TEMPLATE))


def list_query_parameters(model: type[BaseModel]) -> list[Schema]:
    """Return the query parameters that a model declares; the schemas of nested types are written inline."""
    schema = _copy_cached_schema(model, "validation")
    parameters = _to_query_parameters(schema, schema.get("$defs", {}))
    for parameter in parameters:
        parameter["schema"].pop("title", None)
    return parameters


def _to_query_parameters(schema: Schema, definitions: Mapping[str, Schema]) -> list[Schema]:
    """Convert the properties of a model's schema to query parameters; see :func:`_to_description_and_schema`."""
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, **_to_description_and_schema(member, definitions)}
        for name, member in schema.get("properties", {}).items()
    ]


def _to_description_and_schema(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return ``description`` and ``schema`` of a query parameter, from the schema of a model's property.

    The returned schema lacks the type null, which a query string cannot contain.

    Args:
        schema: schema of the property.
        definitions: schemas by name. A reference to one of them is replaced by the schema; other references stay.
    """
    description = schema.pop("description", "")
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    schema.pop("title", None)
    if len(choices) > 1:
        value_schema = {**schema, "anyOf": [_inline_reference(choice, definitions) for choice in choices]}
    else:
        value_schema = _inline_reference({**schema, **(choices[0] if choices else {})}, definitions)
    return {**({"description": description} if description else {}), "schema": value_schema}


def _inline_reference(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Replace a schema that is a reference by its definition; return a schema without a definition unchanged."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name not in definitions:
        return schema
    return {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}


def _copy_cached_schema(python_type: Any, mode: Mode) -> Schema:
    return copy.deepcopy(_build_cached_schema(python_type, mode, _TEMPLATE))


def _to_pascal_case(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", name))


@cache
def _build_cached_schema(python_type: Any, mode: Mode, template: str) -> Schema:
    # Documents and tool lists are built for each caller from the same types.
    schema_copy: Schema = TypeAdapter(python_type).json_schema(by_alias=True, ref_template=template, mode=mode)
    _add_integer_formats_and_remove_null_defaults(schema_copy)
    return schema_copy


def _add_integer_formats_and_remove_null_defaults(schema: Any) -> None:
    """Add a format to each integer without one, and remove defaults that are null.

    Generators of typed clients need the format. A default that is null contains no information.
    """
    if isinstance(schema, list):
        for each in schema:
            _add_integer_formats_and_remove_null_defaults(each)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "integer":
        schema.setdefault("format", "int64")
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    for key, each in schema.items():
        if key not in _VALUES:
            _add_integer_formats_and_remove_null_defaults(each)


def _forbid_unknown_properties(schema: Any) -> Any:
    """Return a copy of a schema in which objects with named properties forbid all other properties."""
    if isinstance(schema, list):
        return [_forbid_unknown_properties(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    schema_copy = {key: each if key in _VALUES else _forbid_unknown_properties(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), Mapping) and schema.get("type") == "object":
        schema_copy["additionalProperties"] = False
    return schema_copy


_BESIDE_REFERENCE = frozenset({"default", "deprecated"})
"""Keywords of a property's schema that stay next to a reference, because they do not describe the type of values."""

_VALUES = frozenset({"example", "examples", "default", "const", "enum"})
"""Keywords that contain values, not schemas."""


def add_length_limits(schema: Any, max_length: int) -> Any:
    """Return a copy of a schema with a maximum length for all strings and arrays without a maximum length.

    Strings with a format or with listed values stay unchanged. The maximum number of items of an array is half of
    ``max_length``, because an item and its comma have at least two characters.

    Args:
        schema: schema of a request value.
        max_length: maximum number of characters of the parameter or body that contains the value.
    """
    if isinstance(schema, list):
        return [add_length_limits(each, max_length) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    schema_copy = {key: each if key in _VALUES else add_length_limits(each, max_length) for key, each in schema.items()}
    if schema_copy.get("type") == "string" and not {"enum", "const", "format", "maxLength"} & schema_copy.keys():
        schema_copy["maxLength"] = max_length
    if schema_copy.get("type") == "array" and "maxItems" not in schema_copy:
        schema_copy["maxItems"] = max_length // 2
    return schema_copy
