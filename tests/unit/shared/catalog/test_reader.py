"""Tests of the cache of the catalog."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.document import load_document
from shared.catalog.items import definitions_from_document
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.catalog.reader import CatalogReader, build_catalog
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import open_catalog_stores

AT = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENT = load_document(PLANT, "w.yaml")
RENAMED = load_document(PLANT.replace("name: Rig,", "name: New rig,"), "w.yaml")
NEVER = 3600.0
ALWAYS = 0.0


class CountingStore(SqliteCatalogStore):
    """Catalog store that counts calls, and raises the error that a test has set."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.versions = self.loads = 0
        self.down = False
        self.loaded = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def read_version(self) -> int:
        """Count the call and return the version, or raise the error that the test has set."""
        self.versions += 1
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE", "down")
        return await super().read_version()

    async def load(self) -> StoredCatalog:
        """Count the call and return the items, or raise the error that the test has set."""
        self.loads += 1
        loaded = await super().load()
        self.loaded.set()
        if self.gate is not None:
            await self.gate.wait()
        return loaded


async def test_empty_store_gives_empty_catalog(tmp_path: Path) -> None:
    """An empty store has version 0 and no workspace."""
    async with open_catalog_stores(tmp_path) as opened:
        catalog = await CatalogReader(opened.store, NEVER).get_catalog()
    assert (catalog.version, catalog.workspace, catalog.policies.provenance) == (0, None, None)


async def test_catalog_contains_all_declared_items(tmp_path: Path) -> None:
    """The catalog contains all declared items, with containers in their databases."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        catalog = await CatalogReader(opened.store, NEVER).get_catalog()
    assert catalog.workspace == DOCUMENT.workspace
    assert catalog.policies == DOCUMENT.policies
    assert catalog.members == {member.id: member for member in DOCUMENT.team}
    assert {key: stored.value for key, stored in catalog.connections.items()} == {
        c.lookup: c for c in DOCUMENT.connections
    }
    (orders,) = catalog.data_stores["mes"].value.databases
    assert {container.name for container in orders.containers} == {"workorders", "recipes"}
    assert catalog.list_surface_lookups_of_connection("sim") == ("cooling",)
    query = catalog.find_query("cooling/q1")
    assert query is not None
    assert (query.value.model_dump(exclude={"rejection"}), query.edited_by) == (
        DOCUMENT.warm_queries[0].model_dump(),
        "apply",
    )
    assert catalog.find_query("q1") is query
    assert catalog.find_query("nothing") is None


async def test_recent_catalog_is_used_without_store_call(tmp_path: Path) -> None:
    """Until the refresh time is over, the store is not called, unless the cache is invalidated."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        reader = CatalogReader(opened.store, NEVER)
        first = await reader.get_catalog()
        await opened.service.apply(RENAMED, "apply")
        assert await reader.get_catalog() is first
        reader.invalidate()
        assert (await reader.get_catalog()).connections["rig"].value.name == "New rig"


async def test_catalog_is_reloaded_only_for_new_version(tmp_path: Path) -> None:
    """A refresh reads only the version of the catalog; concurrent callers share one load of a new version."""
    database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
    store = CountingStore(database)
    reader = CatalogReader(store, ALWAYS)
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await asyncio.gather(*(reader.get_catalog() for _ in range(20)))
        assert store.loads == 1
        await opened.service.apply(RENAMED, "apply")
        catalogs = await asyncio.gather(*(reader.get_catalog() for _ in range(20)))
    await database.close()
    assert store.loads == 2
    assert {catalog.connections["rig"].value.name for catalog in catalogs} == {"New rig"}


async def test_a_catalog_change_during_a_load_is_not_lost(tmp_path: Path) -> None:
    """If the cache is invalidated during a load, the next call reads the version again."""
    database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
    store = CountingStore(database)
    store.gate = asyncio.Event()
    reader = CatalogReader(store, NEVER)
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        reading = asyncio.create_task(reader.get_catalog())
        await store.loaded.wait()
        await opened.service.apply(RENAMED, "apply")
        reader.invalidate()
        store.gate.set()
        assert (await reading).connections["rig"].value.name == "Rig"
        assert (await reader.get_catalog()).connections["rig"].value.name == "New rig"
    await database.close()


