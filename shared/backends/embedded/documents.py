"""Containers and JSON documents of all document stores of the workspace, in one SQLite file."""

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

from shared.backends.embedded.sqlite import ReadBatcher, SqliteDatabase, WriteBatcher, convert_sqlite_errors
from shared.conditional_requests import build_precondition_failed_error
from shared.data_stores.continuation import FIELD
from shared.data_stores.errors import (
    build_container_exists_error,
    build_document_exists_error,
    build_document_not_found_error,
)
from shared.data_stores.models import (
    AccountContainer,
    DatabaseAddress,
    DocumentKey,
    DocumentPage,
    ETag,
    PartitionValue,
    StoredDocument,
    Table,
)
from shared.data_stores.partition_keys import format_partition_key
from shared.errors import build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME, Runtime

SCHEMA = """
CREATE TABLE IF NOT EXISTS containers (
  store TEXT NOT NULL, database TEXT NOT NULL, name TEXT NOT NULL, partition_key_path TEXT NOT NULL,
  PRIMARY KEY (store, database, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  store TEXT NOT NULL, database TEXT NOT NULL, container TEXT NOT NULL, partition_key TEXT NOT NULL, id TEXT NOT NULL,
  etag TEXT NOT NULL, document BLOB NOT NULL,
  PRIMARY KEY (store, database, container, partition_key, id)
);
"""
PAGE_BYTES: Final = 8 * 1024 * 1024
"""Size in bytes after which a page of documents ends, even if it has fewer documents than requested."""

_BY_KEY: Final = "store = ? AND database = ? AND container = ? AND partition_key = ? AND id = ?"
_ETAG_BYTES: Final = 8

type ListDeclared = Callable[[DatabaseAddress], Awaitable[Iterable[AccountContainer]]]
"""Function that returns the containers that the workspace declares for a database."""


