"""Partial updates: patch operations of the REST reference on paths in objects and arrays."""

import copy
from collections.abc import Mapping
from typing import Any

from emulators.cosmos.sql_statement import parse_statement
from emulators.cosmos.wire import CosmosError

_MAX_OPERATIONS = 10


def apply_patch(document: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Return a document with a patch applied.

    Args:
        document: The document, which is not changed.
        patch: The `operations`, and an optional `condition` such as `FROM c WHERE c.n = 1`.

    Raises:
        CosmosError: 400 if the patch is invalid, 412 if its condition is false.
    """
    if not isinstance(patch, dict) or not isinstance(patch.get("operations"), list):
        raise CosmosError(400, "A patch has a list of operations.")
    if not 0 < len(patch["operations"]) <= _MAX_OPERATIONS:
        raise CosmosError(400, f"The number of patch operations must be between 1 and {_MAX_OPERATIONS}.")
    condition = patch.get("condition")
    if condition and not parse_statement(f"SELECT * {condition}", {}).matches(document):
        raise CosmosError(412, "The condition of the patch is not met.")
    patched = copy.deepcopy(dict(document))
    for operation in patch["operations"]:
        _apply(patched, operation)
    return patched


def _apply(document: dict[str, Any], operation: Mapping[str, Any]) -> None:
    kind, path = operation.get("op"), operation.get("path")
    if kind == "move":
        value = _take(document, operation.get("from"))
        _put(document, path, value, insert=True)
    elif kind in ("add", "set"):
        _put(document, path, operation.get("value"), insert=kind == "add")
    elif kind == "replace":
        _take(document, path, is_read_only=True)
        _put(document, path, operation.get("value"), insert=False)
    elif kind == "remove":
        _take(document, path)
    elif kind == "incr":
        _put(document, path, _add_numbers(document, path, operation.get("value")), insert=False)
    else:
        raise CosmosError(400, f"The patch operation '{kind}' is invalid.")


def _add_numbers(document: dict[str, Any], path: object, by: object) -> float:
    parent, name = _parent(document, path)
    before = parent.get(name, 0) if isinstance(parent, dict) else parent[_index(parent, name)]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in (before, by)):
        raise CosmosError(400, f"Only numbers can be incremented: '{path}'.")
    total: float = before + by
    return total


def _parent(document: dict[str, Any], path: object) -> tuple[Any, str]:
    if not isinstance(path, str) or not path.startswith("/"):
        raise CosmosError(400, f"'{path}' is not a path.")
    *parents, name = (part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
    value: Any = document
    for part in parents:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list):
            value = value[_index(value, part)]
        else:
            raise CosmosError(400, f"The path '{path}' does not exist.")
    if not isinstance(value, dict | list):
        raise CosmosError(400, f"The path '{path}' does not lead into an object or array.")
    return value, name


def _index(values: list[Any], name: str) -> int:
    if not name.isdecimal() or int(name) >= len(values):
        raise CosmosError(400, f"'{name}' is not an index of the array.")
    return int(name)


def _put(document: dict[str, Any], path: object, value: object, *, insert: bool) -> None:
    parent, name = _parent(document, path)
    if isinstance(parent, dict):
        parent[name] = value
    elif insert and (name == "-" or name == str(len(parent))):
        parent.append(value)
    elif insert:
        parent.insert(_index(parent, name), value)
    else:
        parent[_index(parent, name)] = value


def _take(document: dict[str, Any], path: object, *, is_read_only: bool = False) -> Any:
    parent, name = _parent(document, path)
    if isinstance(parent, list):
        index = _index(parent, name)
        return parent[index] if is_read_only else parent.pop(index)
    if name not in parent:
        raise CosmosError(400, f"The path '{path}' does not exist.")
    return parent[name] if is_read_only else parent.pop(name)
