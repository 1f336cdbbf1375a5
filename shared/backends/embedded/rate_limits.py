"""Rate limits in SQLite: leases of slices (shares) of a principal's request budget, for processes of one machine."""

import sqlite3
from collections.abc import Callable
from typing import Final

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.rate_limits.limiter import LEASE_SECONDS
from shared.rate_limits.models import WINDOW_SECONDS
from shared.rate_limits.ports import Lease, LeaseRequest
from shared.runtime import Runtime

# A power cut may lose these counts of the last minute, so commits need not wait for the disk. It must not damage the
# file, so checkpoints wait for the disk.
SCHEMA = """
PRAGMA synchronous=NORMAL;
DROP TABLE IF EXISTS leases;
CREATE TABLE IF NOT EXISTS slices (
  principal TEXT NOT NULL, id TEXT NOT NULL, counts_until REAL NOT NULL, amount INTEGER NOT NULL,
  PRIMARY KEY (principal, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS slices_by_age ON slices (counts_until);
CREATE TABLE IF NOT EXISTS working (
  principal TEXT NOT NULL, instance TEXT NOT NULL, seen_at REAL NOT NULL, active INTEGER NOT NULL,
  PRIMARY KEY (principal, instance)
) WITHOUT ROWID;
"""
BELIEVED_SECONDS: Final = 5.0
"""Age in seconds at which another instance's number of active requests is ignored, because the instance has died."""

TIMEOUT_SECONDS: Final = 1.0
"""Timeout for a lease from the store; after the timeout, the caller's request is admitted without a lease."""


class SqliteLeaseStore:
    """Implementation of LeaseStore: stores leased slices of rate-limit budgets in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        with convert_sqlite_errors("RATE_LIMITS_UNAVAILABLE", "the store of rate limits"):
            return await self._database.write(
                lambda connection: _grant_lease(connection, request, read_unix_seconds(), self._database.runtime)
            )


def _grant_lease(connection: sqlite3.Connection, request: LeaseRequest, unix_seconds: float, runtime: Runtime) -> Lease:
    if request.previous:
        _record_use_of_previous_lease(connection, request)
    connection.execute("DELETE FROM slices WHERE counts_until <= ?", (unix_seconds,))
    # A slice that counts longer was stored before the clock was set back.
    latest = unix_seconds + LEASE_SECONDS + WINDOW_SECONDS
    sql = "UPDATE slices SET counts_until = ? WHERE principal = ? AND counts_until > ?"
    connection.execute(sql, (latest, request.principal, latest))
    sql = "SELECT coalesce(sum(amount), 0), min(counts_until) FROM slices WHERE principal = ?"
    counted, first = connection.execute(sql, (request.principal,)).fetchone()
    granted = max(0, min(request.wanted, request.budget - counted))
    lease_id = runtime.new_id() if granted else ""
    if granted:
        connection.execute("INSERT INTO slices VALUES (?, ?, ?, ?)", (request.principal, lease_id, latest, granted))
    frees_at = unix_seconds + WINDOW_SECONDS if first is None else first
    remaining = max(0, request.budget - counted - granted)
    return Lease(
        lease_id,
        granted,
        remaining,
        _store_own_and_sum_other_active_requests(connection, request, unix_seconds),
        frees_at,
    )


def _record_use_of_previous_lease(connection: sqlite3.Connection, request: LeaseRequest) -> None:
    if request.used:
        sql = "UPDATE slices SET amount = ?, counts_until = ? WHERE principal = ? AND id = ?"
        connection.execute(
            sql, (request.used, request.used_until + WINDOW_SECONDS, request.principal, request.previous)
        )
    else:
        connection.execute("DELETE FROM slices WHERE principal = ? AND id = ?", (request.principal, request.previous))


def _store_own_and_sum_other_active_requests(
    connection: sqlite3.Connection, request: LeaseRequest, unix_seconds: float
) -> int:
    """Store how many requests this instance is processing; return how many all other instances are processing."""
    limits = (unix_seconds - BELIEVED_SECONDS, unix_seconds + BELIEVED_SECONDS)
    connection.execute("DELETE FROM working WHERE seen_at <= ? OR seen_at > ?", limits)
    row = (request.principal, request.instance, unix_seconds, request.active)
    connection.execute("INSERT OR REPLACE INTO working VALUES (?, ?, ?, ?)", row)
    sql = "SELECT coalesce(sum(active), 0) FROM working WHERE principal = ? AND instance <> ?"
    return int(connection.execute(sql, (request.principal, request.instance)).fetchone()[0])
