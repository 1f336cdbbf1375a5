"""Idempotency keys in SQLite."""

import sqlite3
from datetime import datetime

from shared.backends.embedded.faults import answering
from shared.backends.embedded.sqlite import Database
from shared.idempotency.keys import Claim
from shared.timestamps import rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS idempotency_keys (
  key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, append_id TEXT NOT NULL, made_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_by_age ON idempotency_keys (made_at);
"""


class SqliteIdempotencyStore:
    """The IdempotencyStore port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, key: str, wanted: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Return what a key stands for, and forget what is too old."""

        def work(connection: sqlite3.Connection) -> Claim:
            connection.execute("DELETE FROM idempotency_keys WHERE made_at < ?", (rfc3339(forget_before),))
            row = (key, wanted.fingerprint, wanted.append_id, rfc3339(at))
            connection.execute("INSERT OR IGNORE INTO idempotency_keys VALUES (?, ?, ?, ?)", row)
            sql = "SELECT fingerprint, append_id FROM idempotency_keys WHERE key = ?"
            return Claim(*connection.execute(sql, (key,)).fetchone())

        with answering("IDEMPOTENCY_UNAVAILABLE", "the store of idempotency keys"):
            return await self._database.write(work)

    async def forget(self, key: str, append_id: str) -> None:
        """Make a key free again."""
        sql = "DELETE FROM idempotency_keys WHERE key = ? AND append_id = ?"
        with answering("IDEMPOTENCY_UNAVAILABLE", "the store of idempotency keys"):
            await self._database.write(lambda connection: connection.execute(sql, (key, append_id)))
