"""Context that the resolvers of one GraphQL request share: caller, catalog snapshot and data loaders."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiodataloader import DataLoader
from graphql import GraphQLError, GraphQLResolveInfo

from shared.auth.principals import Principal
from shared.catalog.models import Connection, Surface, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.graphql_api.error_codes import MAX_REPLY_BYTES, VALIDATION_ERROR, build_reply_too_large_error
from shared.graphql_api.limits import MAX_NESTED_LIST_FIELDS, count_fields_of_item
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.connection_status import ConnectionStatuses
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column
from shared.warm_queries.service import WarmQueries

type LoadedColumns = tuple[Column, ...] | BaseException
"""Result columns of a query, or the error that occurred while they were loaded."""


class PrefetchedColumns:
    """Result columns of queries, loaded in advance for resolvers in a worker thread, which cannot load them."""

    def __init__(self) -> None:
        self._loaded: dict[str, LoadedColumns] = {}
        self._missing: set[str] = set()

    def get_columns(self, lookup: str) -> tuple[Column, ...]:
        """Return the loaded result columns of the query with this lookup (id in URLs).

        If they could not be loaded, raise the error. If they are not loaded yet, remember the lookup for
        :meth:`load_missing`, and return no columns.
        """
        loaded = self._loaded.get(lookup)
        if loaded is None:
            self._missing.add(lookup)
            return ()
        if isinstance(loaded, BaseException):
            raise loaded
        return loaded

    @property
    def is_complete(self) -> bool:
        """True if :meth:`get_columns` found the columns of all queries since :meth:`load_missing`."""
        return not self._missing

    async def load_missing(self, loader: "DataLoader[str, Any]") -> None:
        """Load the columns that :meth:`get_columns` did not find."""
        lookups = sorted(self._missing)
        loaded = await asyncio.gather(*map(loader.load, lookups), return_exceptions=True)
        self._loaded.update(zip(lookups, loaded, strict=True))
        self._missing.clear()


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
        prefetched: columns for an execution in a worker thread; None if resolvers can use ``columns``.
        nested_list_fields: number of fields returned so far in lists that belong to one connection, surface (group of
            connections) or query.
        max_nested_list_fields: maximum of ``nested_list_fields`` for the whole request.
        row_bytes: size of the rows returned so far, as JSON text in bytes; ``MAX_REPLY_BYTES`` limits it.
    """

    principal: Principal
    catalog: Catalog
    states: Mapping[str, ConnectionState]
    statuses: ConnectionStatuses
    warm_queries: WarmQueries
    columns: "DataLoader[str, Any]" = field(repr=False)
    runtime: Runtime = SYSTEM_RUNTIME
    failures: list[GraphQLError] = field(default_factory=list)
    prefetched: PrefetchedColumns | None = None
    nested_list_fields: int = 0
    max_nested_list_fields: int = MAX_NESTED_LIST_FIELDS
    row_bytes: int = 0

    @property
    def has_too_many_fields(self) -> bool:
        """True if the items in lists that belong to a connection, surface or query had more fields than the limit."""
        return self.nested_list_fields > self.max_nested_list_fields

    def clear_errors_and_field_count(self) -> None:
        """Clear the errors and the field count of an execution, because the same operation is executed again."""
        self.failures.clear()
        self.nested_list_fields = 0

    @cached_property
    def queries_by_surface(self) -> Mapping[str, list[CatalogEntry[WarmQuery]]]:
        """Saved KQL queries by their surface (group of connections), sorted by lookup (id in URLs)."""
        grouped: dict[str, list[CatalogEntry[WarmQuery]]] = {}
        for stored in self.sorted_queries:
            grouped.setdefault(stored.value.surface, []).append(stored)
        return grouped

    @cached_property
    def sorted_queries(self) -> list[CatalogEntry[WarmQuery]]:
        """Saved KQL queries, sorted by lookup (id in URLs)."""
        return _sort_by_lookup(self.catalog.queries)

    @cached_property
    def sorted_surfaces(self) -> list[CatalogEntry[Surface]]:
        """Surfaces (groups of connections), sorted by lookup (id in URLs)."""
        return _sort_by_lookup(self.catalog.surfaces)

    @cached_property
    def sorted_connections(self) -> list[CatalogEntry[Connection]]:
        """Data connections, sorted by lookup (id in URLs)."""
        return _sort_by_lookup(self.catalog.connections)

    @cached_property
    def connections_by_status(self) -> Mapping[str, list[CatalogEntry[Connection]]]:
        """Data connections by their status, for instance CONNECTED, sorted by lookup (id in URLs)."""
        grouped: dict[str, list[CatalogEntry[Connection]]] = {}
        for stored in self.sorted_connections:
            grouped.setdefault(self.derive_connection_status(stored.value), []).append(stored)
        return grouped

    def list_surfaces_of_connection(self, connection: Connection) -> list[CatalogEntry[Surface]]:
        """Return the surfaces (groups of connections) that contain a connection."""
        return [
            self.catalog.surfaces[lookup]
            for lookup in self.catalog.list_surface_lookups_of_connection(connection.lookup)
        ]

    def list_connections_of_surface(self, surface: Surface) -> list[CatalogEntry[Connection]]:
        """Return the data connections that belong to a surface (group of connections)."""
        known = self.catalog.connections
        return [known[lookup] for lookup in surface.connections if lookup in known]

    def list_queries_of_surface(self, surface: Surface) -> list[CatalogEntry[WarmQuery]]:
        """Return the saved KQL queries of a surface (group of connections)."""
        return self.queries_by_surface.get(surface.lookup, [])

    def count_fields_of_nested_list(self, length: int, info: GraphQLResolveInfo["GraphQLRequest"]) -> None:
        """Count the fields of all items in a list that belongs to a connection, a surface or a query.

        Args:
            length: number of items in the list.
            info: the executed field, as its resolver receives it.

        Raises:
            GraphQLError: the items of all such lists in this request have too many fields.
        """
        key = tuple(map(id, info.field_nodes))
        if key not in self._fields_of_item:
            self._fields_of_item[key] = count_fields_of_item(info.field_nodes, info.operation, info.fragments)
        self.nested_list_fields += length * self._fields_of_item[key]
        if self.has_too_many_fields:
            raise build_too_many_fields_error(self.max_nested_list_fields)

    def count_row_bytes(self, size: int) -> None:
        """Count the bytes of rows that a field returns as JSON text.

        Raises:
            WorkspaceError: TOO_LARGE if the rows of all queries in this request are larger than a reply may be.
        """
        self.row_bytes += size
        if self.row_bytes > MAX_REPLY_BYTES:
            raise build_reply_too_large_error()

    @cached_property
    def _fields_of_item(self) -> dict[tuple[int, ...], int]:
        """Cache of the number of fields in each item of a list; keys are the Python ids of the list's syntax nodes."""
        return {}

    def find_query_by_name_or_lookup(self, name_or_lookup: str) -> CatalogEntry[WarmQuery] | None:
        """Find a saved KQL query by name or lookup (id in URLs); None if it does not exist.

        A name must not equal another query's lookup. In old catalogs that violate this rule, the query with the lookup
        is returned, so that no editor can hide a query by giving its lookup as a name to another query.
        """
        return self.catalog.queries.get(name_or_lookup) or self._queries_by_name.get(name_or_lookup)

    def derive_connection_status(self, connection: Connection) -> str:
        """Derive the status of a data connection, for instance CONNECTED."""
        return self.statuses.derive_status(connection, self.states.get(connection.lookup)).status

    @cached_property
    def _queries_by_name(self) -> Mapping[str, CatalogEntry[WarmQuery]]:
        return {stored.value.name: stored for stored in self.catalog.queries.values()}


def build_too_many_fields_error(max_fields: int) -> GraphQLError:
    """Build the error for a request whose lists that belong to connections, surfaces or queries have too many fields.

    Args:
        max_fields: number of fields that the request's lists may have.
    """
    return GraphQLError(
        f"The lists of connections, surfaces and queries in the result have more than {max_fields} fields; select "
        "fewer nested lists, aliases or fields, or smaller pages.",
        extensions={"code": VALIDATION_ERROR},
    )


def _sort_by_lookup[T](items: Mapping[str, CatalogEntry[T]]) -> list[CatalogEntry[T]]:
    """Return catalog entries sorted by their lookup (id in URLs)."""
    return [items[lookup] for lookup in sorted(items)]


def build_column_loader(columns: QueryColumns, catalog: Catalog) -> "DataLoader[str, Any]":
    """Build the data loader that returns the result columns of a query, given its lookup (id in URLs).

    If the engine cannot determine a query's columns, or not in time, the loader raises an error.
    """

    async def load_columns(query_lookups: list[str]) -> list[Any]:
        queries = [catalog.queries[lookup].value for lookup in query_lookups]
        return list(await columns.resolve_all_columns_or_errors(queries))

    return DataLoader(batch_load_fn=load_columns)
