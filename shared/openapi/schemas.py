"""JSON schemas of Python types, each named type once under ``components``."""

from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

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

    def of(self, shape: Any, mode: Mode) -> Schema:
        """Return the schema of a type; the named types in it are added, the type itself among them."""
        made = _schema(shape, mode)
        self.named.update(made.pop("$defs", {}))
        title = made.get("title")
        if made.get("type") == "object" and title and "properties" in made:
            self.named[title] = made
            return {"$ref": _TEMPLATE.format(model=title)}
        return made


def inlined(shape: Any, mode: Mode) -> Schema:
    """Return the schema of a type that stands for itself, its named types under ``$defs``."""
    made: Schema = TypeAdapter(shape).json_schema(by_alias=True, mode=mode)
    return made


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
    if merged.get("default", ...) is None:
        merged.pop("default")
    return {**({"description": description} if description else {}), "schema": merged}


def _schema(shape: Any, mode: Mode) -> Schema:
    made: Schema = TypeAdapter(shape).json_schema(
        by_alias=True, ref_template=_TEMPLATE, mode=mode, schema_generator=GenerateJsonSchema
    )
    return made
