"""MCP resources with catalog definitions, and MCP tools that list items.

The tools list connections, surfaces (groups of connections), and the items that wait for approval: drafts of warm
queries (saved KQL queries) and amendments.

This module is separate from ``mcp`` because it is imported only at the first MCP request.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, Final, TypedDict

import orjson
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from functions.audit_overview import (
    PageQuery,
    find_next_pending_amendments_cursor,
    parse_pending_amendments_cursor,
    serialise_pending_amendments_as_json,
)
from functions.mcp_arguments import add_argument_descriptions
from functions.mcp_queries import add_nearest_names_to_error
from functions.reply_docs.connections import ConnectionSignal
from functions.reply_docs.provenance_events import Amendment, DamagedRecord
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_connection_not_found_error
from shared.catalog.models import ConnectionType, StoredWarmQuery, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.validation import validate_with_model
from shared.mcp_server.capabilities import MAX_RESULT_BYTES, Resource, Tool, ToolResult, build_result_too_large_error
from shared.openapi.schemas import build_schema_with_definitions
from shared.provenance.overview import DEFAULT_LIMIT, MAX_LIMIT
from shared.provenance.queries import measure_json_bytes
from shared.telemetry.connection_status import connection_statistics_to_json
from shared.telemetry.ports import ConnectionState
from shared.wiring import services


class ConnectionStats(TypedDict):
    """Ingestion statistics of a data connection."""

    messagesReceived: int
    lastMessage: datetime | None
    typeMismatches: int


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


class SurfaceDescription(TypedDict):
    """A surface (group of connections) with the short names in URLs (lookups) of its connections and queries."""

    lookup: str
    name: str
    description: str | None
    connections: list[str]
    queries: list[str]


class Surfaces(TypedDict):
    """Surfaces (groups of connections) that the caller may read."""

    surfaces: list[SurfaceDescription]


_ITEM_CHARACTERS: Final = 200
"""Assumed size of an item of the catalog in a result; decides whether a worker thread builds the result."""
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


class DescribedConnection(DataConnection):
    """A data connection with the fields of its messages, and the approved queries of its surfaces."""

    enabled: bool
    statusReason: str | None
    signals: list[ConnectionSignal]
    queries: list[str]


class DescribeArguments(BaseModel):
    """Arguments of the tool that describes a connection."""

    model_config = ConfigDict(extra="forbid")

    lookup: StrictStr = Field(validation_alias=AliasChoices("lookup", "connection"))


def build_catalog_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Build the tools that list connections and their groups; none if the principal may not read the catalog."""
    if AccessRight.CATALOG_READ not in principal.rights:
        return ()

    async def list_connections(_: Mapping[str, Any]) -> ToolResult:
        states = await services().telemetry.connection_states.load_states_by_connection()
        size = len(catalog.connections) * _ITEM_CHARACTERS
        connections = await services().runtime.run_in_thread_if_large(size, _connections_to_json, catalog, states)
        return ToolResult({"connections": connections})

    async def describe_connection(arguments: Mapping[str, Any]) -> ToolResult:
        lookup = validate_with_model(DescribeArguments, arguments).lookup
        if lookup not in catalog.connections:
            raise await add_nearest_names_to_error(
                build_connection_not_found_error(lookup), lookup, catalog.connections
            )
        return ToolResult(await _find_state_and_build_connection_json(catalog, lookup))

    async def list_surfaces(_: Mapping[str, Any]) -> ToolResult:
        size = (len(catalog.surfaces) + len(catalog.queries)) * _ITEM_CHARACTERS
        surfaces = await services().runtime.run_in_thread_if_large(size, _surfaces_to_json, catalog)
        return ToolResult({"surfaces": surfaces})

    return (
        Tool(
            "list_data_connections",
            "List data connections",
            "List the data connections with their status, statistics and surfaces.",
            _NO_ARGUMENTS,
            build_schema_with_definitions(DataConnections, "serialization"),
            list_connections,
        ),
        Tool(
            "describe_connection",
            "Describe a data connection",
            "Return the signals (fields) of a connection's messages with pointer in Payload, type, unit and expected "
            "range, and its status, statistics, surfaces and approved queries. Call it before you write KQL.",
            add_argument_descriptions(
                build_schema_with_definitions(DescribeArguments, "validation"),
                lookup="Lookup of the data connection, for example pump-rig.",
            ),
            build_schema_with_definitions(DescribedConnection, "serialization"),
            describe_connection,
            hidden_arguments=("connection",),
        ),
        Tool(
            "list_surfaces",
            "List surfaces",
            "List the surfaces (named groups of connections) with their connections and warm queries.",
            _NO_ARGUMENTS,
            build_schema_with_definitions(Surfaces, "serialization"),
            list_surfaces,
        ),
    )


def build_catalog_resources(principal: Principal, catalog: Catalog) -> dict[str, Callable[[], Resource]]:
    """Return the functions that build the MCP resources, by URI of the resource.

    Each resource is the definition of one warm query (saved KQL query) or surface (group of connections).
    Return no resources if the principal may not read the catalog.
    """
    if AccessRight.CATALOG_READ not in principal.rights:
        return {}
    queries = {f"workspace://warm-queries/{lookup}": lookup for lookup in catalog.queries}
    surfaces = {f"workspace://surfaces/{lookup}": lookup for lookup in catalog.surfaces}
    list_once = cache(lambda: {one["lookup"]: one for one in _surfaces_to_json(catalog)})

    def build_query_resource(query_uri: str) -> Resource:
        query = catalog.queries[queries[query_uri]].value
        content = query.model_dump(mode="json", by_alias=True)
        return Resource(query_uri, query.lookup, query.name, "Definition of a warm query.", content)

    def build_surface_resource(surface_uri: str) -> Resource:
        surface = list_once()[surfaces[surface_uri]]
        return Resource(surface_uri, surface["lookup"], surface["name"], "Definition of a surface.", surface)

    return {
        **{uri: partial(build_query_resource, uri) for uri in queries},
        **{uri: partial(build_surface_resource, uri) for uri in surfaces},
    }


