"""The whole document for one caller."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from shared.auth.principals import Principal
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.operations import Access, Operation
from shared.openapi.paths import (
    BEARER,
    HEADERS,
    build_operation,
    build_problem_response,
    path_template,
    problem_name,
)
from shared.openapi.schemas import Schema, SchemaRegistry
from shared.openapi.tables import build_table_paths
from shared.openapi.warm_queries import build_query_operation, query_path
from shared.warm_queries.ports import Column

VERSION = "3.1.1"
API_VERSION = "1.0.0"


_ABOUT = "Telemetry, approved queries and the audit log of an industrial workspace."
_CREDENTIAL = (
    "A token from `GET /workspace/api/keys/jwt`, signed with ES256. As RFC8725 has it, algorithm, issuer, audience, "
    "workspace and times are pinned; a token is short-lived, narrowed by `scopes`, and revoked by its `jti`. GraphQL "
    "and the key routes also take an API key."
)
TAGS = {
    "amendments": "Documented corrections of records: reason, original and changed record, maker and checker.",
    "downloads": "Cold telemetry as files.",
    "graphql": "The workspace as a graph.",
    "health": "Whether the service runs and can do its work.",
    "keys": "API keys and tokens.",
    "live-stream": "Telemetry as it comes, over WebSocket.",
    "mcp": "Tools for AI assistants.",
    "openapi": "This description.",
    "pages": "Pages for people.",
    "provenance": "The append-only, hash-chained audit log.",
    "telemetry": "Telemetry on its way in.",
    "warm-queries": "Approved queries and the caller's own, answered.",
    "warm-query-definitions": "Queries as things that are written, approved and removed.",
    "containers": "Containers of the workspace's document stores.",
    "table-documents": "Documents of the tables that the workspace exposes.",
}
"""What each endpoint group is about."""

_PROBLEM: Schema = {
    "title": "Problem",
    "description": "An error as RFC 9457 has it; further members say more, as the code defines.",
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


def is_usable(operation: Operation, principal: Principal, features: Collection[str]) -> bool:
    """Return whether a caller can use an operation: credential, right, identity and feature are there."""
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
    """Return the document.

    Args:
        operations: those that the caller may use.
        title: name of the workspace's API.
        description: what it is, Markdown.
        concrete: further Path Items by path and lower-case method, with their problem documents as references.
        schemas: the named schemas of the concrete paths.
        server: address of the service, empty for the address that served the document.
    """
    paths: dict[str, dict[str, Schema]] = {}
    for operation in operations:
        if operation.docs.listed:
            made = build_operation(operation, schemas)
            paths.setdefault(path_template(operation), {})[operation.method.lower()] = made
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
        "tags": [{"name": name, "description": TAGS.get(name, name)} for name in sorted(set(_tags(paths)))],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "securitySchemes": {
                BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": _CREDENTIAL}
            },
            "headers": HEADERS,
            "schemas": {**dict(sorted(schemas.named.items())), "Problem": _PROBLEM},
            "responses": {problem_name(status): build_problem_response(status) for status in _statuses(paths)},
        },
    }


def _tags(paths: Mapping[str, Mapping[str, Schema]]) -> Iterable[str]:
    return (tag for methods in paths.values() for made in methods.values() for tag in made["tags"])


def _statuses(paths: Mapping[str, Mapping[str, Schema]]) -> list[int]:
    """Return the statuses that stand in the paths as references to shared problem documents."""
    responses = (made["responses"] for methods in paths.values() for made in methods.values())
    return sorted({int(status) for each in responses for status, body in each.items() if "$ref" in body})


EXECUTE: Final = "execute_warm_query"
"""The operation that approved queries are instances of."""

type Columns = Callable[[WarmQuery], Awaitable[Sequence[Column] | None]]
"""Gives the columns of a query, None while they are not known."""


async def describe(
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
        operations: all that the service has.
        principal: the caller.
        features: names of what the workspace has.
        catalog: the workspace.
        columns: gives the columns of a query.
        server: address of the service, empty for the address that served the document.
    """
    allowed = {one.name: one for one in operations if is_usable(one, principal, features)}
    schemas = SchemaRegistry()
    concrete: dict[str, Mapping[str, Schema]] = {}
    if EXECUTE in allowed:
        concrete |= await _queries(allowed[EXECUTE], catalog, columns, schemas)
    concrete |= build_table_paths(allowed, catalog, schemas)
    workspace = catalog.workspace
    title = f"{workspace.name}: Industrial Data Workspace" if workspace else "Industrial Data Workspace"
    told = workspace.description if workspace and workspace.description else ""
    return build_document(allowed.values(), title, told, concrete, schemas, server=server)


async def _queries(
    execute: Operation, catalog: Catalog, columns: Columns, schemas: SchemaRegistry
) -> dict[str, Mapping[str, Schema]]:
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    known = await asyncio.gather(*(columns(stored.value) for stored in approved))
    return {
        query_path(stored.value): {"get": build_query_operation(execute, stored, has, schemas)}
        for stored, has in zip(approved, known, strict=True)
    }
