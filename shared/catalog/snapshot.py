"""The catalog as one immutable snapshot with the indexes that requests need."""

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
    """A catalog item with what the store knows of it.

    Attributes:
        value: the item.
        created_at: when the item first came to be.
        updated_at: when it last changed.
        edited_by: the principal whose change is the last one.
    """

    value: T
    created_at: datetime
    updated_at: datetime
    edited_by: str


@dataclass(frozen=True, slots=True)
class OwnedDatabase:
    """A database with the store that owns it.

    Attributes:
        store: the store's lookup.
        database: the database.
        containers: its containers' records by name.
    """

    store: str
    database: Database
    containers: Mapping[str, Container]


@dataclass(frozen=True)
class Catalog:
    """Everything declared or made in the workspace, as of one version.

    Attributes:
        version: grows with each change.
        workspace: None until a document was applied.
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

    def surfaces_of(self, connection: str) -> tuple[str, ...]:
        """Return the lookups of the surfaces that own a connection, sorted."""
        return self._surfaces_by_connection.get(connection, ())

    def find_query(self, lookup_or_path: str) -> CatalogEntry[WarmQuery] | None:
        """Return the query with this lookup key, else the one with this API path, else None."""
        return self.queries.get(lookup_or_path) or self._queries_by_path.get(lookup_or_path)

    def find_database(self, lookup: str) -> OwnedDatabase | None:
        """Return the database with this lookup, which is unique in the workspace, else None."""
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
        return _invert(stored.value for stored in self.surfaces.values())


def _invert(surfaces: Iterable[Surface]) -> Mapping[str, tuple[str, ...]]:
    owners: dict[str, set[str]] = {}
    for surface in surfaces:
        for connection in surface.connections:
            owners.setdefault(connection, set()).add(surface.lookup)
    return {connection: tuple(sorted(lookups)) for connection, lookups in owners.items()}
