"""OpenAPI document for one caller: operations, saved KQL queries, and tables (Cosmos DB containers)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from shared.auth.principals import Principal
from shared.catalog.models import Container, Database, DatabaseAccess, DataStore, Verb, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.catalog.unique_names import build_unique_names_by_lookup
from shared.http.operations import Access, Operation
from shared.openapi.generated_operations import GROUP as EVENT_GROUP
from shared.openapi.generated_operations import (
    build_event_webhooks,
    build_query_operation,
    build_query_url_path,
    build_telemetry_operation,
    build_telemetry_url_path,
    register_query_summary_schema,
)
from shared.openapi.paths import BEARER, build_operation_object, build_path_template, to_camel_case
from shared.openapi.responses import HEADERS, build_error_components
from shared.openapi.schemas import Schema, SchemaRegistry
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
    "alert-rules": "Rules that raise alerts from query results and from missing telemetry.",
    "alerts": "Alerts that rules raised, and their acknowledgement.",
    "amendments": "Amendments of records: reason, original and changed record, author and approver.",
    "downloads": "Cold telemetry as files.",
    "graphql": "The workspace as a graph.",
    "health": "Whether the service runs and can do its work.",
    "keys": "API keys and tokens.",
    "live-stream": "Live telemetry over WebSocket.",
    "mcp": "Tools for AI assistants.",
    "oauth": "OAuth 2.1: tokens for standard tools.",
    "oauth-consent": "OAuth 2.1: consent of people, and their grants.",
    "openapi": "This description.",
    "pages": "Pages for people.",
    "provenance": "The append-only, hash-chained audit log.",
    "signals": "Declared and observed fields of the messages of data connections.",
    "telemetry": "Ingestion of telemetry.",
    "warm-queries": "Execution of approved queries and of the caller's own queries.",
    "warm-query-definitions": "Creation, approval and removal of queries.",
    "containers": "Containers of the workspace's document stores.",
    "table-documents": "Documents of the tables that the workspace exposes.",
    "webhooks": "Addresses that receive signed events, and the log of deliveries.",
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
"""Name of the operation on documents of a table, by the verb with which a container exposes it."""

KEY_PATH: Final = "x-partition-key-path"
"""OpenAPI extension property: path of the partition key in a document."""

type PathItem = Mapping[str, Schema]
"""Path Item Object: Operation Objects by lower-case HTTP method."""

type PathAndItem = tuple[str, PathItem]
"""URL path with its Path Item."""

_PATH_NAMES: Final = frozenset({"store", "database", "table"})
_KEY: Final = "partitionKey"
_EXAMPLE_ID: Final = "wo-1042"
_EXAMPLE_KEY: Final = "l1"


def is_usable_by_caller(operation: Operation, principal: Principal, features: Collection[str]) -> bool:
    """Return whether a caller can use an operation.

    The workspace must have the operation's feature. Any caller can then use a public operation. For other operations,
    the caller needs all required rights, and a user identity if the operation requires one. The caller's credential
    must be of an accepted kind, and must not have a restriction that the operation rejects.
    """
    if operation.feature and operation.feature not in features:
        return False
    if operation.access is Access.PUBLIC:
        return True
    if operation.requires_user and principal.identity is None:
        return False
    if not operation.rejects.isdisjoint(principal.restrictions):
        return False
    return principal.via in operation.access.value and principal.rights.issuperset(operation.rights)


def build_openapi_document(
    operations: Collection[Operation],
    title: str,
    description: str,
    concrete_paths: Iterable[PathAndItem],
    schemas: SchemaRegistry,
    *,
    server: str = "",
    convert_path_item: Callable[[PathItem], Any] = dict,
) -> dict[str, Any]:
    """Build an OpenAPI document of the given operations and Path Items.

    Args:
        operations: operations that the caller may use.
        title: title of the API.
        description: description of the API, Markdown.
        concrete_paths: further Path Items with their paths, such as those of single queries. Their error replies must
            be references to the section ``components``.
        schemas: registry of the named schemas of ``operations`` and ``concrete_paths``.
        server: URL of the service; empty for the URL that served the document.
        convert_path_item: converts a Path Item to the form that the document contains, such as JSON text.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for operation in operations:
        if operation.docs.listed:
            operation_object = build_operation_object(operation, schemas)
            paths.setdefault(build_path_template(operation), {})[operation.method.lower()] = operation_object
    items = PathItems(convert_path_item)
    for path, methods in chain(paths.items(), concrete_paths):
        items.add_path_item(path, methods)
    sends_events = any(operation.group == EVENT_GROUP for operation in operations)
    webhooks = {"webhooks": build_event_webhooks(schemas)} if sends_events else {}
    return {
        "openapi": VERSION,
        "info": {
            "title": title,
            "version": API_VERSION,
            "description": description or _ABOUT,
            "contact": {"name": "The workspace's administrators"},
        },
        "servers": [{"url": server or "/", "description": "This service.", "x-internal": False}],
        "tags": [{"name": name, "description": TAGS.get(name, name)} for name in sorted(items.tags)],
        "paths": dict(sorted(items.converted.items())),
        **webhooks,
        "components": _build_components_section(schemas),
    }


