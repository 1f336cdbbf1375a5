"""Which fields the workspace document has at a place, to name the one that was probably meant."""

from difflib import get_close_matches
from functools import cache
from typing import Any

from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import Path


def nearest_field(location: Path) -> str | None:
    """Return the known field that an unknown one most resembles, None when none does.

    Args:
        location: pydantic's location of the unknown field, union tags included.
    """
    wanted = str(location[-1])
    known = {name.replace("_", "").lower(): name for name in _fields(location[:-1])}
    close = get_close_matches(wanted.replace("_", "").replace("-", "").lower(), known, n=1)
    return known[close[0]] if close else None


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
