"""Jobs for downloads, audit bundles and imports, and due times and leases of periodic background jobs, in SQLite."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.background.ports import JobClaim, cap_stored_time
from shared.downloads.models import Job
from shared.timestamps import format_rfc3339, parse_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS download_jobs (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, job TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS download_jobs_by_owner ON download_jobs (owner, created_at);
CREATE INDEX IF NOT EXISTS download_jobs_by_end ON download_jobs (expires_at);
CREATE TABLE IF NOT EXISTS background_jobs (
  job TEXT PRIMARY KEY, due_at TEXT NOT NULL, holder TEXT NOT NULL, held_until TEXT NOT NULL
) WITHOUT ROWID;
"""


class SqliteJobStore:
    """Implementation of JobStore: stores jobs for downloads, audit bundles and imports in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def create(self, job: Job) -> None:
        row = (job.id, job.owner, format_rfc3339(job.created_at), format_rfc3339(job.expires_at), job.model_dump_json())
        sql = "INSERT INTO download_jobs VALUES (?, ?, ?, ?, ?)"
        with _convert_sqlite_errors_of_jobs():
            await self._database.write(lambda connection: connection.execute(sql, row).rowcount)

    async def find_job(self, job_id: str) -> Job | None:
        with _convert_sqlite_errors_of_jobs():
            return await self._database.read(lambda connection: _find_job(connection, job_id))

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        def update_job_if_found(connection: sqlite3.Connection) -> Job | None:
            before = _find_job(connection, job_id)
            if before is None:
                return None
            after = change(before)
            sql = "UPDATE download_jobs SET job = ?, expires_at = ? WHERE id = ?"
            connection.execute(sql, (after.model_dump_json(), format_rfc3339(after.expires_at), job_id))
            return after

        with _convert_sqlite_errors_of_jobs():
            return await self._database.write(update_job_if_found)

    async def list_jobs_of_owner(self, owner_id: str) -> Sequence[Job]:
        sql = "SELECT job FROM download_jobs WHERE owner = ? ORDER BY created_at DESC, id"
        with _convert_sqlite_errors_of_jobs():
            rows = await self._database.read(lambda connection: connection.execute(sql, (owner_id,)).fetchall())
        return [Job.model_validate_json(text) for (text,) in rows]

    async def list_expired_job_ids(self, at: datetime) -> Sequence[str]:
        sql = "SELECT id FROM download_jobs WHERE expires_at <= ? ORDER BY expires_at, id"
        with _convert_sqlite_errors_of_jobs():
            rows = await self._database.read(
                lambda connection: connection.execute(sql, (format_rfc3339(at),)).fetchall()
            )
        return [job_id for (job_id,) in rows]

    async def delete(self, job_id: str) -> None:
        sql = "DELETE FROM download_jobs WHERE id = ?"
        with _convert_sqlite_errors_of_jobs():
            await self._database.write(lambda connection: connection.execute(sql, (job_id,)).rowcount)


def _find_job(connection: sqlite3.Connection, job_id: str) -> Job | None:
    row = connection.execute("SELECT job FROM download_jobs WHERE id = ?", (job_id,)).fetchone()
    return None if row is None else Job.model_validate_json(row[0])


def _convert_sqlite_errors_of_jobs() -> AbstractContextManager[None]:
    return convert_sqlite_errors("DOWNLOADS_UNAVAILABLE", "the store of downloads")


class SqliteJobLeaseStore:
    """Implementation of JobLeaseStore: stores due times and leases of periodic background jobs in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def claim_job(
        self, job_name: str, holder_id: str, at: datetime, leased_until: datetime, first_due: datetime
    ) -> JobClaim:
        def claim_if_due(connection: sqlite3.Connection) -> JobClaim:
            sql = "INSERT OR IGNORE INTO background_jobs VALUES (?, ?, '', '')"
            connection.execute(sql, (job_name, format_rfc3339(first_due)))
            sql = "SELECT due_at, holder, held_until FROM background_jobs WHERE job = ?"
            stored_due, current, held_until = connection.execute(sql, (job_name,)).fetchone()
            due_at = cap_stored_time(parse_rfc3339(stored_due), first_due)
            free_at, ends_at = due_at, held_until
            if current not in ("", holder_id):
                lease_end = cap_stored_time(parse_rfc3339(held_until), leased_until)
                free_at, ends_at = max(due_at, lease_end), format_rfc3339(lease_end)
            if (format_rfc3339(due_at), ends_at) != (stored_due, held_until):
                limited = "UPDATE background_jobs SET due_at = ?, held_until = ? WHERE job = ?"
                connection.execute(limited, (format_rfc3339(due_at), ends_at, job_name))
            if free_at > at:
                return JobClaim(granted=False, next_attempt=free_at)
            sql = "UPDATE background_jobs SET holder = ?, held_until = ? WHERE job = ?"
            connection.execute(sql, (holder_id, format_rfc3339(leased_until), job_name))
            return JobClaim(granted=True, next_attempt=leased_until)

        with _convert_sqlite_errors_of_leases():
            return await self._database.write(claim_if_due)

    async def try_extend_lease(self, job_name: str, holder_id: str, leased_until: datetime) -> bool:
        sql = "UPDATE background_jobs SET held_until = ? WHERE job = ? AND holder = ?"
        row = (format_rfc3339(leased_until), job_name, holder_id)
        with _convert_sqlite_errors_of_leases():
            return bool(await self._database.write(lambda connection: connection.execute(sql, row).rowcount))

    async def release_lease(self, job_name: str, holder_id: str, next_due_at: datetime) -> None:
        sql = "UPDATE background_jobs SET due_at = ?, holder = '', held_until = '' WHERE job = ? AND holder = ?"
        row = (format_rfc3339(next_due_at), job_name, holder_id)
        with _convert_sqlite_errors_of_leases():
            await self._database.write(lambda connection: connection.execute(sql, row).rowcount)


def _convert_sqlite_errors_of_leases() -> AbstractContextManager[None]:
    return convert_sqlite_errors("BACKGROUND_JOBS_UNAVAILABLE", "the store of background jobs")
