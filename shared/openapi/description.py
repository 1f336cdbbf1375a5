"""What one caller is told of the API: its operations, and the warm queries and tables that the workspace exposes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from shared.auth.principals import Principal
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.operations import Operation
from shared.openapi.document import build, usable
from shared.openapi.schemas import Schema, Schemas
from shared.openapi.tables import table_paths
from shared.openapi.warm_queries import query_operation, query_path
from shared.warm_queries.ports import Column

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
    allowed = {one.name: one for one in operations if usable(one, principal, features)}
    schemas = Schemas()
    concrete: dict[str, Mapping[str, Schema]] = {}
    if EXECUTE in allowed:
        concrete |= await _queries(allowed[EXECUTE], catalog, columns, schemas)
    concrete |= table_paths(allowed, catalog, schemas)
    workspace = catalog.workspace
    title = f"{workspace.name}: Industrial Data Workspace" if workspace else "Industrial Data Workspace"
    told = workspace.description if workspace and workspace.description else ""
    return build(allowed.values(), title, told, concrete, schemas, server=server)


async def _queries(
    execute: Operation, catalog: Catalog, columns: Columns, schemas: Schemas
) -> dict[str, Mapping[str, Schema]]:
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    known = await asyncio.gather(*(columns(stored.value) for stored in approved))
    return {
        query_path(stored.value): {"get": query_operation(execute, stored, has, schemas)}
        for stored, has in zip(approved, known, strict=True)
    }
