"""Immutable catalog of one version, with the indexes that requests use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from shared.catalog.models import (
    Connection,
    Container,
    Database,
    DataStore,
    Member,
    Policies,
    Surface,
    Tier,
    TierLimits,
    WarmQuery,
    WorkspaceInfo,
)


@dataclass(frozen=True, slots=True)
class CatalogEntry[T]:
    """Catalog item with its storage metadata.

    Attributes:
        value: the item.
        created_at: time of the item's creation.
        updated_at: time of the last change.
        edited_by: principal who made the last change.
    """

    value: T
    created_at: datetime
    updated_at: datetime
    edited_by: str


@dataclass(frozen=True, slots=True)
class OwnedDatabase:
    """Database with the data store that owns it.

    Attributes:
        store: lookup of the data store.
        database: the database.
        containers: records of its containers by name.
    """

    store: str
    database: Database
    containers: Mapping[str, Container]


@dataclass(frozen=True)
class Catalog:
    """All items of the workspace in one version.

    Attributes:
        version: number that grows with each change.
        workspace: None until a document is applied.
    """

    version: int = 0
    workspace: WorkspaceInfo | None = None
    tier: Tier = Tier.FREE
    limits: TierLimits | None = None
    policies: Policies = field(default_factory=Policies)
    members: Mapping[str, Member] = field(default_factory=dict)
    connections: Mapping[str, CatalogEntry[Connection]] = field(default_factory=dict)
    surfaces: Mapping[str, CatalogEntry[Surface]] = field(default_factory=dict)
    queries: Mapping[str, CatalogEntry[WarmQuery]] = field(default_factory=dict)
    data_stores: Mapping[str, CatalogEntry[DataStore]] = field(default_factory=dict)

    def find_surfaces(self, connection: str) -> tuple[str, ...]:
        """Return the sorted lookups of the surfaces that own a connection."""
        return self._surfaces_by_connection.get(connection, ())

    def find_query(self, lookup_or_path: str) -> CatalogEntry[WarmQuery] | None:
        """Return the query with this lookup, else with this API path; None if there is none."""
        return self.queries.get(lookup_or_path) or self._queries_by_path.get(lookup_or_path)

    def find_database(self, lookup: str) -> OwnedDatabase | None:
        """Return the database with this lookup, which is unique in the workspace; None if there is none."""
        return self._databases.get(lookup)

    @cached_property
    def _databases(self) -> Mapping[str, OwnedDatabase]:
        return {
            database.lookup: OwnedDatabase(
                store.value.lookup, database, {container.name: container for container in database.containers}
            )
            for store in self.data_stores.values()
            for database in store.value.databases
        }

    @cached_property
    def _queries_by_path(self) -> Mapping[str, CatalogEntry[WarmQuery]]:
        return {query.value.api_path: query for query in self.queries.values() if query.value.api_path}

    @cached_property
    def _surfaces_by_connection(self) -> Mapping[str, tuple[str, ...]]:
        return _group_surfaces(stored.value for stored in self.surfaces.values())


def _group_surfaces(surfaces: Iterable[Surface]) -> Mapping[str, tuple[str, ...]]:
    owners: dict[str, set[str]] = {}
    for surface in surfaces:
        for connection in surface.connections:
            owners.setdefault(connection, set()).add(surface.lookup)
    return {connection: tuple(sorted(lookups)) for connection, lookups in owners.items()}
