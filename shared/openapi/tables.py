"""Published tables as operations of their own: concrete paths, the exposed verbs only."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.catalog.models import Container, Database, DatabaseAccess, DataStore, Verb
from shared.catalog.snapshot import Catalog
from shared.http.operations import Operation
from shared.openapi.paths import build_operation, to_camel_case
from shared.openapi.schemas import Schema, SchemaRegistry

OPERATIONS: Final[Mapping[Verb, str]] = {
    Verb.LIST: "list_documents",
    Verb.READ: "read_document",
    Verb.CREATE: "create_document",
    Verb.REPLACE: "replace_document",
    Verb.DELETE: "delete_document",
}
"""The operations that those of tables are instances of."""

KEY_PATH: Final = "x-partition-key-path"
"""Tells programs where in a document its partition key stands."""

_PLACES: Final = frozenset({"store", "database", "table"})
_KEY: Final = "partitionKey"
_EXAMPLE_ID: Final = "wo-1042"
_EXAMPLE_KEY: Final = "l1"


def build_table_paths(
    allowed: Mapping[str, Operation], catalog: Catalog, schemas: SchemaRegistry
) -> dict[str, Mapping[str, Schema]]:
    """Return the Path Items of the tables that a caller may use.

    A table counts when its container is provisioned and its database grants access to documents.

    Args:
        allowed: the operations that the caller may use, by name.
        catalog: the workspace.
        schemas: takes the named schemas.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for store, database, container in _published(catalog):
        for verb in sorted(container.expose):
            operation = allowed.get(OPERATIONS[verb])
            if operation is not None:
                names = {"store": store.lookup, "database": database.lookup, "table": container.name}
                made = _operation(operation, names, container, schemas)
                paths.setdefault(_path(operation, names), {})[operation.method.lower()] = made
    return dict(paths)


def _published(catalog: Catalog) -> Iterator[tuple[DataStore, Database, Container]]:
    for stored in catalog.data_stores.values():
        for database in stored.value.databases:
            if database.access is DatabaseAccess.GRANTED:
                yield from ((stored.value, database, one) for one in database.containers if one.provisioned)


def _path(operation: Operation, names: Mapping[str, str]) -> str:
    path = f"/{operation.route}"
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _operation(operation: Operation, names: Mapping[str, str], container: Container, schemas: SchemaRegistry) -> Schema:
    made = build_operation(operation, schemas)
    # Names hold no dots: no two tables share an operationId.
    made["operationId"] = ".".join((to_camel_case(operation.name), *names.values()))
    made["summary"] = f"{operation.summary.rstrip('.')}: {container.name}."
    made["description"] = (
        f"{made['description']} Partitioned on `{container.partition_key_path}`; {container.data_class}."
    )
    made["parameters"] = [
        _parameter(parameter, operation, container)
        for parameter in made["parameters"]
        if parameter["name"] not in _PLACES
    ]
    made[KEY_PATH] = container.partition_key_path
    _show(made, container)
    return made


def _parameter(parameter: Schema, operation: Operation, container: Container) -> Schema:
    """Return a parameter; the partition key is required where nothing else tells it."""
    single = "{documentId}" in operation.route
    told = container.partition_key_path == "/id" or operation.method == "PUT"
    return {**parameter, "required": True} if parameter["name"] == _KEY and single and not told else parameter


def _show(made: Schema, container: Container) -> None:
    """Give the bodies an example that has the table's own partition key."""
    example = _example(container.partition_key_path)
    if "requestBody" in made:
        made["requestBody"]["content"]["application/json"]["example"] = example
    for status, reply in made["responses"].items():
        form = reply.get("content", {}).get("application/json")
        if form is not None and status in ("200", "201"):
            listed = "documents" in form["example"]
            form["example"] = {**form["example"], "documents": [example]} if listed else example


def _example(path: str) -> dict[str, Any]:
    first, *inner = path.split("/")[1:]
    value: Any = {inner[0]: _EXAMPLE_KEY} if inner else _EXAMPLE_KEY
    return {first: value} | {"id": _EXAMPLE_ID} if first == "id" else {"id": _EXAMPLE_ID, first: value}
