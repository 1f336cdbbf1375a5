"""JSON schemas of Python types, each named type once under ``components``."""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE

type Schema = dict[str, Any]
type Mode = Literal["validation", "serialization"]

_TEMPLATE = "#/components/schemas/{model}"


class Schemas:
    """Collects the named schemas of one document.

    Attributes:
        named: schemas by name.
    """

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def of(self, shape: Any, mode: Mode, longest: int = 0) -> Schema:
        """Return the schema of a type; the named types in it are added, the type itself among them.

        Args:
            shape: the type.
            mode: whether it is sent by a client or answered.
            longest: bytes of the body that holds it, 0 where nothing bounds it.
        """
        made = _schema(shape, mode)
        if longest:
            made = bounded(made, longest)
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


def inlined(shape: Any, mode: Mode) -> Schema:
    """Return the schema of a type that stands for itself, its named types under ``$defs``."""
    return copy.deepcopy(_made(shape, mode, DEFAULT_REF_TEMPLATE))


def parameters_of(model: type[BaseModel]) -> list[Schema]:
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


_VALUES = frozenset({"example", "examples", "default", "const", "enum"})
"""Keywords that hold values, not schemas."""


def bounded(schema: Any, longest: int) -> Any:
    """Return a schema whose strings and arrays are no longer than what carries them, where nothing shorter is said.

    Args:
        schema: of what a client sends.
        longest: characters that a parameter or a body has room for.
    """
    if isinstance(schema, list):
        return [bounded(each, longest) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: each if key in _VALUES else bounded(each, longest) for key, each in schema.items()}
    if made.get("type") == "string" and not {"enum", "const", "format", "maxLength"} & made.keys():
        made["maxLength"] = longest
    if made.get("type") == "array" and "maxItems" not in made:
        made["maxItems"] = longest // 2
    return made
