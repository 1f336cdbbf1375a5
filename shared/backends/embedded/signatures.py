"""Refused attempts to sign, uses of sign-ins for signatures, and the index of all signatures, in SQLite."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Final

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.provenance.ports import ChainKey
from shared.signatures.ports import (
    AttemptsJson,
    Change,
    IndexedSignature,
    IndexProgress,
    SignatureFilter,
    SignInUseJson,
)
from shared.timestamps import format_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS signature_attempts (
  member TEXT PRIMARY KEY, has_pending INTEGER NOT NULL, content TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pending_signature_attempts ON signature_attempts (member) WHERE has_pending;
CREATE TABLE IF NOT EXISTS signature_sign_ins (
  name TEXT PRIMARY KEY, changed_at TEXT NOT NULL, content TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS signature_sign_ins_by_age ON signature_sign_ins (changed_at);
CREATE TABLE IF NOT EXISTS listed_signatures (
  place TEXT PRIMARY KEY, target TEXT NOT NULL, scope TEXT NOT NULL, user_id TEXT NOT NULL, content TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS listed_signatures_by_user ON listed_signatures (user_id, place);
CREATE INDEX IF NOT EXISTS listed_signatures_by_chain ON listed_signatures (target, scope);
CREATE TABLE IF NOT EXISTS listed_chains (
  target TEXT NOT NULL, scope TEXT NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (target, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS listed_until (id INTEGER PRIMARY KEY CHECK (id = 1), time TEXT NOT NULL);
DROP TABLE IF EXISTS signatures;
DROP TABLE IF EXISTS signature_progress;
DROP TABLE IF EXISTS signature_index;
"""
"""Tables of this store. The dropped ones are the index of an earlier version, which is built again from the chains."""
_RETENTION: Final = timedelta(days=1)
"""Time for which the use of a sign-in is stored. A sign-in can sign only within minutes, so a day is sufficient."""


class SqliteSignatureStore:
    """Implementation of SignatureStore: stores refused attempts to sign and the use of sign-ins for signatures."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def find_refused_attempts(self, member_id: str) -> AttemptsJson | None:
        with _convert_sqlite_errors():
            return await self._database.read(lambda connection: _select_refused_attempts(connection, member_id))

    async def change_refused_attempts(self, member_id: str, change: Change[AttemptsJson]) -> AttemptsJson | None:
        def change_attempts_row(connection: sqlite3.Connection) -> AttemptsJson | None:
            before = _select_refused_attempts(connection, member_id)
            after = change(before)
            if after is None:
                return before
            row = (member_id, int(bool(after["pending"])), json.dumps(after))
            connection.execute("INSERT OR REPLACE INTO signature_attempts VALUES (?, ?, ?)", row)
            return after

        with _convert_sqlite_errors():
            return await self._database.write(change_attempts_row)

    async def list_attempts_with_unreported_lock_outs(self) -> Sequence[AttemptsJson]:
        sql = "SELECT content FROM signature_attempts WHERE has_pending"
        with _convert_sqlite_errors():
            return await self._database.read(
                lambda connection: [json.loads(content) for (content,) in connection.execute(sql)]
            )

    async def change_sign_in_use(
        self, sign_in_name: str, change: Change[SignInUseJson], at: datetime
    ) -> SignInUseJson | None:
        def change_sign_in_row(connection: sqlite3.Connection) -> SignInUseJson | None:
            connection.execute(
                "DELETE FROM signature_sign_ins WHERE changed_at < ?", (format_rfc3339(at - _RETENTION),)
            )
            row = connection.execute(
                "SELECT content FROM signature_sign_ins WHERE name = ?", (sign_in_name,)
            ).fetchone()
            before = None if row is None else json.loads(row[0])
            after = change(before)
            if after is None:
                return before
            values = (sign_in_name, format_rfc3339(at), json.dumps(after))
            connection.execute("INSERT OR REPLACE INTO signature_sign_ins VALUES (?, ?, ?)", values)
            return after

        with _convert_sqlite_errors():
            return await self._database.write(change_sign_in_row)


class SqliteSignatureIndex:
    """Implementation of SignatureIndex: stores the index of all signatures in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read_index_end_time(self) -> str:
        def select_end_time(connection: sqlite3.Connection) -> str:
            row = connection.execute("SELECT time FROM listed_until").fetchone()
            return "" if row is None else str(row[0])

        with _convert_sqlite_errors():
            return await self._database.read(select_end_time)

    async def save_time_indexed_until(self, time: str) -> None:
        sql = "INSERT INTO listed_until VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET time = max(time, excluded.time)"
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.execute(sql, (time,)))

    async def read_progress(self, chain: ChainKey) -> IndexProgress:
        with _convert_sqlite_errors():
            return await self._database.read(lambda connection: _select_progress(connection, chain))

    async def add_signatures(
        self, chain: ChainKey, signatures: Sequence[IndexedSignature], progress: IndexProgress
    ) -> None:
        rows = [(one.place, *chain, one.user_id, json.dumps(dict(one.content))) for one in signatures]
        sql = (
            "INSERT INTO listed_chains VALUES (?, ?, ?, ?) ON CONFLICT (target, scope) DO UPDATE "
            "SET sequence = excluded.sequence, hash = excluded.hash WHERE excluded.sequence > sequence"
        )

        def insert_signatures(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO listed_signatures VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(sql, (*chain, *progress))

        with _convert_sqlite_errors():
            await self._database.write(insert_signatures)

    async def remove_signatures(self, chain: ChainKey, progress: IndexProgress) -> None:
        def delete_signatures(connection: sqlite3.Connection) -> None:
            if _select_progress(connection, chain) == progress:
                connection.execute("DELETE FROM listed_signatures WHERE target = ? AND scope = ?", chain)
                connection.execute("DELETE FROM listed_chains WHERE target = ? AND scope = ?", chain)

        with _convert_sqlite_errors():
            await self._database.write(delete_signatures)

    async def list_signatures(
        self, signature_filter: SignatureFilter, after_place: str, limit: int
    ) -> Sequence[IndexedSignature]:
        conditions = ["place >= ?"]
        values: list[str | int] = [signature_filter.start]
        for condition, value in (
            ("place < ?", signature_filter.end),
            ("place < ?", after_place),
            ("user_id = ?", signature_filter.user_id),
        ):
            if value is not None and (value or condition == "user_id = ?"):
                conditions.append(condition)
                values.append(value)
        where = " AND ".join(conditions)
        sql = f"SELECT place, user_id, content FROM listed_signatures WHERE {where} ORDER BY place DESC LIMIT ?"  # noqa: S608  our own names

        def select_signatures(connection: sqlite3.Connection) -> list[IndexedSignature]:
            rows = connection.execute(sql, (*values, limit))
            return [IndexedSignature(place, user_id, json.loads(content)) for place, user_id, content in rows]

        with _convert_sqlite_errors():
            return await self._database.read(select_signatures)


def _select_progress(connection: sqlite3.Connection, chain: ChainKey) -> IndexProgress:
    row = connection.execute(
        "SELECT sequence, hash FROM listed_chains WHERE target = ? AND scope = ?", chain
    ).fetchone()
    return IndexProgress() if row is None else IndexProgress(*row)


def _select_refused_attempts(connection: sqlite3.Connection, member_id: str) -> AttemptsJson | None:
    row = connection.execute("SELECT content FROM signature_attempts WHERE member = ?", (member_id,)).fetchone()
    value: AttemptsJson | None = None if row is None else json.loads(row[0])
    return value


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("SIGNATURES_UNAVAILABLE", "the store of signatures")
