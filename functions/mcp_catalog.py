"""MCP tools that list data connections and surfaces, and MCP resources with their definitions.

Separate from ``mcp`` because it is imported at the first call of the protocol.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import ConnectionType
from shared.catalog.snapshot import Catalog
from shared.mcp_server.capabilities import Resource, Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.telemetry.ports import derive_status
from shared.timestamps import rfc3339
from shared.wiring import services


class ConnectionStats(TypedDict):
    """Ingestion statistics of a data connection."""

    messagesReceived: int
    lastMessage: datetime | None


class DataConnection(TypedDict):
    """A data connection."""

    lookup: str
    name: str
    type: ConnectionType
    status: str
    surfaces: list[str]
    stats: ConnectionStats


class DataConnections(TypedDict):
    """List of data connections."""

    connections: list[DataConnection]


class SurfaceShown(TypedDict):
    """A surface with the lookups of its connections and queries."""

    lookup: str
    name: str
    description: str | None
    connections: list[str]
    queries: list[str]


class Surfaces(TypedDict):
    """List of surfaces."""

    surfaces: list[SurfaceShown]


_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def build_catalog_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Build the catalog tools; return no tools if the principal has no right to read the catalog."""
    if AccessRight.CATALOG_READ not in principal.rights:
        return ()

    async def list_connections(_: Mapping[str, Any]) -> ToolResult:
        return ToolResult({"connections": await _list_connections(catalog)})

    async def list_surfaces(_: Mapping[str, Any]) -> ToolResult:
        return ToolResult({"surfaces": _list_surfaces(catalog)})

    return (
        Tool(
            "list_data_connections",
            "List data connections",
            "List the data connections with their status, statistics and surfaces.",
            _NO_ARGUMENTS,
            inline_schema(DataConnections, "serialization"),
            list_connections,
        ),
        Tool(
            "list_surfaces",
            "List surfaces",
            "List the surfaces (named groups of connections) with their connections and warm queries.",
            _NO_ARGUMENTS,
            inline_schema(Surfaces, "serialization"),
            list_surfaces,
        ),
    )


def build_catalog_resources(principal: Principal, catalog: Catalog) -> Sequence[Resource]:
    """Build an MCP resource for the definition of each warm query and surface.

    Return no resources if the principal has no right to read the catalog.
    """
    if AccessRight.CATALOG_READ not in principal.rights:
        return ()
    queries = [
        Resource(
            f"workspace://warm-queries/{lookup}",
            lookup,
            stored.value.name,
            "Definition of a warm query.",
            stored.value.model_dump(mode="json", by_alias=True),
        )
        for lookup, stored in sorted(catalog.queries.items())
    ]
    surfaces = [
        Resource(f"workspace://surfaces/{one['lookup']}", one["lookup"], one["name"], "Definition of a surface.", one)
        for one in _list_surfaces(catalog)
    ]
    return (*queries, *surfaces)


async def _list_connections(catalog: Catalog) -> list[dict[str, Any]]:
    states = await services().telemetry.connection_states.states()
    return [
        {
            "lookup": lookup,
            "name": stored.value.name,
            "type": stored.value.type,
            "status": derive_status(stored.value.enabled, states.get(lookup)),
            "surfaces": list(catalog.find_surfaces(lookup)),
            "stats": {
                "messagesReceived": states[lookup].messages_received if lookup in states else 0,
                "lastMessage": _to_text(states[lookup].last_message) if lookup in states else None,
            },
        }
        for lookup, stored in sorted(catalog.connections.items())
    ]


def _list_surfaces(catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {
            "lookup": lookup,
            "name": stored.value.name,
            "description": stored.value.description,
            "connections": list(stored.value.connections),
            "queries": sorted(key for key, query in catalog.queries.items() if query.value.surface == lookup),
        }
        for lookup, stored in sorted(catalog.surfaces.items())
    ]


def _to_text(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
