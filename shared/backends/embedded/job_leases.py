"""Due times and leases of background jobs in SQLite."""

import sqlite3
from contextlib import AbstractContextManager
from datetime import datetime

from shared.backends.embedded.sqlite import SqliteDatabase, convert_failures
from shared.background.ports import JobClaim, limit_stored_time
from shared.timestamps import parse_rfc3339, rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS background_jobs (
  job TEXT PRIMARY KEY, due_at TEXT NOT NULL, holder TEXT NOT NULL, held_until TEXT NOT NULL
) WITHOUT ROWID;
"""


class SqliteJobLeaseStore:
    """Implementation of JobLeaseStore: stores leases of background jobs in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def claim(self, job: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        def claim_job(connection: sqlite3.Connection) -> JobClaim:
            sql = "INSERT OR IGNORE INTO background_jobs VALUES (?, ?, '', '')"
            connection.execute(sql, (job, rfc3339(first_due)))
            sql = "SELECT due_at, holder, held_until FROM background_jobs WHERE job = ?"
            stored_due, current, held_until = connection.execute(sql, (job,)).fetchone()
            due_at = limit_stored_time(parse_rfc3339(stored_due), first_due)
            free_at, ends_at = due_at, held_until
            if current not in ("", holder):
                lease_end = limit_stored_time(parse_rfc3339(held_until), until)
                free_at, ends_at = max(due_at, lease_end), rfc3339(lease_end)
            if (rfc3339(due_at), ends_at) != (stored_due, held_until):
                limited = "UPDATE background_jobs SET due_at = ?, held_until = ? WHERE job = ?"
                connection.execute(limited, (rfc3339(due_at), ends_at, job))
            if free_at > at:
                return JobClaim(granted=False, next_attempt=free_at)
            sql = "UPDATE background_jobs SET holder = ?, held_until = ? WHERE job = ?"
            connection.execute(sql, (holder, rfc3339(until), job))
            return JobClaim(granted=True, next_attempt=until)

        with _convert_errors():
            return await self._database.write(claim_job)

    async def extend(self, job: str, holder: str, until: datetime) -> bool:
        sql = "UPDATE background_jobs SET held_until = ? WHERE job = ? AND holder = ?"
        row = (rfc3339(until), job, holder)
        with _convert_errors():
            return bool(await self._database.write(lambda connection: connection.execute(sql, row).rowcount))

    async def release(self, job: str, holder: str, due_at: datetime) -> None:
        sql = "UPDATE background_jobs SET due_at = ?, holder = '', held_until = '' WHERE job = ? AND holder = ?"
        row = (rfc3339(due_at), job, holder)
        with _convert_errors():
            await self._database.write(lambda connection: connection.execute(sql, row).rowcount)


def _convert_errors() -> AbstractContextManager[None]:
    return convert_failures("BACKGROUND_JOBS_UNAVAILABLE", "the store of background jobs")