def _connections_to_json(catalog: Catalog, states: Mapping[str, ConnectionState]) -> list[dict[str, Any]]:
    return [_connection_to_json(catalog, lookup, states.get(lookup)) for lookup in sorted(catalog.connections)]


def _connection_to_json(catalog: Catalog, lookup: str, state: ConnectionState | None) -> dict[str, Any]:
    connection = catalog.connections[lookup].value
    return {
        "lookup": lookup,
        "name": connection.name,
        "type": connection.type,
        "status": services().telemetry.statuses.derive_status(connection, state).status,
        "surfaces": list(catalog.list_surface_lookups_of_connection(lookup)),
        "stats": connection_statistics_to_json(state),
    }


async def _find_state_and_build_connection_json(catalog: Catalog, lookup: str) -> dict[str, Any]:
    state = (await services().telemetry.connection_states.load_states_by_connection()).get(lookup)
    connection = catalog.connections[lookup].value
    surfaces = catalog.list_surface_lookups_of_connection(lookup)
    queries = (stored.value for stored in catalog.queries.values() if stored.value.surface in surfaces)
    return {
        **_connection_to_json(catalog, lookup, state),
        "enabled": connection.enabled,
        "statusReason": services().telemetry.statuses.derive_status(connection, state).reason,
        "signals": [signal.model_dump(mode="json", by_alias=True) for signal in connection.signals],
        "queries": sorted(query.lookup for query in queries if query.approval is not None),
    }


def _surfaces_to_json(catalog: Catalog) -> list[dict[str, Any]]:
    queries: dict[str, list[str]] = {}
    for key in sorted(catalog.queries):
        queries.setdefault(catalog.queries[key].value.surface, []).append(key)
    return [
        {
            "lookup": lookup,
            "name": stored.value.name,
            "description": stored.value.description,
            "connections": list(stored.value.connections),
            "queries": queries.get(lookup, []),
        }
        for lookup, stored in sorted(catalog.surfaces.items())
    ]


class PendingDecisionsArguments(PageQuery):
    """Arguments of the tool that lists pending amendments; ``limit`` must be a JSON number, not a text."""

    limit: StrictInt = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of amendments.")
    cursor: StrictStr | None = Field(None, description="`cursor` of the previous result; the first page without it.")


class DraftQuery(TypedDict):
    """A warm query that waits for approval."""

    lookup: str
    name: str
    surface: str
    kql: str


class PendingDecisions(TypedDict):
    """Items that wait for an approval: draft queries, and one page of pending amendments.

    The result without a cursor contains all draft queries; results with a cursor contain none.
    """

    drafts: list[DraftQuery]
    amendments: list[Amendment | DamagedRecord]
    cursor: str | None


def build_pending_decision_tools(principal: Principal, catalog: Catalog, *, has_amendments: bool) -> Sequence[Tool]:
    """Build the tool that lists pending decisions; return no tool if the caller may not read amendments.

    Args:
        principal: the caller; a caller with the right to read the catalog also gets drafts of saved queries.
        catalog: catalog of the workspace.
        has_amendments: whether the caller may read amendments, and the workspace has an audit log.
    """
    if not has_amendments:
        return ()

    async def list_pending_decisions(arguments: Mapping[str, Any]) -> ToolResult:
        values = {name: value for name, value in arguments.items() if value is not None}
        parsed = validate_with_model(PendingDecisionsArguments, values)
        drafts: list[DraftQuery] = []
        if AccessRight.CATALOG_READ in principal.rights and parsed.cursor is None:
            size = len(catalog.queries) * _ITEM_CHARACTERS
            drafts = await services().runtime.run_in_thread_if_large(size, _list_draft_queries, catalog)
        return ToolResult({"drafts": drafts, **await _build_pending_amendments_json(parsed)})

    return (
        Tool(
            "list_pending_decisions",
            "List pending decisions",
            "List what waits for a person's decision: drafts of warm queries, and the pending amendments (documented "
            "corrections) of all scopes, oldest first.",
            add_argument_descriptions(build_schema_with_definitions(PendingDecisionsArguments, "validation")),
            build_schema_with_definitions(PendingDecisions, "serialization"),
            list_pending_decisions,
        ),
    )


def _is_waiting_for_approval(query: WarmQuery) -> bool:
    is_rejected = isinstance(query, StoredWarmQuery) and query.rejection is not None
    return query.approval is None and not is_rejected


def _list_draft_queries(catalog: Catalog) -> list[DraftQuery]:
    queries = [stored.value for _, stored in sorted(catalog.queries.items()) if _is_waiting_for_approval(stored.value)]
    return [{"lookup": one.lookup, "name": one.name, "surface": one.surface, "kql": one.kql} for one in queries]


async def _build_pending_amendments_json(arguments: PendingDecisionsArguments) -> dict[str, Any]:
    page = await services().provenance.overview.list_pending_amendments(
        parse_pending_amendments_cursor(arguments.cursor), arguments.limit
    )
    if sum(map(measure_json_bytes, page.result.records)) > MAX_RESULT_BYTES:
        raise build_result_too_large_error()
    records = await services().runtime.run_in_thread(serialise_pending_amendments_as_json, page)
    return {"amendments": orjson.Fragment(records), "cursor": find_next_pending_amendments_cursor(page)}
