"""What the resolvers of one request share: the caller, one snapshot of the workspace, and loaders over the stores."""

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
    """The context of one execution.

    Attributes:
        principal: the caller.
        catalog: the workspace as of the request's beginning, the same for every field.
        states: of the connections, read once; empty when no field asks for them.
        warm_queries: executes queries.
        columns: loads the columns of queries, those of one tick together.
        failures: errors of fields that still have a value, since null would take their neighbours away.
    """

    principal: Principal
    catalog: Catalog
    states: Mapping[str, ConnectionState]
    warm_queries: WarmQueries
    columns: "DataLoader[str, Any]" = field(repr=False)
    failures: list[GraphQLError] = field(default_factory=list)

    @cached_property
    def queries_by_surface(self) -> Mapping[str, list[CatalogEntry[WarmQuery]]]:
        """The queries of each surface, in order of their lookup keys."""
        grouped: dict[str, list[CatalogEntry[WarmQuery]]] = {}
        for stored in sort_by_lookup(self.catalog.queries):
            grouped.setdefault(stored.value.surface, []).append(stored)
        return grouped

    def surfaces_of(self, connection: Connection) -> list[CatalogEntry[Surface]]:
        """Return the surfaces that own a connection."""
        return [self.catalog.surfaces[lookup] for lookup in self.catalog.surfaces_of(connection.lookup)]

    def connections_of(self, surface: Surface) -> list[CatalogEntry[Connection]]:
        """Return the connections that a surface owns."""
        known = self.catalog.connections
        return [known[lookup] for lookup in surface.connections if lookup in known]

    def find_query(self, name: str) -> CatalogEntry[WarmQuery] | None:
        """Return the query of this name or this lookup key, else None.

        No name is another query's lookup. In a catalog that is older than this rule the lookup decides, because an
        editor chooses names freely.
        """
        return self.catalog.queries.get(name) or self._queries_by_name.get(name)

    def status_of(self, connection: Connection) -> str:
        """Return a connection's status."""
        return derive_status(connection.enabled, self.states.get(connection.lookup))

    @cached_property
    def _queries_by_name(self) -> Mapping[str, CatalogEntry[WarmQuery]]:
        return {stored.value.name: stored for stored in self.catalog.queries.values()}


def sort_by_lookup[T](items: Mapping[str, CatalogEntry[T]]) -> list[CatalogEntry[T]]:
    """Return catalog items in order of their lookup keys."""
    return [items[lookup] for lookup in sorted(items)]


def build_column_loader(columns: QueryColumns, catalog: Catalog) -> "DataLoader[str, Any]":
    """Return the loader of a request: query lookup to columns; it raises why they are not known."""

    async def load(lookups: list[str]) -> list[Any]:
        # One after the other: what is not remembered costs the engine a query each.
        return [await columns.resolve_or_error(catalog.queries[lookup].value) for lookup in lookups]

    return DataLoader(batch_load_fn=load)
