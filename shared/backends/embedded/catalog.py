"""Catalog (the workspace's definitions) in SQLite: items, version number, and audit events not yet appended."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.catalog.ports import CatalogItem, ItemOrigin, PendingEvent, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.timestamps import format_rfc3339, parse_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS catalog_version (only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS catalog_items (
  kind TEXT NOT NULL, key TEXT NOT NULL, definition TEXT NOT NULL, origin TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, edited_by TEXT NOT NULL, PRIMARY KEY (kind, key)
);
CREATE TABLE IF NOT EXISTS catalog_outbox (
  position INTEGER PRIMARY KEY AUTOINCREMENT, append_id TEXT NOT NULL UNIQUE, target TEXT NOT NULL,
  user_id TEXT NOT NULL, event TEXT NOT NULL
);
"""
"""Statements that create missing tables; the file can contain tables of other stores."""


class SqliteCatalogStore:
    """Implementation of CatalogStore: stores catalog items and the audit events of their changes in a SQLite file.

    Args:
        database: open database whose schema statements include :data:`SCHEMA`.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read_version(self) -> int:
        with _convert_sqlite_errors():
            return await self._database.read(_read_version)

    async def load(self) -> StoredCatalog:
        with _convert_sqlite_errors():
            return await self._database.read(_load_catalog)

    async def save(
        self,
        puts: Sequence[CatalogItem],
        kinds_and_keys_to_delete: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: int,
    ) -> int:
        def save_changes(connection: sqlite3.Connection) -> int:
            if _read_version(connection) != expected_version:
                raise WorkspaceError(
                    Kind.CONFLICT, "CATALOG_CHANGED", "The catalog has changed since it was read; read it again."
                )
            connection.executemany(
                "INSERT OR REPLACE INTO catalog_items VALUES (?,?,?,?,?,?,?)", map(_item_to_row, puts)
            )
            connection.executemany("DELETE FROM catalog_items WHERE kind = ? AND key = ?", kinds_and_keys_to_delete)
            connection.executemany(
                "INSERT INTO catalog_outbox (append_id, target, user_id, event) VALUES (?,?,?,?)",
                _events_to_rows(events),
            )
            connection.execute("INSERT OR REPLACE INTO catalog_version VALUES (1, ?)", (expected_version + 1,))
            return expected_version + 1

        with _convert_sqlite_errors():
            return await self._database.write(save_changes)

    async def list_pending_events(self) -> Sequence[PendingEvent]:
        with _convert_sqlite_errors():
            return await self._database.read(_read_pending_events)

    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:
        ids = [(append_id,) for append_id in append_ids]

        def delete_events(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM catalog_outbox WHERE append_id = ?", ids)

        with _convert_sqlite_errors():
            await self._database.write(delete_events)


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("CATALOG_UNAVAILABLE", "the catalog")


def _read_version(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT version FROM catalog_version").fetchone()
    return int(row[0]) if row else 0


def _load_catalog(connection: sqlite3.Connection) -> StoredCatalog:
    rows = connection.execute("SELECT * FROM catalog_items ORDER BY kind, key")
    items = tuple(
        CatalogItem(
            kind,
            key,
            json.loads(definition),
            ItemOrigin(origin),
            parse_rfc3339(created),
            parse_rfc3339(updated),
            editor,
        )
        for kind, key, definition, origin, created, updated, editor in rows
    )
    return StoredCatalog(_read_version(connection), items)


def _read_pending_events(connection: sqlite3.Connection) -> list[PendingEvent]:
    rows = connection.execute("SELECT append_id, target, user_id, event FROM catalog_outbox ORDER BY position")
    return [PendingEvent(append_id, target, user_id, json.loads(event)) for append_id, target, user_id, event in rows]


def _item_to_row(item: CatalogItem) -> tuple[str, ...]:
    times = format_rfc3339(item.created_at), format_rfc3339(item.updated_at)
    return item.kind, item.key, json.dumps(item.definition), item.origin, *times, item.edited_by


def _events_to_rows(events: Iterable[PendingEvent]) -> Iterable[tuple[str, ...]]:
    return ((event.append_id, event.target, event.user_id, json.dumps(event.event)) for event in events)
