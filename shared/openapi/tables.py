"""Published tables as separate operations: concrete paths, exposed verbs only."""

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
"""Operation of each verb."""

KEY_PATH: Final = "x-partition-key-path"
"""Extension with the path of the partition key in a document."""

_PATH_NAMES: Final = frozenset({"store", "database", "table"})
_KEY: Final = "partitionKey"
_EXAMPLE_ID: Final = "wo-1042"
_EXAMPLE_KEY: Final = "l1"


def build_table_paths(
    allowed: Mapping[str, Operation], catalog: Catalog, schemas: SchemaRegistry
) -> dict[str, Mapping[str, Schema]]:
    """Return the Path Items of the tables that a caller may use.

    A table is included if its container is provisioned and its database grants access to documents.

    Args:
        allowed: operations that the caller may use, by name.
        catalog: the workspace.
        schemas: registry of named schemas.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for store, database, container in _list_published(catalog):
        for verb in sorted(container.expose):
            operation = allowed.get(OPERATIONS[verb])
            if operation is not None:
                names = {"store": store.lookup, "database": database.lookup, "table": container.name}
                operation_object = _build_operation(operation, names, container, schemas)
                paths.setdefault(_build_path(operation, names), {})[operation.method.lower()] = operation_object
    return dict(paths)


def _list_published(catalog: Catalog) -> Iterator[tuple[DataStore, Database, Container]]:
    for stored in catalog.data_stores.values():
        for database in stored.value.databases:
            if database.access is DatabaseAccess.GRANTED:
                yield from ((stored.value, database, one) for one in database.containers if one.provisioned)


def _build_path(operation: Operation, names: Mapping[str, str]) -> str:
    path = f"/{operation.route}"
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _build_operation(
    operation: Operation, names: Mapping[str, str], container: Container, schemas: SchemaRegistry
) -> Schema:
    operation_object = build_operation(operation, schemas)
    # Names contain no dots, so operationIds are unique.
    operation_object["operationId"] = ".".join((to_camel_case(operation.name), *names.values()))
    operation_object["summary"] = f"{operation.summary.rstrip('.')}: {container.name}."
    operation_object["description"] = (
        f"{operation_object['description']} Partitioned on `{container.partition_key_path}`; {container.data_class}."
    )
    operation_object["parameters"] = [
        _adjust_parameter(parameter, operation, container)
        for parameter in operation_object["parameters"]
        if parameter["name"] not in _PATH_NAMES
    ]
    operation_object[KEY_PATH] = container.partition_key_path
    _set_examples(operation_object, container)
    return operation_object


def _adjust_parameter(parameter: Schema, operation: Operation, container: Container) -> Schema:
    """Return a parameter; the partition key is required if it cannot be derived."""
    single = "{documentId}" in operation.route
    is_derived = container.partition_key_path == "/id" or operation.method == "PUT"
    return {**parameter, "required": True} if parameter["name"] == _KEY and single and not is_derived else parameter


def _set_examples(operation_object: Schema, container: Container) -> None:
    """Set examples of the bodies with the table's own partition key."""
    example = _build_example(container.partition_key_path)
    if "requestBody" in operation_object:
        operation_object["requestBody"]["content"]["application/json"]["example"] = example
    for status, reply in operation_object["responses"].items():
        form = reply.get("content", {}).get("application/json")
        if form is not None and status in ("200", "201"):
            is_list = "documents" in form["example"]
            form["example"] = {**form["example"], "documents": [example]} if is_list else example


def _build_example(path: str) -> dict[str, Any]:
    first, *inner = path.split("/")[1:]
    value: Any = {inner[0]: _EXAMPLE_KEY} if inner else _EXAMPLE_KEY
    return {first: value} | {"id": _EXAMPLE_ID} if first == "id" else {"id": _EXAMPLE_ID, first: value}
