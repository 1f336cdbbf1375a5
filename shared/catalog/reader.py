"""In-memory cache of the workspace catalog with a maximum age."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from shared.auth.ports import CredentialCutoff, Team
from shared.catalog.items import SINGLETON_KEY, ItemKind, MemberState, WorkspaceSettings
from shared.catalog.models import (
    AlertRule,
    Connection,
    Container,
    Database,
    DataStore,
    Member,
    Model,
    OAuthClient,
    StoredWarmQuery,
    Surface,
    WorkspaceInfo,
    select_known_rights_of_member,
)
from shared.catalog.ports import CatalogItem, CatalogStore, CatalogVersion, StoredCatalog
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.versioned_cache import VersionedCache

MAX_STALE_SECONDS: Final = 60.0
"""Maximum age of the cached catalog while the store is unreachable."""

_LOG = logs.get_logger("catalog")


class CatalogReader:
    """Reader of the catalog for request handlers, with a cache.

    Args:
        store: storage of the catalog.
        refresh_seconds: minimum time between two checks of the store's version.
        max_stale_seconds: maximum age of the cached catalog while the store is unreachable.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: CatalogStore,
        refresh_seconds: float,
        *,
        max_stale_seconds: float = MAX_STALE_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._snapshot = VersionedCache(
            store.read_version,
            self._load_version_and_catalog,
            max_age=refresh_seconds,
            max_stale=max_stale_seconds,
            runtime=runtime,
        )
        self._runtime = runtime

    async def get_catalog(self) -> Catalog:
        """Return the catalog from the cache, or from the store if the cached copy is old and the store can be reached.

        Raises:
            WorkspaceError: UNAVAILABLE ``CATALOG_UNAVAILABLE`` if there is no cached catalog or it is too old.
        """
        try:
            return await self._snapshot.load_current_value()
        except Exception as error:
            raise _build_unavailable_error() from error

    async def load_stored_catalog(self) -> Catalog:
        """Return the catalog as it is stored now, for decisions for which the cached copy is too old.

        Raises:
            WorkspaceError: UNAVAILABLE ``CATALOG_UNAVAILABLE`` if the store does not respond.
        """
        try:
            return await self._snapshot.load_stored_value()
        except Exception as error:
            raise _build_unavailable_error() from error

    def invalidate(self) -> None:
        """Make the next call of :meth:`get_catalog` check the store.

        Call this after this process has changed the catalog.
        """
        self._snapshot.invalidate()

    async def _load_version_and_catalog(self) -> tuple[CatalogVersion, Catalog]:
        stored = await self._store.load()
        return stored.version, await self._runtime.run_in_thread(build_catalog, stored)


