"""The catalog in SQLite keeps what its port promises."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.sqlite import Database
from shared.catalog.ports import Item, Origin, PendingEvent
from shared.errors import Kind, WorkspaceError

AT = datetime(2026, 1, 5, 8, 0, 0, 123456, tzinfo=UTC)
RIG = Item("connection", "rig", {"name": "Rig", "n": [1, 2.5, None, True, "é"]}, Origin.DECLARED, AT, AT, "admin")
MINE = Item("warmQuery", "mine", {"name": "Mine"}, Origin.API, AT, AT, "editor")
EVENTS = [PendingEvent(f"id-{n}", "PlatformConfig", "admin", {"EntityID": str(n)}) for n in range(3)]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A file with the catalog's tables."""
    opened = Database(tmp_path / "workspace.sqlite", SCHEMA)
    yield opened
    await opened.close()


async def test_a_new_file_is_version_0_and_empty(database: Database) -> None:
    """Before the first change there are no items and no events."""
    store = SqliteCatalogStore(database)
    loaded = await store.load()
    assert (await store.version(), loaded.version, loaded.items) == (0, 0, ())
    assert list(await store.pending_events()) == []


async def test_items_come_back_as_saved(database: Database) -> None:
    """Definition, origin, times to the microsecond and editor survive, by kind and key."""
    store = SqliteCatalogStore(database)
    assert await store.save([MINE, RIG], [], [], 0) == 1
    loaded = await store.load()
    assert (loaded.version, loaded.items) == (1, (RIG, MINE))


async def test_a_put_replaces_and_a_delete_removes(database: Database) -> None:
    """Each save moves the version by one."""
    store = SqliteCatalogStore(database)
    await store.save([RIG, MINE], [], [], 0)
    renamed = replace(RIG, definition={"name": "New"})
    assert await store.save([renamed], [("warmQuery", "mine"), ("warmQuery", "never-was")], [], 1) == 2
    assert (await store.load()).items == (renamed,)


async def test_a_save_on_an_old_version_changes_nothing(database: Database) -> None:
    """A stale writer gets CATALOG_CHANGED; items, events and version stay."""
    store = SqliteCatalogStore(database)
    await store.save([RIG], [], EVENTS[:1], 0)
    for expected in (0, 2):
        with pytest.raises(WorkspaceError) as caught:
            await store.save([MINE], [("connection", "rig")], EVENTS[1:], expected)
        assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "CATALOG_CHANGED")
    assert (await store.load()).items == (RIG,)
    assert (await store.version(), list(await store.pending_events())) == (1, EVENTS[:1])


async def test_a_save_that_fails_half_way_leaves_nothing(database: Database) -> None:
    """Items do not stay without their events: an append id that is already pending undoes the whole save."""
    store = SqliteCatalogStore(database)
    await store.save([RIG], [], EVENTS[:1], 0)
    with pytest.raises(WorkspaceError):
        await store.save([MINE], [], [EVENTS[1], EVENTS[0]], 1)
    assert (await store.load()).items == (RIG,)
    assert list(await store.pending_events()) == EVENTS[:1]


async def test_events_wait_in_order_until_settled(database: Database) -> None:
    """Pending events come oldest first; settling forgets those named, known or not."""
    store = SqliteCatalogStore(database)
    await store.save([RIG], [], EVENTS[:2], 0)
    await store.save([MINE], [], EVENTS[2:], 1)
    assert list(await store.pending_events()) == EVENTS
    await store.settle([EVENTS[1].append_id, "unknown"])
    assert list(await store.pending_events()) == [EVENTS[0], EVENTS[2]]


async def test_of_simultaneous_saves_one_wins(tmp_path: Path) -> None:
    """Writers that decided on the same version never overwrite each other."""
    databases = [Database(tmp_path / "workspace.sqlite", SCHEMA) for _ in range(4)]
    stores = [SqliteCatalogStore(database) for database in databases]
    items = [replace(RIG, key=f"rig-{n}") for n in range(4)]
    results = await asyncio.gather(
        *(store.save([item], [], [], 0) for store, item in zip(stores, items, strict=True)), return_exceptions=True
    )
    loaded = await stores[0].load()
    for database in databases:
        await database.close()
    assert results.count(1) == 1
    assert loaded.items == (items[results.index(1)],)


async def test_what_was_saved_survives_a_reopening(tmp_path: Path) -> None:
    """Another process, or the next start, sees the same catalog."""
    for expected in (0, 1):
        database = Database(tmp_path / "workspace.sqlite", SCHEMA)
        await SqliteCatalogStore(database).save([replace(RIG, key=f"rig-{expected}")], [], [], expected)
        await database.close()
    with sqlite3.connect(tmp_path / "workspace.sqlite") as file:
        assert file.execute("SELECT count(*) FROM catalog_items").fetchone() == (2,)
    file.close()


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    """A store without its file says so in the service's terms, without paths."""
    store = SqliteCatalogStore(Database(tmp_path, SCHEMA))
    with pytest.raises(WorkspaceError) as caught:
        await store.load()
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE")
    assert str(tmp_path) not in caught.value.detail
