"""Tests of the catalog in SQLite that do not apply to other stores."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.ports import CatalogItem, ItemOrigin
from shared.errors import Kind, WorkspaceError

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


async def test_a_saved_catalog_survives_a_reopening(tmp_path: Path) -> None:
    """If a catalog file is opened again, also by another process, the same catalog is read."""
    for expected in (0, 1):
        database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
        item = CatalogItem("connection", f"rig-{expected}", {}, ItemOrigin.DECLARED, AT, AT, "admin")
        await SqliteCatalogStore(database).save([item], [], [], expected)
        await database.close()
    with sqlite3.connect(tmp_path / "workspace.sqlite") as file:
        assert file.execute("SELECT count(*) FROM catalog_items").fetchone() == (2,)
    file.close()


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    """If its file cannot be opened, a store raises UNAVAILABLE with an error that contains no paths."""
    store = SqliteCatalogStore(SqliteDatabase(tmp_path, SCHEMA))
    with pytest.raises(WorkspaceError) as caught:
        await store.load()
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE")
    assert str(tmp_path) not in caught.value.detail
