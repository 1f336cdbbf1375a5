"""Compact forms of JSON schemas for tool lists, which an assistant reads in full before each conversation.

Separate from ``transport`` because it is pure computation that does not need the SDK.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

_VALUES: Final = frozenset({"const", "default", "enum", "examples", "required"})
"""Keywords that contain values, not schemas."""

_NAMED: Final = frozenset({"properties", "$defs"})
"""Keywords that contain schemas by name."""

_INPUT_NOISE: Final = frozenset({"examples", "format", "maxLength", "minLength", "pattern", "title"})
"""Keywords of arguments that a description with an example makes unnecessary; the service checks all rules."""

_OUTPUT_KEYWORDS: Final = frozenset({"allOf", "anyOf", "const", "enum", "items", "oneOf", "properties", "type"})
"""Keywords that a result's schema keeps: structure and types."""


def compact_input(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments without titles, patterns, lengths and separate examples."""
    compacted = _compact_schema(schema, lambda keyword: keyword not in _INPUT_NOISE)
    compacted.pop("description", None)
    return {keyword: value for keyword, value in compacted.items() if value != []}


def compact_output(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's result with the types of its properties; named types are only objects or values."""
    named = schema.get("$defs", {})
    return _compact_schema(_replace_references(schema, named), _OUTPUT_KEYWORDS.__contains__)


def _replace_references(value: Any, named: Mapping[str, Any]) -> Any:
    """Return a copy of a schema with the type of each referenced schema instead of the reference."""
    if isinstance(value, list):
        return [_replace_references(each, named) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "$ref" in value:
        kind = named.get(value["$ref"].rpartition("/")[2], {}).get("type")
        return {} if kind is None else {"type": kind}
    return {keyword: _replace_references(each, named) for keyword, each in value.items() if keyword != "$defs"}


def _compact_schema(schema: Mapping[str, Any], is_kept: Callable[[str], bool]) -> dict[str, Any]:
    kept = {keyword: value for keyword, value in schema.items() if is_kept(keyword)}
    return _merge_types({keyword: _compact_value(keyword, value, is_kept) for keyword, value in kept.items()})


def _compact_value(keyword: str, value: Any, is_kept: Callable[[str], bool]) -> Any:
    if keyword in _VALUES:
        return value
    if keyword in _NAMED:
        return {name: _compact_schema(each, is_kept) for name, each in value.items()}
    if isinstance(value, Mapping):
        return _compact_schema(value, is_kept)
    if isinstance(value, list):
        return [_compact_schema(each, is_kept) if isinstance(each, Mapping) else each for each in value]
    return value


def _merge_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Merge alternative schemas, such as text or null, into one schema with a list of types, if only one has rules."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or not all(isinstance(each.get("type"), str) for each in choices):
        return schema
    detailed = [each for each in choices if len(each) > 1]
    if len(detailed) > 1:
        return schema
    others = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    # Keywords of one type do not apply to values of another, except these two.
    rules = detailed[0] if detailed else {}
    if {"enum", "const"} & rules.keys():
        return schema
    kinds = list(dict.fromkeys(each["type"] for each in choices))
    return {**rules, "type": kinds if len(kinds) > 1 else kinds[0], **others}
