"""OpenAPI document for one caller: operations, warm queries and published tables."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from shared.auth.principals import Principal
from shared.catalog.models import Container, Database, DatabaseAccess, DataStore, Verb, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.operations import Access, Operation
from shared.openapi.paths import (
    BEARER,
    HEADERS,
    build_operation,
    build_path_template,
    build_problem_name,
    build_problem_response,
    to_camel_case,
)
from shared.openapi.schemas import Schema, SchemaRegistry
from shared.openapi.warm_queries import build_query_operation, build_query_path
from shared.warm_queries.ports import Column

VERSION = "3.1.1"
API_VERSION = "1.0.0"


_ABOUT = "Telemetry, approved queries and the audit log of an industrial workspace."
_CREDENTIAL = (
    "A token from `GET /workspace/api/keys/jwt`, signed with ES256. As RFC8725 requires, the service checks "
    "algorithm, issuer, audience, workspace and times. A token is short-lived, can be restricted by `scopes` "
    "and revoked by its `jti`. GraphQL and the key routes also accept an API key."
)
TAGS = {
    "amendments": "Amendments of records: reason, original and changed record, author and approver.",
    "downloads": "Cold telemetry as files.",
    "graphql": "The workspace as a graph.",
    "health": "Whether the service runs and can do its work.",
    "keys": "API keys and tokens.",
    "live-stream": "Live telemetry over WebSocket.",
    "mcp": "Tools for AI assistants.",
    "openapi": "This description.",
    "pages": "Pages for people.",
    "provenance": "The append-only, hash-chained audit log.",
    "telemetry": "Ingestion of telemetry.",
    "warm-queries": "Execution of approved queries and of the caller's own queries.",
    "warm-query-definitions": "Creation, approval and removal of queries.",
    "containers": "Containers of the workspace's document stores.",
    "table-documents": "Documents of the tables that the workspace exposes.",
}
"""Description of each endpoint group."""

_PROBLEM: Schema = {
    "title": "Problem",
    "description": "An error (RFC 9457); the code defines additional members.",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer", "format": "int32", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "code": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
        "traceId": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
                "required": ["field", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "code", "traceId"],
}
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


def is_usable(operation: Operation, principal: Principal, features: Collection[str]) -> bool:
    """Return whether a caller can use an operation: credential, right, identity and feature match."""
    if operation.feature and operation.feature not in features:
        return False
    if operation.access is Access.PUBLIC:
        return True
    if operation.requires_user and principal.identity is None:
        return False
    return principal.via in operation.access.value and (operation.right is None or operation.right in principal.rights)


def build_document(
    operations: Iterable[Operation],
    title: str,
    description: str,
    concrete: Mapping[str, Mapping[str, Schema]],
    schemas: SchemaRegistry,
    *,
    server: str = "",
) -> dict[str, Any]:
    """Return the OpenAPI document.

    Args:
        operations: operations that the caller may use.
        title: title of the API.
        description: description of the API, Markdown.
        concrete: further Path Items by path and lower-case method, with their problem documents as references.
        schemas: the named schemas of the concrete paths.
        server: URL of the service; empty for the URL that served the document.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for operation in operations:
        if operation.docs.listed:
            operation_object = build_operation(operation, schemas)
            paths.setdefault(build_path_template(operation), {})[operation.method.lower()] = operation_object
    for path, methods in concrete.items():
        paths.setdefault(path, {}).update(methods)
    return {
        "openapi": VERSION,
        "info": {
            "title": title,
            "version": API_VERSION,
            "description": description or _ABOUT,
            "contact": {"name": "The workspace's administrators"},
        },
        "servers": [{"url": server or "/", "description": "This service.", "x-internal": False}],
        "tags": [{"name": name, "description": TAGS.get(name, name)} for name in sorted(set(_list_tags(paths)))],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "securitySchemes": {
                BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": _CREDENTIAL}
            },
            "headers": HEADERS,
            "schemas": {**dict(sorted(schemas.named.items())), "Problem": _PROBLEM},
            "responses": {
                build_problem_name(status): build_problem_response(status) for status in _list_problem_statuses(paths)
            },
        },
    }


def _list_tags(paths: Mapping[str, Mapping[str, Schema]]) -> Iterable[str]:
    return (
        tag for methods in paths.values() for operation_object in methods.values() for tag in operation_object["tags"]
    )


def _list_problem_statuses(paths: Mapping[str, Mapping[str, Schema]]) -> list[int]:
    """Return the statuses that paths reference as shared problem documents."""
    responses = (operation_object["responses"] for methods in paths.values() for operation_object in methods.values())
    return sorted({int(status) for each in responses for status, body in each.items() if "$ref" in body})


EXECUTE: Final = "execute_warm_query"
"""Operation of which approved queries are instances."""

type Columns = Callable[[WarmQuery], Awaitable[Sequence[Column] | None]]
"""Function that returns the columns of a query, None if unknown."""


async def build_caller_document(
    operations: Sequence[Operation],
    principal: Principal,
    features: Collection[str],
    catalog: Catalog,
    columns: Columns,
    *,
    server: str = "",
) -> dict[str, Any]:
    """Return the OpenAPI document for a caller.

    Args:
        operations: all operations of the service.
        principal: the caller.
        features: names of the workspace's features.
        catalog: the workspace.
        columns: returns the columns of a query.
        server: URL of the service; empty for the URL that served the document.
    """
    allowed = {operation.name: operation for operation in operations if is_usable(operation, principal, features)}
    schemas = SchemaRegistry()
    concrete: dict[str, Mapping[str, Schema]] = {}
    if EXECUTE in allowed:
        concrete |= await _build_query_paths(allowed[EXECUTE], catalog, columns, schemas)
    concrete |= build_table_paths(allowed, catalog, schemas)
    workspace = catalog.workspace
    title = f"{workspace.name}: Industrial Data Workspace" if workspace else "Industrial Data Workspace"
    about = workspace.description if workspace and workspace.description else ""
    return build_document(allowed.values(), title, about, concrete, schemas, server=server)


async def _build_query_paths(
    execute: Operation, catalog: Catalog, columns: Columns, schemas: SchemaRegistry
) -> dict[str, Mapping[str, Schema]]:
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    columns_of_queries = await asyncio.gather(*(columns(stored.value) for stored in approved))
    return {
        build_query_path(stored.value): {"get": build_query_operation(execute, stored, columns_of_query, schemas)}
        for stored, columns_of_query in zip(approved, columns_of_queries, strict=True)
    }


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
