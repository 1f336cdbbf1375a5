"""Idempotency keys and stored replies in SQLite."""

import sqlite3
from contextlib import AbstractContextManager
from datetime import datetime

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.background.ports import CLOCK_TOLERANCE
from shared.idempotency.keys import Claim
from shared.idempotency.replies import BeginResult
from shared.timestamps import format_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS idempotency_keys (
  key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, append_id TEXT NOT NULL, made_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_by_age ON idempotency_keys (made_at);
CREATE TABLE IF NOT EXISTS idempotency_repeats (append_id TEXT PRIMARY KEY, made_at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_repeats_by_age ON idempotency_repeats (made_at);
CREATE TABLE IF NOT EXISTS answers (
  name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, append_id TEXT NOT NULL, made_at TEXT NOT NULL,
  lease TEXT NOT NULL, leased_until TEXT NOT NULL, answer BLOB
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_by_age ON answers (made_at);
"""


class SqliteIdempotencyStore:
    """Implementation of IdempotencyStore: stores in SQLite which request used each idempotency key first."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def store_or_get_claim(self, key_hash: str, new_claim: Claim, at: datetime, forget_before: datetime) -> Claim:
        def insert_or_select_claim(connection: sqlite3.Connection) -> Claim:
            expired = (format_rfc3339(forget_before),)
            connection.execute("DELETE FROM idempotency_keys WHERE made_at < ?", expired)
            connection.execute("DELETE FROM idempotency_repeats WHERE made_at < ?", expired)
            row = (key_hash, new_claim.fingerprint, new_claim.append_id, format_rfc3339(at))
            connection.execute("INSERT OR IGNORE INTO idempotency_keys VALUES (?, ?, ?, ?)", row)
            sql = "SELECT fingerprint, append_id FROM idempotency_keys WHERE key = ?"
            claim = Claim(*connection.execute(sql, (key_hash,)).fetchone())
            if claim.is_repeated_by(new_claim):
                sql = "INSERT OR IGNORE INTO idempotency_repeats VALUES (?, ?)"
                connection.execute(sql, (claim.append_id, format_rfc3339(at)))
            return claim

        with _convert_sqlite_errors():
            return await self._database.write(insert_or_select_claim)

    async def delete_claim(self, key_hash: str, append_id: str) -> None:
        sql = (
            "DELETE FROM idempotency_keys WHERE key = ? AND append_id = ? "
            "AND append_id NOT IN (SELECT append_id FROM idempotency_repeats)"
        )
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.execute(sql, (key_hash, append_id)))


class SqliteReplyStore:
    """Implementation of IdempotentReplyStore: stores leases and replies of idempotent requests in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def claim_and_lease_key(
        self,
        key_hash: str,
        new_claim: Claim,
        lease_id: str,
        at: datetime,
        lease_until: datetime,
        forget_before: datetime,
    ) -> BeginResult:
        def insert_claim_and_lease(connection: sqlite3.Connection) -> BeginResult:
            connection.execute("DELETE FROM answers WHERE made_at < ?", (format_rfc3339(forget_before),))
            row = (key_hash, new_claim.fingerprint, new_claim.append_id, format_rfc3339(at), "", "")
            connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
            sql = "SELECT fingerprint, append_id, answer, leased_until FROM answers WHERE name = ?"
            fingerprint, append_id, answer, leased_until = connection.execute(sql, (key_hash,)).fetchone()
            mine = fingerprint == new_claim.fingerprint and answer is None and leased_until < format_rfc3339(at)
            if mine:
                sql = "UPDATE answers SET lease = ?, leased_until = ? WHERE name = ?"
                connection.execute(sql, (lease_id, format_rfc3339(lease_until), key_hash))
            elif answer is None and leased_until > format_rfc3339(lease_until + CLOCK_TOLERANCE):
                # The clock was set back. A running holder renews the shortened lease; that of a crashed one soon ends.
                connection.execute(
                    "UPDATE answers SET leased_until = ? WHERE name = ?", (format_rfc3339(lease_until), key_hash)
                )
            return BeginResult(Claim(fingerprint, append_id), answer, mine)

        with _convert_sqlite_errors():
            return await self._database.write(insert_claim_and_lease)

    async def renew_lease(self, key_hash: str, lease_id: str, lease_until: datetime) -> None:
        await self._execute_update_and_test_for_change(
            "UPDATE answers SET leased_until = ? WHERE name = ? AND lease = ?",
            format_rfc3339(lease_until),
            key_hash,
            lease_id,
        )

    async def try_save_reply(self, key_hash: str, lease_id: str, encrypted_reply: bytes) -> bool:
        return await self._execute_update_and_test_for_change(
            "UPDATE answers SET answer = ? WHERE name = ? AND lease = ?", encrypted_reply, key_hash, lease_id
        )

    async def release_lease(self, key_hash: str, lease_id: str, *, deletes_claim: bool) -> None:
        if deletes_claim:
            await self._execute_update_and_test_for_change(
                "DELETE FROM answers WHERE name = ? AND lease = ? AND answer IS NULL", key_hash, lease_id
            )
        else:
            await self._execute_update_and_test_for_change(
                "UPDATE answers SET lease = '', leased_until = '' WHERE name = ? AND lease = ?", key_hash, lease_id
            )

    async def _execute_update_and_test_for_change(self, sql: str, *values: str | bytes) -> bool:
        """Execute an SQL statement in the file; return whether the statement changed a row."""
        with _convert_sqlite_errors():
            return await self._database.write(lambda connection: connection.execute(sql, values).rowcount > 0)


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("IDEMPOTENCY_UNAVAILABLE", "the store of idempotency keys")
