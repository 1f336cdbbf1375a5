"""IdempotentReplies of requests with an idempotency key, in SQLite."""

import sqlite3
from contextlib import AbstractContextManager
from datetime import datetime

from shared.backends.embedded.faults import answering
from shared.backends.embedded.sqlite import Database
from shared.idempotency.keys import Claim
from shared.idempotency.replies import Begun
from shared.timestamps import rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
  name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, append_id TEXT NOT NULL, made_at TEXT NOT NULL,
  lease TEXT NOT NULL, leased_until TEXT NOT NULL, answer BLOB
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_by_age ON answers (made_at);
"""


class SqliteAnswerStore:
    """The IdempotentReplyStore port over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, name: str, wanted: Claim, lease: str, at: datetime, until: datetime, forget_before: datetime
    ) -> Begun:
        """Claim a name, or find it claimed."""

        def work(connection: sqlite3.Connection) -> Begun:
            connection.execute("DELETE FROM answers WHERE made_at < ?", (rfc3339(forget_before),))
            row = (name, wanted.fingerprint, wanted.append_id, rfc3339(at), "", "")
            connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
            sql = "SELECT fingerprint, append_id, answer, leased_until FROM answers WHERE name = ?"
            fingerprint, append_id, answer, leased_until = connection.execute(sql, (name,)).fetchone()
            mine = fingerprint == wanted.fingerprint and answer is None and leased_until < rfc3339(at)
            if mine:
                sql = "UPDATE answers SET lease = ?, leased_until = ? WHERE name = ?"
                connection.execute(sql, (lease, rfc3339(until), name))
            return Begun(Claim(fingerprint, append_id), answer, mine)

        with _answering():
            return await self._database.write(work)

    async def renew(self, name: str, lease: str, until: datetime) -> None:
        """Make a lease last longer."""
        await self._change(
            "UPDATE answers SET leased_until = ? WHERE name = ? AND lease = ?", rfc3339(until), name, lease
        )

    async def finish(self, name: str, lease: str, answer: bytes) -> bool:
        """Keep the answer."""
        return await self._change("UPDATE answers SET answer = ? WHERE name = ? AND lease = ?", answer, name, lease)

    async def release(self, name: str, lease: str, *, forget: bool) -> None:
        """Give the lease up."""
        if forget:
            await self._change("DELETE FROM answers WHERE name = ? AND lease = ? AND answer IS NULL", name, lease)
        else:
            await self._change(
                "UPDATE answers SET lease = '', leased_until = '' WHERE name = ? AND lease = ?", name, lease
            )

    async def _change(self, sql: str, *values: str | bytes) -> bool:
        """Execute a statement; return whether it met a row."""
        with _answering():
            return await self._database.write(lambda connection: connection.execute(sql, values).rowcount > 0)


def _answering() -> AbstractContextManager[None]:
    return answering("IDEMPOTENCY_UNAVAILABLE", "the store of idempotency keys")
