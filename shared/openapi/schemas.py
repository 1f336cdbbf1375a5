"""JSON schemas of Python types, each named type once under ``components``."""

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
    """Says of a body that it takes the members of its model and no others.

    Attributes:
        owned: members that the service sets itself, which clients may send back with their current value.
    """

    owned: Collection[str] = ()

    def apply(self, schema: Schema) -> Schema:
        """Return the schema of the body, closed at each level."""
        made: Schema = _closed(schema)
        if self.owned:
            told = {"readOnly": True, "description": "Set by the service; it may be sent back with its current value."}
            made["properties"] = {**made["properties"], **{name: dict(told) for name in sorted(self.owned)}}
        return made


class SchemaRegistry:
    """Collects the named schemas of one document.

    Attributes:
        named: schemas by name.
    """

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def register(self, shape: Any, mode: Mode, longest: int = 0, closed: ClosedBody | None = None) -> Schema:
        """Return the schema of a type; the named types in it are added, the type itself among them.

        Args:
            shape: the type.
            mode: whether it is sent by a client or answered.
            longest: bytes of the body that holds it, 0 where nothing bounds it.
            closed: what the body takes besides its members; None where it takes anything.
        """
        made = _schema(shape, mode)
        if longest:
            made = limit_lengths(made, longest)
        if closed is not None:
            made = closed.apply(made)
        for name, schema in made.pop("$defs", {}).items():
            self._add(name, schema)
        title = made.get("title")
        if made.get("type") == "object" and title and "properties" in made:
            self._add(title, made)
            return {"$ref": _TEMPLATE.format(model=title)}
        return made

    def _add(self, name: str, schema: Schema) -> None:
        # A document that tells one type's members under another's name would be believed.
        if self.named.setdefault(name, schema) != schema:
            raise ValueError(f"two types are called {name}")


def inline_schema(shape: Any, mode: Mode) -> Schema:
    """Return the schema of a type that stands for itself, its named types under ``$defs``."""
    return copy.deepcopy(_made(shape, mode, DEFAULT_REF_TEMPLATE))


def list_parameters(model: type[BaseModel]) -> list[Schema]:
    """Return the query parameters that a model stands for; its nested types are written out in place."""
    made = _schema(model, "validation")
    definitions = made.get("$defs", {})
    required = made.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, **_parameter(schema, definitions)}
        for name, schema in made.get("properties", {}).items()
    ]


def _parameter(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a property's schema as a parameter: no null, which a query string cannot hold."""
    description = schema.pop("description", "")
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    merged = {**schema, **(choices[0] if choices else {})}
    name = merged.pop("$ref", "").rpartition("/")[2]
    merged = {**definitions.get(name, {}), **merged}
    merged.pop("title", None)
    return {**({"description": description} if description else {}), "schema": merged}


def _schema(shape: Any, mode: Mode) -> Schema:
    return copy.deepcopy(_made(shape, mode, _TEMPLATE))


@cache
def _made(shape: Any, mode: Mode, template: str) -> Schema:
    # A description and a list of tools are made for each caller, of the same types each time.
    made: Schema = TypeAdapter(shape).json_schema(by_alias=True, ref_template=template, mode=mode)
    _complete(made)
    return made


def _complete(schema: Any) -> None:
    """Give integers their format, for typed clients, and drop defaults of null, which say no more than optional."""
    if isinstance(schema, list):
        for each in schema:
            _complete(each)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "integer":
        schema.setdefault("format", "int64")
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    for key, each in schema.items():
        if key not in _VALUES:
            _complete(each)


def _closed(schema: Any) -> Any:
    """Return a schema whose objects with named members take no other members."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: each if key in _VALUES else _closed(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), Mapping) and schema.get("type") == "object":
        made["additionalProperties"] = False
    return made


_VALUES = frozenset({"example", "examples", "default", "const", "enum"})
"""Keywords that hold values, not schemas."""


def limit_lengths(schema: Any, longest: int) -> Any:
    """Return a schema whose strings and arrays are no longer than what carries them, where nothing shorter is said.

    Args:
        schema: of what a client sends.
        longest: characters that a parameter or a body has room for.
    """
    if isinstance(schema, list):
        return [limit_lengths(each, longest) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: each if key in _VALUES else limit_lengths(each, longest) for key, each in schema.items()}
    if made.get("type") == "string" and not {"enum", "const", "format", "maxLength"} & made.keys():
        made["maxLength"] = longest
    if made.get("type") == "array" and "maxItems" not in made:
        made["maxItems"] = longest // 2
    return made
