"""Immutable copy of the workspace catalog in one version, with the indexes that requests use."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from shared.auth.rights import Role
from shared.catalog.items import ItemKind
from shared.catalog.models import (
    AlertRule,
    Connection,
    Container,
    Database,
    DataStore,
    Member,
    OAuthClient,
    Policies,
    Surface,
    Tier,
    TierLimits,
    WarmQuery,
    WorkspaceInfo,
)
from shared.catalog.ports import CatalogItem


@dataclass(frozen=True, slots=True)
class CatalogEntry[T]:
    """Catalog item with its storage metadata.

    Attributes:
        value: model of the item.
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
        store: lookup (id in URLs) of the data store.
        containers: containers of the database by name.
    """

    store: str
    database: Database
    containers: Mapping[str, Container]


@dataclass(frozen=True)
class Catalog:
    """All items of the workspace in one version.

    Attributes:
        version: number that grows with each change.
        workspace: identity of the workspace; None until a workspace document is applied.
        members: team members by their ids.
        connections: connections by their lookups (ids in URLs); the mappings of the other kinds use lookups, too.
        oauth_clients: OAuth clients by their ids.
        items: the items as stored, by kind and key.
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
    alert_rules: Mapping[str, CatalogEntry[AlertRule]] = field(default_factory=dict)
    oauth_clients: Mapping[str, CatalogEntry[OAuthClient]] = field(default_factory=dict)
    items: Mapping[tuple[str, str], CatalogItem] = field(default_factory=dict, repr=False)

    def is_administrator(self, member_id: str) -> bool:
        """Return whether a team member is an enabled person with the role Admin."""
        member = self.members.get(member_id)
        return member is not None and member.role is Role.ADMIN and member.enabled and not member.service

    def is_connection_enabled(self, connection_lookup: str) -> bool:
        """Return whether a connection with this lookup (id in URLs) exists and is enabled."""
        stored = self.connections.get(connection_lookup)
        return stored is not None and stored.value.enabled

    def is_alert_rule_deleted(self, lookup: str) -> bool:
        """Return whether no alert rule with this lookup (id in URLs) is stored.

        A stored rule that this version of the service cannot parse, because a newer version stored it, is not deleted.
        """
        return lookup not in self.alert_rules and (ItemKind.ALERT_RULE, lookup) not in self.items

    def list_surface_lookups_of_connection(self, connection_lookup: str) -> tuple[str, ...]:
        """Return the sorted lookups (ids in URLs) of the surfaces (groups of connections) that contain a connection."""
        return self._surface_lookups_by_connection.get(connection_lookup, ())

    def find_query(self, lookup_or_path: str) -> CatalogEntry[WarmQuery] | None:
        """Return the saved KQL query with this lookup (id in URLs), else with this API path; None if none matches."""
        return self.queries.get(lookup_or_path) or self._queries_by_path.get(lookup_or_path)

    def find_database(self, lookup: str) -> OwnedDatabase | None:
        """Return the database with this lookup (id in URLs, unique in the workspace); None if it does not exist."""
        return self._databases_by_lookup.get(lookup)

    @cached_property
    def longest_nested_list_length(self) -> int:
        """Length of the longest of these lists: connections or queries of a surface, surfaces of a connection."""
        queries_by_surface = Counter(stored.value.surface for stored in self.queries.values())
        connections = (len(stored.value.connections) for stored in self.surfaces.values())
        surfaces = map(len, self._surface_lookups_by_connection.values())
        return max(chain(queries_by_surface.values(), connections, surfaces), default=0)

    @cached_property
    def _databases_by_lookup(self) -> Mapping[str, OwnedDatabase]:
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
    def _surface_lookups_by_connection(self) -> Mapping[str, tuple[str, ...]]:
        return _map_surface_lookups_by_connection(stored.value for stored in self.surfaces.values())


def _map_surface_lookups_by_connection(surfaces: Iterable[Surface]) -> Mapping[str, tuple[str, ...]]:
    owners: dict[str, set[str]] = {}
    for surface in surfaces:
        for connection in surface.connections:
            owners.setdefault(connection, set()).add(surface.lookup)
    return {connection: tuple(sorted(lookups)) for connection, lookups in owners.items()}