async def test_cached_catalog_is_used_while_store_is_unavailable(tmp_path: Path) -> None:
    """While the store is unavailable, the cached catalog is used up to a maximum age."""
    database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
    store = CountingStore(database)
    patient, hasty = CatalogReader(store, ALWAYS), CatalogReader(store, ALWAYS, max_stale_seconds=-1.0)
    first = await patient.get_catalog()
    await hasty.get_catalog()
    store.down = True
    assert await patient.get_catalog() is first
    with pytest.raises(WorkspaceError) as caught:
        await hasty.get_catalog()
    store.down = False
    assert await hasty.get_catalog() is not None
    await database.close()
    assert caught.value.kind is Kind.UNAVAILABLE


async def test_unavailable_store_is_not_called_for_each_request(tmp_path: Path) -> None:
    """After a failed refresh, the cached catalog is used, and the store is not called until the next refresh."""
    database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
    store = CountingStore(database)
    reader = CatalogReader(store, NEVER)
    await reader.get_catalog()
    store.down = True
    reader.invalidate()
    for _ in range(5):
        await reader.get_catalog()
    await database.close()
    assert store.versions == 1


async def test_unavailable_store_without_cache_raises_an_error(tmp_path: Path) -> None:
    """If the store is unavailable and the catalog was never loaded, callers get UNAVAILABLE."""
    store = SqliteCatalogStore(SqliteDatabase(tmp_path, SCHEMA))  # a folder cannot be opened
    with pytest.raises(WorkspaceError) as caught:
        await CatalogReader(store, NEVER).get_catalog()
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE")


def test_unreadable_item_is_skipped() -> None:
    """An item in a newer format is skipped, and all other items are loaded."""
    items = [
        CatalogItem(kind, key, found, ItemOrigin.DECLARED, AT, AT, "x")
        for (kind, key), found in definitions_from_document(DOCUMENT).items()
    ]
    damaged = [replace(item, definition={"newer": True}) if item.key == "rig" else item for item in items]
    catalog = build_catalog(StoredCatalog(1, (*damaged, CatalogItem("novelty", "n", {}, ItemOrigin.API, AT, AT, "x"))))
    assert set(catalog.connections) == {"sim"}
    assert set(catalog.queries) == {"q1", "q2"}


def test_a_query_in_a_large_catalog_is_found_with_an_index() -> None:
    """In a catalog of ten thousand items, a query is found by its path with an index."""
    query = definitions_from_document(DOCUMENT)["warmQuery", "q1"]
    items = tuple(
        CatalogItem(
            "warmQuery", f"q{n}", {**query, "lookup": f"q{n}", "apiPath": f"path/{n}"}, ItemOrigin.API, AT, AT, "x"
        )
        for n in range(10_000)
    )
    catalog = build_catalog(StoredCatalog(1, items))
    found = [catalog.find_query(f"path/{n}") for n in range(10_000)]
    assert [query.value.lookup for query in found if query] == [f"q{n}" for n in range(10_000)]


def test_item_that_violates_newer_rule_is_loaded() -> None:
    """A stored member is loaded even if its id violates a newer rule."""
    definition = {"id": "ann ", "name": "Ann\u200b", "role": "Viewer"}
    item = CatalogItem("member", "ann ", definition, ItemOrigin.DECLARED, AT, AT, "apply")
    assert build_catalog(StoredCatalog(1, (item,))).members["ann "].name == "Ann\u200b"


def test_a_member_with_an_unknown_right_has_its_other_rights() -> None:
    """A right that only a newer version of the service knows is left out, and the member stays in the team."""
    definition = {"id": "ann", "name": "Ann", "role": "Viewer", "rights": ["Workspace.Newer.Use", "Workspace.Mcp.Use"]}
    item = CatalogItem("member", "ann", definition, ItemOrigin.API, AT, AT, "x")
    assert build_catalog(StoredCatalog(1, (item,))).members["ann"].rights == ("Workspace.Mcp.Use",)