def _build_components_section(schemas: SchemaRegistry) -> dict[str, Any]:
    """Build the document's section ``components``: security schemes, headers, schemas, error replies and examples."""
    responses, examples = build_error_components(schemas)
    return {
        "securitySchemes": {
            BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": _CREDENTIAL}
        },
        "headers": HEADERS,
        "schemas": {**dict(sorted(schemas.named.items())), "Problem": _PROBLEM},
        "responses": responses,
        "examples": examples,
    }


class PathItems:
    """Path Items (operations by URL path) of a document; only the converted form of each Path Item is stored.

    If the Path Items themselves were stored, the document of a workspace with thousands of queries would consist of a
    million objects. Their garbage collection would block the event loop, although another thread builds the document.

    Args:
        convert_path_item: converts a Path Item to the form that the document contains, such as JSON text.

    Attributes:
        converted: converted Path Items by path.
        tags: tags of all operations.
    """

    def __init__(self, convert_path_item: Callable[[PathItem], Any]) -> None:
        self._convert = convert_path_item
        self.converted: dict[str, Any] = {}
        self.tags: set[str] = set()

    def add_path_item(self, url_path: str, operations_by_method: PathItem) -> None:
        """Convert and store a Path Item; ``operations_by_method`` has its Operation Objects by lower-case method."""
        for operation_object in operations_by_method.values():
            self.tags.update(operation_object["tags"])
        self.converted[url_path] = self._convert(operations_by_method)


EXECUTE: Final = "execute_warm_query"
"""Name of the operation that executes approved queries."""

ACCEPT: Final = "accept_telemetry"
"""Name of the operation that accepts telemetry."""

type Columns = Mapping[str, Sequence[Column] | None]
"""Result columns of queries by lookup (id in URLs); None if unknown."""


def build_openapi_document_for_caller(
    operations: Sequence[Operation],
    principal: Principal,
    features: Collection[str],
    catalog: Catalog,
    columns: Columns,
    *,
    server: str = "",
    convert_path_item: Callable[[PathItem], Any] = dict,
) -> dict[str, Any]:
    """Build the OpenAPI document for one caller.

    Args:
        operations: all operations of the service.
        principal: the caller.
        features: names of the features that the workspace document declares.
        catalog: the workspace catalog.
        columns: result columns of each query by its lookup (id in URLs); None for a query whose columns are unknown.
        server: URL of the service; empty for the URL that served the document.
        convert_path_item: converts a Path Item to the form that the document contains, such as JSON text.
    """
    allowed = {
        operation.name: operation for operation in operations if is_usable_by_caller(operation, principal, features)
    }
    schemas = SchemaRegistry()
    concrete: list[Iterable[PathAndItem]] = [build_table_path_items(allowed, catalog, schemas).items()]
    if EXECUTE in allowed:
        concrete.append(_build_query_path_items(allowed[EXECUTE], catalog, columns, schemas))
    if ACCEPT in allowed:
        concrete.append(_build_telemetry_path_items(allowed[ACCEPT], principal, catalog, schemas))
    workspace = catalog.workspace
    title = f"{workspace.name}: Industrial Data Workspace" if workspace else "Industrial Data Workspace"
    about = workspace.description if workspace and workspace.description else ""
    paths = chain.from_iterable(concrete)
    return build_openapi_document(
        allowed.values(), title, about, paths, schemas, server=server, convert_path_item=convert_path_item
    )


def list_approved_queries(catalog: Catalog) -> list[WarmQuery]:
    """Return the approved queries, each of which has its own operation in the OpenAPI document."""
    return [stored.value for stored in catalog.queries.values() if stored.value.approval is not None]


def _build_query_path_items(
    execute_operation: Operation, catalog: Catalog, columns: Columns, schemas: SchemaRegistry
) -> Iterator[PathAndItem]:
    # The objects share the parts that are equal for all queries; a copy for each of thousands would take seconds.
    shared = build_operation_object(execute_operation, schemas)
    queries = list_approved_queries(catalog)
    if any(columns.get(query.lookup) is not None for query in queries):
        register_query_summary_schema(schemas)
    # Drafts have ids as well, so that an approval does not change the id of another query.
    ids = build_unique_names_by_lookup(catalog.queries, "warmQuery_")
    for query in queries:
        created = build_query_operation(shared, query, ids[query.lookup], columns.get(query.lookup))
        yield build_query_url_path(query), {"get": created}


