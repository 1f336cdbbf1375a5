"""Leases of rate budgets in SQLite, shared by the processes of one machine."""

import sqlite3
import uuid
from typing import Final

from shared.backends.embedded.sqlite import SqliteDatabase, unavailable_on_failure
from shared.rate_limits.limiter import LEASE_SECONDS
from shared.rate_limits.models import WINDOW_SECONDS
from shared.rate_limits.ports import Lease, LeaseRequest

# Counts of the last minute: a power cut may lose them, so their commits need not wait for the disk.
SCHEMA = """
PRAGMA synchronous=OFF;
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
"""How long another instance's count of requests at work is believed; one that was killed takes nothing back."""

PATIENCE_SECONDS: Final = 1.0
"""A request waits for this; without an answer it is let in."""


class SqliteLeaseStore:
    """The LeaseStore port over SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def lease(self, asked: LeaseRequest, at: float) -> Lease:
        with unavailable_on_failure("RATE_LIMITS_UNAVAILABLE", "the store of rate limits"):
            return await self._database.write(lambda connection: _lease(connection, asked, at))


def _lease(connection: sqlite3.Connection, asked: LeaseRequest, at: float) -> Lease:
    if asked.previous:
        _settle(connection, asked)
    connection.execute("DELETE FROM slices WHERE counts_until <= ?", (at,))
    sql = "SELECT coalesce(sum(amount), 0), min(counts_until) FROM slices WHERE principal = ?"
    counted, first = connection.execute(sql, (asked.principal,)).fetchone()
    granted = max(0, min(asked.wanted, asked.budget - counted))
    lease_id = uuid.uuid4().hex if granted else ""
    if granted:
        until = at + LEASE_SECONDS + WINDOW_SECONDS
        connection.execute("INSERT INTO slices VALUES (?, ?, ?, ?)", (asked.principal, lease_id, until, granted))
    frees_at = at + WINDOW_SECONDS if first is None else first
    left = max(0, asked.budget - counted - granted)
    return Lease(lease_id, granted, left, _elsewhere(connection, asked, at), frees_at)


def _settle(connection: sqlite3.Connection, asked: LeaseRequest) -> None:
    if asked.used:
        sql = "UPDATE slices SET amount = ?, counts_until = ? WHERE principal = ? AND id = ?"
        connection.execute(sql, (asked.used, asked.used_until + WINDOW_SECONDS, asked.principal, asked.previous))
    else:
        connection.execute("DELETE FROM slices WHERE principal = ? AND id = ?", (asked.principal, asked.previous))


def _elsewhere(connection: sqlite3.Connection, asked: LeaseRequest, at: float) -> int:
    """Note how many requests the asking instance works on, and return how many the others do."""
    connection.execute("DELETE FROM working WHERE seen_at <= ?", (at - BELIEVED_SECONDS,))
    row = (asked.principal, asked.instance, at, asked.active)
    connection.execute("INSERT OR REPLACE INTO working VALUES (?, ?, ?, ?)", row)
    sql = "SELECT coalesce(sum(active), 0) FROM working WHERE principal = ? AND instance <> ?"
    return int(connection.execute(sql, (asked.principal, asked.instance)).fetchone()[0])
