"""The catalog in memory, never much older than the store's."""

import asyncio
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from shared.auth.ports import Team
from shared.catalog.items import SINGLETON_KEY, ItemKind, WorkspaceSettings
from shared.catalog.models import (
    Connection,
    Container,
    Database,
    DataStore,
    Member,
    Model,
    Surface,
    WarmQuery,
    WorkspaceInfo,
)
from shared.catalog.ports import CatalogItem, CatalogStore, StoredCatalog
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.versioned_cache import VersionedCache

MAX_STALE_SECONDS: Final = 60.0
"""How long the last good copy serves while the store does not answer."""

_LOG = logs.get_logger("catalog")


class CatalogReader:
    """Gives requests the catalog.

    Args:
        store: where the catalog is kept.
        refresh_seconds: the store's version is asked for at most this often.
        max_stale_seconds: how long the copy serves while the store does not answer.
    """

    def __init__(
        self, store: CatalogStore, refresh_seconds: float, *, max_stale_seconds: float = MAX_STALE_SECONDS
    ) -> None:
        self._store = store
        self._snapshot = VersionedCache(store.version, self._load, max_age=refresh_seconds, max_stale=max_stale_seconds)

    async def current(self) -> Catalog:
        """Return the catalog; the copy in memory when it is young enough, or while the store does not answer.

        Raises:
            WorkspaceError: UNAVAILABLE ``CATALOG_UNAVAILABLE`` when there is no copy, or one that is too old.
        """
        try:
            return await self._snapshot.current()
        except Exception as error:
            detail = "the catalog cannot be read at the moment; try again"
            raise WorkspaceError(Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE", detail) from error

    def invalidate(self) -> None:
        """Make the next call ask the store, after a change made here."""
        self._snapshot.invalidate()

    async def _load(self) -> tuple[int, Catalog]:
        stored = await self._store.load()
        return stored.version, await asyncio.to_thread(build_catalog, stored)


class CatalogDirectory:
    """The Directory port over the catalog."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        self._held: tuple[int, Team] | None = None

    async def team(self) -> Team:
        """Return the team as of the catalog's current version."""
        catalog = await self._catalog.current()
        if self._held is None or self._held[0] != catalog.version:
            workspace = "" if catalog.workspace is None else catalog.workspace.id
            audited = catalog.policies.provenance is not None
            self._held = (catalog.version, Team(workspace, catalog.members, audited))
        return self._held[1]


def build_catalog(stored: StoredCatalog) -> Catalog:
    """Return the snapshot of a stored catalog.

    An item that this version cannot read is left out and logged: a newer version may have written it.

    Raises:
        pydantic.ValidationError: workspace or settings cannot be read.
    """
    by_kind: dict[str, list[CatalogItem]] = {}
    for item in stored.items:
        by_kind.setdefault(item.kind, []).append(item)
    only = {item.kind: item.definition for item in stored.items if item.key == SINGLETON_KEY}
    settings = WorkspaceSettings.model_validate(only.get(ItemKind.SETTINGS, {}))
    workspace = only.get(ItemKind.WORKSPACE)
    return Catalog(
        version=stored.version,
        workspace=None if workspace is None else WorkspaceInfo.model_validate(workspace),
        tier=settings.tier,
        limits=settings.limits,
        policies=settings.policies,
        members={key: member.value for key, member in _read(Member, by_kind, ItemKind.MEMBER).items()},
        connections=_read(Connection, by_kind, ItemKind.CONNECTION),
        surfaces=_read(Surface, by_kind, ItemKind.SURFACE),
        queries=_read(WarmQuery, by_kind, ItemKind.WARM_QUERY),
        data_stores=_with_containers(
            _read(DataStore, by_kind, ItemKind.DATA_STORE), _read(Container, by_kind, ItemKind.CONTAINER)
        ),
    )


def _read[M: Model](
    model: type[M], by_kind: Mapping[str, list[CatalogItem]], kind: ItemKind
) -> dict[str, CatalogEntry[M]]:
    read: dict[str, CatalogEntry[M]] = {}
    for item in by_kind.get(kind, ()):
        try:
            value = model.model_validate(item.definition)
        except ValidationError:
            _LOG.exception("a catalog item cannot be read", extra=logs.fields(kind=item.kind, key=item.key))
            continue
        read[item.key] = CatalogEntry(value, item.created_at, item.updated_at, item.edited_by)
    return read


def _with_containers(
    stores: Mapping[str, CatalogEntry[DataStore]], containers: Mapping[str, CatalogEntry[Container]]
) -> dict[str, CatalogEntry[DataStore]]:
    by_database: dict[str, list[Container]] = {}
    for key, container in containers.items():
        by_database.setdefault(key.partition("/")[0], []).append(container.value)

    def filled(database: Database) -> Database:
        return database.model_copy(update={"containers": tuple(by_database.get(database.lookup, ()))})

    return {
        lookup: CatalogEntry(
            store.value.model_copy(update={"databases": tuple(map(filled, store.value.databases))}),
            store.created_at,
            store.updated_at,
            store.edited_by,
        )
        for lookup, store in stores.items()
    }
