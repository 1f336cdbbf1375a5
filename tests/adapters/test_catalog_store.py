"""Tests that every catalog store meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.backends.azure.cosmos_catalog import CosmosCatalogStore
from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.ports import CatalogItem, CatalogStore, ItemOrigin, PendingEvent
from shared.errors import Kind, WorkspaceError
from tests.adapters.cosmos import KINDS, open_accounts

AT = datetime(2026, 1, 5, 8, 0, 0, 123456, tzinfo=UTC)
RIG = CatalogItem(
    "connection", "rig", {"name": "Rig", "n": [1, 2.5, None, True, "é", 2**53 + 1]}, ItemOrigin.DECLARED, AT, AT, "a"
)
MINE = CatalogItem("warmQuery", "mine", {"name": "Mine"}, ItemOrigin.API, AT, AT, "editor")
EVENTS = [PendingEvent(f"id-{n}", "PlatformConfig", "admin", {"EntityID": str(n)}) for n in range(3)]
type Opener = Callable[[], CatalogStore]
"""Opens the one catalog, each time as another process does."""


@asynccontextmanager
async def open_sqlite(folder: Path) -> AsyncIterator[Opener]:
    """Open the embedded store."""
    opened: list[SqliteDatabase] = []

    def open_another() -> CatalogStore:
        opened.append(SqliteDatabase(folder / "workspace.sqlite", SCHEMA))
        return SqliteCatalogStore(opened[-1])

    yield open_another
    for database in opened:
        await database.close()


@pytest.fixture(params=["sqlite", *KINDS, "cosmos small batches"])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call; tests run with each kind of store."""
    if request.param == "sqlite":
        async with open_sqlite(tmp_path) as another:
            yield another
        return
    small = request.param not in KINDS
    async with open_accounts("cosmos failing" if small else request.param) as account:
        # Batches are so small that most items of a change are stored before the batch with the new head item.
        yield lambda: CosmosCatalogStore(account(), **({"batch_bytes": 600} if small else {}))


@pytest.fixture
def store(open_store: Opener) -> CatalogStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


async def test_a_new_store_is_version_0_and_empty(store: CatalogStore) -> None:
    """A new store has version 0, no items and no events."""
    loaded = await store.load()
    assert (await store.read_version(), loaded.version, loaded.items) == (0, 0, ())
    assert list(await store.list_pending_events()) == []
    await store.delete_pending_events(["unknown"])


async def test_catalog_items_are_loaded_as_saved(store: CatalogStore) -> None:
    """Items of each kind are loaded exactly as they were saved."""
    assert await store.save([MINE, RIG], [], [], 0) == 1
    loaded = await store.load()
    assert (loaded.version, loaded.items) == (1, (RIG, MINE))


async def test_each_save_increments_the_version(store: CatalogStore) -> None:
    """Each save increments the version."""
    await store.save([RIG, MINE], [], [], 0)
    renamed = replace(RIG, definition={"name": "New"})
    assert await store.save([renamed], [("warmQuery", "mine"), ("warmQuery", "never-was")], [], 1) == 2
    assert (await store.load()).items == (renamed,)
    assert await store.save([], [("connection", "rig")], [], 2) == 3
    assert (await store.load()).items == ()


async def test_a_save_based_on_an_old_version_changes_nothing(store: CatalogStore) -> None:
    """A save that is based on an old version raises CATALOG_CHANGED and changes nothing."""
    await store.save([RIG], [], EVENTS[:1], 0)
    for expected in (0, 2):
        with pytest.raises(WorkspaceError) as caught:
            await store.save([MINE], [("connection", "rig")], EVENTS[1:], expected)
        assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "CATALOG_CHANGED")
    assert (await store.load()).items == (RIG,)
    assert (await store.read_version(), list(await store.list_pending_events())) == (1, EVENTS[:1])


async def test_a_failed_save_stores_nothing(store: CatalogStore) -> None:
    """If an append id of a save is already pending, the save fails and stores no item."""
    await store.save([RIG], [], EVENTS[:1], 0)
    with pytest.raises(WorkspaceError):
        await store.save([MINE], [], [EVENTS[1], EVENTS[0]], 1)
    assert (await store.load()).items == (RIG,)
    assert list(await store.list_pending_events()) == EVENTS[:1]


async def test_pending_events_are_listed_in_order_until_they_are_deleted(store: CatalogStore) -> None:
    """Pending events are listed oldest first until they are deleted; deleting them does not change the version."""
    await store.save([RIG], [], EVENTS[:2], 0)
    await store.save([MINE], [], EVENTS[2:], 1)
    assert list(await store.list_pending_events()) == EVENTS
    await store.delete_pending_events([EVENTS[1].append_id, "unknown"])
    assert list(await store.list_pending_events()) == [EVENTS[0], EVENTS[2]]
    await store.delete_pending_events([EVENTS[0].append_id, EVENTS[2].append_id])
    assert list(await store.list_pending_events()) == []
    assert (await store.read_version(), len((await store.load()).items)) == (2, 2)


async def test_a_large_change_of_the_catalog_is_atomic(open_store: Opener) -> None:
    """A change of hundreds of items and several megabytes is stored completely or not at all."""
    items = [replace(RIG, key=f"rig-{n:03d}", definition={"n": n, "text": "x" * 9_000}) for n in range(250)]
    events = [PendingEvent(f"id-{n:03d}", "PlatformConfig", "admin", {"EntityID": "x" * 100}) for n in range(250)]
    assert await open_store().save(items, [], events, 0) == 1
    loaded = await open_store().load()
    assert loaded.items == tuple(items)
    assert list(await open_store().list_pending_events()) == events
    assert await open_store().save([], [(item.kind, item.key) for item in items], [], 1) == 2
    await open_store().delete_pending_events([event.append_id for event in events[:100]])
    assert (await open_store().load()).items == ()
    assert list(await open_store().list_pending_events()) == events[100:]


async def test_one_of_simultaneous_saves_of_the_catalog_succeeds(open_store: Opener) -> None:
    """If several saves are based on the same version, one succeeds."""
    stores = [open_store() for _ in range(4)]
    items = [replace(RIG, key=f"rig-{n}") for n in range(4)]
    results = await asyncio.gather(
        *(store.save([item], [], [], 0) for store, item in zip(stores, items, strict=True)), return_exceptions=True
    )
    assert results.count(1) == 1
    assert (await stores[0].load()).items == (items[results.index(1)],)


async def test_a_read_returns_items_of_one_version(open_store: Opener) -> None:
    """A read returns the items of one version, even while other processes save."""
    writer, reader = open_store(), open_store()
    await writer.save([replace(RIG, key=f"rig-{n}", definition={"version": 1}) for n in range(5)], [], [], 0)

    async def save_repeatedly() -> None:
        for version in range(1, 11):
            items = [replace(RIG, key=f"rig-{n}", definition={"version": version + 1}) for n in range(5)]
            await writer.save(items, [], [], version)

    writing = asyncio.create_task(save_repeatedly())
    while not writing.done():
        loaded = await reader.load()
        assert {item.definition["version"] for item in loaded.items} == {loaded.version}
    await writing
    assert (await reader.load()).version == 11