def _build_telemetry_path_items(
    accept_operation: Operation, principal: Principal, catalog: Catalog, schemas: SchemaRegistry
) -> Iterator[PathAndItem]:
    shared, binding = build_operation_object(accept_operation, schemas), principal.binding
    described = {lookup: stored for lookup, stored in catalog.connections.items() if stored.value.signals}
    # All connections have ids, so that each id is the same for every caller, and with or without signals of others.
    ids = build_unique_names_by_lookup(catalog.connections, "telemetry_")
    for lookup, stored in described.items():
        if binding is None or lookup in binding.connections:
            created = build_telemetry_operation(shared, stored.value, ids[lookup])
            yield build_telemetry_url_path(stored.value), {"post": created}


def build_table_path_items(
    allowed: Mapping[str, Operation], catalog: Catalog, schemas: SchemaRegistry
) -> dict[str, PathItem]:
    """Build the Path Items of the tables that a caller may use.

    A table is included if its container is provisioned and its database grants access to documents.

    Args:
        allowed: operations that the caller may use, by name.
        catalog: the workspace catalog.
        schemas: registry of named schemas.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for store, database, container in _iterate_published_tables(catalog):
        for verb in sorted(container.expose):
            operation = allowed.get(OPERATIONS[verb])
            if operation is not None:
                names = {"store": store.lookup, "database": database.lookup, "table": container.name}
                operation_object = _build_table_operation(operation, names, container, schemas)
                paths.setdefault(_build_concrete_path(operation, names), {})[operation.method.lower()] = (
                    operation_object
                )
    return dict(paths)


def _iterate_published_tables(catalog: Catalog) -> Iterator[tuple[DataStore, Database, Container]]:
    """Yield the provisioned containers whose database grants access to documents, with database and data store."""
    for stored in catalog.data_stores.values():
        for database in stored.value.databases:
            if database.access is DatabaseAccess.GRANTED:
                yield from ((stored.value, database, one) for one in database.containers if one.provisioned)


def _build_concrete_path(operation: Operation, parameter_values: Mapping[str, str]) -> str:
    """Return the URL path of an operation with the values in ``parameter_values`` in place of its parameters."""
    path = f"/{operation.route}"
    for name, value in parameter_values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _build_table_operation(
    operation: Operation, parameter_values: Mapping[str, str], container: Container, schemas: SchemaRegistry
) -> Schema:
    operation_object = build_operation_object(operation, schemas)
    # Names contain no dots, so operationIds are unique.
    operation_object["operationId"] = ".".join((to_camel_case(operation.name), *parameter_values.values()))
    operation_object["summary"] = f"{operation.summary.rstrip('.')}: {container.name}."
    operation_object["description"] = (
        f"{operation_object['description']} Partitioned on `{container.partition_key_path}`; {container.data_class}."
    )
    operation_object["parameters"] = [
        _make_partition_key_required(parameter, operation, container)
        for parameter in operation_object["parameters"]
        if parameter["name"] not in _PATH_NAMES
    ]
    operation_object[KEY_PATH] = container.partition_key_path
    _set_body_examples(operation_object, container)
    return operation_object


def _make_partition_key_required(parameter: Schema, operation: Operation, container: Container) -> Schema:
    """Make the parameter ``partitionKey`` of a single document required if the service cannot derive its value.

    Return all other parameters unchanged.
    """
    single = "{documentId}" in operation.route
    is_derived = container.partition_key_path == "/id" or operation.method == "PUT"
    return {**parameter, "required": True} if parameter["name"] == _KEY and single and not is_derived else parameter


def _set_body_examples(operation_object: Schema, container: Container) -> None:
    """Set examples of request and response bodies that use the table's partition key."""
    example = _build_example_document(container.partition_key_path)
    if "requestBody" in operation_object:
        operation_object["requestBody"]["content"]["application/json"]["example"] = example
    for status, reply in operation_object["responses"].items():
        form = reply.get("content", {}).get("application/json")
        if form is not None and status in ("200", "201"):
            is_list = "documents" in form["example"]
            form["example"] = {**form["example"], "documents": [example]} if is_list else example


def _build_example_document(partition_key_path: str) -> dict[str, Any]:
    first, *inner = partition_key_path.split("/")[1:]
    value: Any = {inner[0]: _EXAMPLE_KEY} if inner else _EXAMPLE_KEY
    return {first: value} | {"id": _EXAMPLE_ID} if first == "id" else {"id": _EXAMPLE_ID, first: value}
