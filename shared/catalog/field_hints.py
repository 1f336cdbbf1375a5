"""Which fields the workspace document has at a place, to name the one that was probably meant."""

from functools import cache
from typing import Any

from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import Path
from shared.nearest_names import nearest_name


def suggest_field(location: Path) -> str | None:
    """Return the known field that an unknown one most resembles, None when none does.

    Args:
        location: pydantic's location of the unknown field, union tags included.
    """
    return nearest_name(str(location[-1]), _fields(location[:-1]))


def _fields(location: Path) -> list[str]:
    schema: dict[str, Any] = _schema()
    for step in location:
        schema = _down(_deref(schema), step)
    return list(_deref(schema).get("properties", {}))


def _down(schema: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return the schema one step of a location further down; empty where the location leaves the schema."""
    found: dict[str, Any] = {}
    if isinstance(step, int):
        found = schema.get("items", {})
    elif "discriminator" in schema:
        found = {"$ref": schema["discriminator"]["mapping"].get(step, "")}
    else:
        found = schema.get("properties", {}).get(step, {})
    return found


def _deref(schema: dict[str, Any]) -> dict[str, Any]:
    optional = [branch for branch in schema.get("anyOf", ()) if "$ref" in branch]
    reference = str((optional[0] if optional else schema).get("$ref", ""))
    found: dict[str, Any] = _schema()["$defs"].get(reference.rpartition("/")[2], schema)
    return found


@cache
def _schema() -> dict[str, Any]:
    return WorkspaceDocument.model_json_schema()
