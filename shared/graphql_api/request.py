"""Context that the resolvers of one GraphQL request share: caller, catalog snapshot and data loaders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiodataloader import DataLoader
from graphql import GraphQLError

from shared.auth.principals import Principal
from shared.catalog.models import Connection, Surface, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.connection_status import ConnectionStatuses
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.service import WarmQueries


@dataclass
class GraphQLRequest:
    """Context of one GraphQL request, which its resolvers share.

    Attributes:
        principal: the caller.
        catalog: snapshot of the catalog at the start of the request.
        states: message statistics of the connections, by lookup (id in URLs); empty if the request selects no field
            with them.
        statuses: derives the status of a connection.
        warm_queries: executes saved KQL queries.
        columns: data loader for the result columns of queries.
        runtime: clock for time ranges.
        failures: errors of fields that return a fallback value instead of null, because a null would propagate to the
            enclosing list.
    """

    principal: Principal
    catalog: Catalog
    states: Mapping[str, ConnectionState]
    statuses: ConnectionStatuses
    warm_queries: WarmQueries
    columns: "DataLoader[str, Any]" = field(repr=False)
    runtime: Runtime = SYSTEM_RUNTIME
    failures: list[GraphQLError] = field(default_factory=list)

    @cached_property
    def queries_by_surface(self) -> Mapping[str, list[CatalogEntry[WarmQuery]]]:
        """Saved KQL queries by their surface (group of connections), sorted by lookup (id in URLs)."""
        grouped: dict[str, list[CatalogEntry[WarmQuery]]] = {}
        for stored in sort_by_lookup(self.catalog.queries):
            grouped.setdefault(stored.value.surface, []).append(stored)
        return grouped

    def list_surfaces_of_connection(self, connection: Connection) -> list[CatalogEntry[Surface]]:
        """Return the surfaces (groups of connections) that contain a connection."""
        return [self.catalog.surfaces[lookup] for lookup in self.catalog.list_surfaces_of_connection(connection.lookup)]

    def list_connections_of_surface(self, surface: Surface) -> list[CatalogEntry[Connection]]:
        """Return the data connections that belong to a surface (group of connections)."""
        known = self.catalog.connections
        return [known[lookup] for lookup in surface.connections if lookup in known]

    def find_query_by_name_or_lookup(self, name: str) -> CatalogEntry[WarmQuery] | None:
        """Find a saved KQL query by name or lookup (id in URLs); None if it does not exist.

        A name must not equal another query's lookup. In old catalogs that violate this rule, the query with the lookup
        is returned, so that no editor can hide a query by giving its lookup as a name to another query.
        """
        return self.catalog.queries.get(name) or self._queries_by_name.get(name)

    def derive_connection_status(self, connection: Connection) -> str:
        """Derive the status of a data connection, for instance CONNECTED."""
        return self.statuses.derive_status(connection, self.states.get(connection.lookup)).status

    @cached_property
    def _queries_by_name(self) -> Mapping[str, CatalogEntry[WarmQuery]]:
        return {stored.value.name: stored for stored in self.catalog.queries.values()}


def sort_by_lookup[T](items: Mapping[str, CatalogEntry[T]]) -> list[CatalogEntry[T]]:
    """Return catalog entries sorted by their lookup (id in URLs)."""
    return [items[lookup] for lookup in sorted(items)]


def build_column_loader(columns: QueryColumns, catalog: Catalog) -> "DataLoader[str, Any]":
    """Build the data loader that returns the result columns of a query, given its lookup (id in URLs).

    If the engine cannot determine a query's columns, the loader raises the engine's error.
    """

    async def load_columns(lookups: list[str]) -> list[Any]:
        # Load one after another: each uncached item executes an engine query.
        return [await columns.resolve_columns_or_error(catalog.queries[lookup].value) for lookup in lookups]

    return DataLoader(batch_load_fn=load_columns)
