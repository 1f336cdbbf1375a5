"""Download jobs in SQLite."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from shared.backends.embedded.sqlite import SqliteDatabase, convert_failures
from shared.downloads.models import Job
from shared.timestamps import rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS download_jobs (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, job TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS download_jobs_by_owner ON download_jobs (owner, created_at);
CREATE INDEX IF NOT EXISTS download_jobs_by_end ON download_jobs (expires_at);
"""


class SqliteJobStore:
    """Implementation of JobStore: stores background jobs in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def create(self, job: Job) -> None:
        row = (job.id, job.owner, rfc3339(job.created_at), rfc3339(job.expires_at), job.model_dump_json())
        sql = "INSERT INTO download_jobs VALUES (?, ?, ?, ?, ?)"
        with _convert_errors():
            await self._database.write(lambda connection: connection.execute(sql, row).rowcount)

    async def get(self, job_id: str) -> Job | None:
        with _convert_errors():
            return await self._database.read(lambda connection: _read_job(connection, job_id))

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        def update_job(connection: sqlite3.Connection) -> Job | None:
            before = _read_job(connection, job_id)
            if before is None:
                return None
            after = change(before)
            sql = "UPDATE download_jobs SET job = ?, expires_at = ? WHERE id = ?"
            connection.execute(sql, (after.model_dump_json(), rfc3339(after.expires_at), job_id))
            return after

        with _convert_errors():
            return await self._database.write(update_job)

    async def list_owned(self, owner: str) -> Sequence[Job]:
        sql = "SELECT job FROM download_jobs WHERE owner = ? ORDER BY created_at DESC, id"
        with _convert_errors():
            rows = await self._database.read(lambda connection: connection.execute(sql, (owner,)).fetchall())
        return [Job.model_validate_json(text) for (text,) in rows]

    async def list_expired(self, at: datetime) -> Sequence[str]:
        sql = "SELECT id FROM download_jobs WHERE expires_at <= ? ORDER BY expires_at, id"
        with _convert_errors():
            rows = await self._database.read(lambda connection: connection.execute(sql, (rfc3339(at),)).fetchall())
        return [job_id for (job_id,) in rows]

    async def delete(self, job_id: str) -> None:
        sql = "DELETE FROM download_jobs WHERE id = ?"
        with _convert_errors():
            await self._database.write(lambda connection: connection.execute(sql, (job_id,)).rowcount)


def _read_job(connection: sqlite3.Connection, job_id: str) -> Job | None:
    row = connection.execute("SELECT job FROM download_jobs WHERE id = ?", (job_id,)).fetchone()
    return None if row is None else Job.model_validate_json(row[0])


def _convert_errors() -> AbstractContextManager[None]:
    return convert_failures("DOWNLOADS_UNAVAILABLE", "the store of downloads")