def _build_unavailable_error() -> WorkspaceError:
    detail = "the workspace catalog is temporarily unavailable; try again"
    return WorkspaceError(Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE", detail)


class CatalogDirectory:
    """Implementation of Directory (source of the team for authentication) that reads the team from the catalog."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        self._cached: tuple[int, Team] | None = None

    async def get_team(self) -> Team:
        """Return the team in the current version of the catalog.

        Raises:
            WorkspaceError: the same errors as :meth:`CatalogReader.get_catalog`.
        """
        catalog = await self._catalog.get_catalog()
        if self._cached is None or self._cached[0] != catalog.version:
            workspace = "" if catalog.workspace is None else catalog.workspace.id
            audited = catalog.policies.provenance is not None
            signatures = catalog.policies.signatures
            max_age = signatures.max_age_seconds if signatures.is_required else None
            states, unreadable = _map_states_by_member_id(catalog), _find_unreadable_member_ids(catalog)
            cutoffs = {key: _get_credential_cutoff(state) for key, state in states.items()}
            service_ends = {key: state.service_until for key, state in states.items() if state.service_until}
            team = Team(workspace, catalog.members, audited, cutoffs, max_age, unreadable, service_ends)
            self._cached = (catalog.version, team)
        return self._cached[1]


def _find_unreadable_member_ids(catalog: Catalog) -> frozenset[str]:
    stored = (item.key for item in catalog.items.values() if item.kind == ItemKind.MEMBER)
    return frozenset(key for key in stored if key not in catalog.members)


def _map_states_by_member_id(catalog: Catalog) -> dict[str, MemberState]:
    return {
        item.key: MemberState.model_validate(item.definition)
        for item in catalog.items.values()
        if item.kind == ItemKind.MEMBER_STATE
    }


def _get_credential_cutoff(state: MemberState) -> CredentialCutoff:
    return CredentialCutoff(
        keys=state.retired_at,
        tokens=max((at for at in (state.tokens_valid_from, state.retired_at) if at is not None), default=None),
    )


def build_catalog(stored: StoredCatalog) -> Catalog:
    """Parse stored items and build the catalog from them.

    An item that this version of the service cannot parse is skipped and logged: a newer version may have written it.

    Raises:
        pydantic.ValidationError: if the workspace or its settings cannot be parsed.
    """
    by_kind: dict[str, list[CatalogItem]] = {}
    for item in stored.items:
        by_kind.setdefault(item.kind, []).append(item)
    singletons = {item.kind: item.definition for item in stored.items if item.key == SINGLETON_KEY}
    settings = WorkspaceSettings.model_validate(singletons.get(ItemKind.SETTINGS, {}))
    workspace = singletons.get(ItemKind.WORKSPACE)
    return Catalog(
        version=stored.version,
        workspace=None if workspace is None else WorkspaceInfo.model_validate(workspace),
        tier=settings.tier,
        limits=settings.limits,
        policies=settings.policies,
        members={key: member.value for key, member in _parse_members(by_kind).items()},
        connections=_parse_items(Connection, by_kind, ItemKind.CONNECTION),
        surfaces=_parse_items(Surface, by_kind, ItemKind.SURFACE),
        queries=_parse_items(StoredWarmQuery, by_kind, ItemKind.WARM_QUERY),
        data_stores=_copy_stores_with_containers(
            _parse_items(DataStore, by_kind, ItemKind.DATA_STORE), _parse_items(Container, by_kind, ItemKind.CONTAINER)
        ),
        alert_rules=_parse_items(AlertRule, by_kind, ItemKind.ALERT_RULE),
        oauth_clients=_parse_items(OAuthClient, by_kind, ItemKind.OAUTH_CLIENT),
        items={(item.kind, item.key): item for item in stored.items},
    )


def _parse_members(items_by_kind: Mapping[str, list[CatalogItem]]) -> dict[str, CatalogEntry[Member]]:
    """Parse the members; omit unknown access rights, because credentials of a member that is not parsed are refused."""
    items = [
        replace(item, definition=select_known_rights_of_member(item.definition))
        for item in items_by_kind.get(ItemKind.MEMBER, ())
    ]
    return _parse_items(Member, {ItemKind.MEMBER: items}, ItemKind.MEMBER)


def _parse_items[M: Model](
    model: type[M], items_by_kind: Mapping[str, list[CatalogItem]], kind: ItemKind
) -> dict[str, CatalogEntry[M]]:
    entries: dict[str, CatalogEntry[M]] = {}
    for item in items_by_kind.get(kind, ()):
        try:
            value = model.model_validate(item.definition)
        except ValidationError:
            _LOG.exception("a catalog item cannot be parsed", extra=logs.fields(kind=item.kind, key=item.key))
            continue
        entries[item.key] = CatalogEntry(value, item.created_at, item.updated_at, item.edited_by)
    return entries


def _copy_stores_with_containers(
    stores: Mapping[str, CatalogEntry[DataStore]], containers: Mapping[str, CatalogEntry[Container]]
) -> dict[str, CatalogEntry[DataStore]]:
    by_database: dict[str, list[Container]] = {}
    for key, container in containers.items():
        by_database.setdefault(key.partition("/")[0], []).append(container.value)

    def copy_database_with_containers(database: Database) -> Database:
        return database.model_copy(update={"containers": tuple(by_database.get(database.lookup, ()))})

    return {
        lookup: CatalogEntry(
            store.value.model_copy(
                update={"databases": tuple(map(copy_database_with_containers, store.value.databases))}
            ),
            store.created_at,
            store.updated_at,
            store.edited_by,
        )
        for lookup, store in stores.items()
    }
