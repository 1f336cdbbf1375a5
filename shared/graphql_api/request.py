"""Context of one GraphQL request: caller, catalog snapshot and data loaders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiodataloader import DataLoader
from graphql import GraphQLError

from shared.auth.principals import Principal
from shared.catalog.models import Connection, Surface, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.telemetry.ports import ConnectionState, derive_status
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.service import WarmQueries


@dataclass
class GraphQLRequest:
    """Context of one execution, shared by its resolvers.

    Attributes:
        principal: the caller.
        catalog: snapshot of the catalog at the start of the request.
        states: states of the connections; empty if no field requests them.
        warm_queries: executes queries.
        columns: loader for the columns of queries.
        failures: errors of fields that have a value nevertheless, because null would remove enclosing lists.
    """

    principal: Principal
    catalog: Catalog
    states: Mapping[str, ConnectionState]
    warm_queries: WarmQueries
    columns: "DataLoader[str, Any]" = field(repr=False)
    failures: list[GraphQLError] = field(default_factory=list)

    @cached_property
    def queries_by_surface(self) -> Mapping[str, list[CatalogEntry[WarmQuery]]]:
        """Queries of each surface, sorted by lookup key."""
        grouped: dict[str, list[CatalogEntry[WarmQuery]]] = {}
        for stored in sort_by_lookup(self.catalog.queries):
            grouped.setdefault(stored.value.surface, []).append(stored)
        return grouped

    def list_surfaces(self, connection: Connection) -> list[CatalogEntry[Surface]]:
        """Return the surfaces that own a connection."""
        return [self.catalog.surfaces[lookup] for lookup in self.catalog.find_surfaces(connection.lookup)]

    def list_connections(self, surface: Surface) -> list[CatalogEntry[Connection]]:
        """Return the connections that a surface owns."""
        known = self.catalog.connections
        return [known[lookup] for lookup in surface.connections if lookup in known]

    def find_query(self, name: str) -> CatalogEntry[WarmQuery] | None:
        """Return a query by name or lookup key; None if it does not exist.

        A name cannot equal another query's lookup key. In catalogs older than this rule, the lookup key has precedence,
        because editors choose names freely.
        """
        return self.catalog.queries.get(name) or self._queries_by_name.get(name)

    def derive_connection_status(self, connection: Connection) -> str:
        """Return a connection's status."""
        return derive_status(connection.enabled, self.states.get(connection.lookup))

    @cached_property
    def _queries_by_name(self) -> Mapping[str, CatalogEntry[WarmQuery]]:
        return {stored.value.name: stored for stored in self.catalog.queries.values()}


def sort_by_lookup[T](items: Mapping[str, CatalogEntry[T]]) -> list[CatalogEntry[T]]:
    """Return catalog entries sorted by lookup key."""
    return [items[lookup] for lookup in sorted(items)]


def build_column_loader(columns: QueryColumns, catalog: Catalog) -> "DataLoader[str, Any]":
    """Return the loader of columns by query lookup; it raises the reason if columns are unknown."""

    async def load(lookups: list[str]) -> list[Any]:
        # Load one after another: each uncached item executes an engine query.
        return [await columns.resolve_or_error(catalog.queries[lookup].value) for lookup in lookups]

    return DataLoader(batch_load_fn=load)