class DocumentFile:
    """SQLite file with the documents of all document stores.

    It has separate database connections for reads and writes, so that reads do not wait for writes.

    Args:
        folder: folder that contains the file.
        runtime: clock, randomness and threads.
    """

    def __init__(self, folder: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        path = folder / "documents.sqlite"
        self.runtime = runtime
        self.reads = SqliteDatabase(path, SCHEMA, runtime=runtime)
        self.writes = WriteBatcher(SqliteDatabase(path, SCHEMA, runtime=runtime))

    async def close(self) -> None:
        """Wait for running reads and writes, and close the file."""
        await self.writes.close()
        await self.reads.close()


class SqliteContainerStore:
    """Implementation of ContainerStore: stores containers in SQLite.

    Before it lists the containers of a database, it creates those that the workspace declares but that do not exist.

    Args:
        file: SQLite file with the documents of all document stores.
        list_declared: returns the containers that the workspace declares for a database.
    """

    def __init__(self, file: DocumentFile, list_declared: ListDeclared) -> None:
        self._reads = file.reads
        self._writes = file.writes
        self._list_declared = list_declared

    async def list(self, database: DatabaseAddress) -> Sequence[AccountContainer]:
        declared = {container.name: container for container in await self._list_declared(database)}
        with _convert_sqlite_errors():
            found = await self._reads.read(lambda connection: _map_containers_by_name(connection, database))
            missing = [container for name, container in declared.items() if name not in found]
            if missing:
                await self._writes.write(
                    lambda connection: _insert_and_count_missing_containers(connection, database, missing)
                )
                found = await self._reads.read(lambda connection: _map_containers_by_name(connection, database))
        return [found[name] for name in sorted(found)]

    async def find_container(self, database: DatabaseAddress, name: str) -> AccountContainer | None:
        return next((container for container in await self.list(database) if container.name == name), None)

    async def create_container(self, database: DatabaseAddress, container: AccountContainer) -> None:
        with _convert_sqlite_errors():
            created = await self._writes.write(
                lambda connection: _insert_and_count_missing_containers(connection, database, [container])
            )
        if not created and container not in await self._list_declared(database):
            raise build_container_exists_error()


class SqliteDocumentStore:
    """Implementation of DocumentStore: stores documents in SQLite.

    Args:
        file: SQLite file with the documents of all document stores.
    """

    def __init__(self, file: DocumentFile) -> None:
        self._reads = file.reads
        self._runtime = file.runtime
        self._point_reads = ReadBatcher(file.reads)
        self._writes = file.writes

    async def read(self, table: Table, key: DocumentKey) -> StoredDocument | None:
        sql, values = f"SELECT document, etag FROM documents WHERE {_BY_KEY}", _build_row_key(table, key)  # noqa: S608  own text
        with _convert_sqlite_errors():
            row = await self._point_reads.read(lambda connection: connection.execute(sql, values).fetchone())
        return None if row is None else StoredDocument(*row)

    async def create(self, table: Table, key: DocumentKey, document_json: bytes) -> ETag:
        row = (*_build_row_key(table, key), self._create_etag(), document_json)
        sql = "INSERT OR IGNORE INTO documents VALUES (?,?,?,?,?,?,?)"
        with _convert_sqlite_errors():
            created = await self._writes.write(lambda connection: connection.execute(sql, row).rowcount)
        if not created:
            raise build_document_exists_error()
        return row[-2]

    async def replace(self, table: Table, key: DocumentKey, document_json: bytes, if_match: str | None) -> ETag:
        etag = self._create_etag()
        sql = f"UPDATE documents SET etag = ?, document = ? WHERE {_BY_KEY}"  # noqa: S608  own text

        def update_document(connection: sqlite3.Connection) -> None:
            _require_document_with_etag(connection, table, key, if_match)
            connection.execute(sql, (etag, document_json, *_build_row_key(table, key)))

        with _convert_sqlite_errors():
            await self._writes.write(update_document)
        return etag

    async def delete(self, table: Table, key: DocumentKey, if_match: str | None) -> None:
        def delete_document(connection: sqlite3.Connection) -> None:
            _require_document_with_etag(connection, table, key, if_match)
            connection.execute(f"DELETE FROM documents WHERE {_BY_KEY}", _build_row_key(table, key))  # noqa: S608  own text

        with _convert_sqlite_errors():
            await self._writes.write(delete_document)

    async def list(
        self, table: Table, partition: PartitionValue, limit: int, after_position: str | None, *, all_partitions: bool
    ) -> DocumentPage:
        place, low = (
            _build_container_key(table),
            ("", "") if after_position is None else _parse_partition_and_id_of_page_token(after_position),
        )
        if all_partitions:
            column, where, values = "partition_key", "(partition_key, id) > (?, ?)", (*place, *low)
        else:
            # The token of a page lacks the partition key, so that a URL has space for the token and a long key.
            key = format_partition_key(partition)
            column, where, values = "''", "partition_key = ? AND id > ?", (*place, key, low[1])
        sql = (
            f"SELECT {column}, id, document FROM documents WHERE store = ? AND database = ? AND container = ? "  # noqa: S608  own text
            f"AND {where} ORDER BY partition_key, id LIMIT {limit + 1}"
        )
        with _convert_sqlite_errors():
            return await self._reads.read(
                lambda connection: _build_document_page(connection.execute(sql, values), limit)
            )

    def _create_etag(self) -> str:
        return f'"{self._runtime.random_bytes(_ETAG_BYTES).hex()}"'


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("DATA_STORE_UNAVAILABLE", "the data store")


class _ContainerKey(NamedTuple):
    """Values of the columns that identify a container."""

    store: str
    database: str
    container: str


class _RowKey(NamedTuple):
    """Values of the columns that identify a document."""

    store: str
    database: str
    container: str
    partition_key: str
    document_id: str


def _build_container_key(table: Table) -> _ContainerKey:
    return _ContainerKey(table.place.store, table.place.database, table.container.name)


def _build_row_key(table: Table, key: DocumentKey) -> _RowKey:
    return _RowKey(*_build_container_key(table), format_partition_key(key.partition), key.id)


def _require_document_with_etag(
    connection: sqlite3.Connection, table: Table, key: DocumentKey, if_match: str | None
) -> None:
    sql = f"SELECT etag FROM documents WHERE {_BY_KEY}"  # noqa: S608  own text
    row = connection.execute(sql, _build_row_key(table, key)).fetchone()
    if row is None:
        raise build_document_not_found_error()
    if if_match is not None and row[0] != if_match:
        raise build_precondition_failed_error()


def _map_containers_by_name(connection: sqlite3.Connection, database: DatabaseAddress) -> dict[str, AccountContainer]:
    sql = "SELECT name, partition_key_path FROM containers WHERE store = ? AND database = ?"
    rows = connection.execute(sql, (database.store, database.database))
    return {name: AccountContainer(name, path) for name, path in rows}


def _insert_and_count_missing_containers(
    connection: sqlite3.Connection, database: DatabaseAddress, containers: Iterable[AccountContainer]
) -> int:
    rows = [
        (database.store, database.database, container.name, container.partition_key_path) for container in containers
    ]
    return connection.executemany("INSERT OR IGNORE INTO containers VALUES (?,?,?,?)", rows).rowcount


def _build_document_page(rows: sqlite3.Cursor, limit: int) -> DocumentPage:
    texts: list[bytes] = []
    size, last = 0, ("", "")
    for partition, document_id, document in rows:
        if len(texts) == limit or size > PAGE_BYTES:
            return DocumentPage(tuple(texts), json.dumps(last))
        texts.append(document)
        size, last = size + len(document), (partition, document_id)
    return DocumentPage(tuple(texts), None)


def _parse_partition_and_id_of_page_token(page_token: str) -> tuple[str, str]:
    try:
        partition, document_id = json.loads(page_token)
    except ValueError:
        raise build_invalid_field_error(
            FIELD, "does not belong to this list; send the token of the previous page"
        ) from None
    return str(partition), str(document_id)
