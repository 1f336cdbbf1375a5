"""Quota reservations of live streams and jobs in SQLite; each reservation counts against its principal's quota."""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.fair_use.ports import Purpose, QuotaReservation

SCHEMA = """
CREATE TABLE IF NOT EXISTS places (
  purpose TEXT NOT NULL, principal TEXT NOT NULL, id TEXT NOT NULL,
  taken_at REAL NOT NULL, active INTEGER NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (purpose, principal, id)
) WITHOUT ROWID;
"""


class SqliteQuotaStore:
    """Implementation of QuotaStore: stores quota reservations of principals in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def try_reserve(
        self, principal: str, purpose: Purpose, reservation_id: str, *, at_unix_seconds: float, max_reservations: int
    ) -> bool:
        def try_insert_reservation(connection: sqlite3.Connection) -> bool:
            if _has_reservation(connection, principal, purpose, reservation_id):
                return True
            sql = "SELECT count(*) FROM places WHERE purpose = ? AND principal = ? AND active"
            if connection.execute(sql, (purpose, principal)).fetchone()[0] >= max_reservations:
                return False
            connection.execute(
                "INSERT INTO places VALUES (?, ?, ?, ?, 1, 0)", (purpose, principal, reservation_id, at_unix_seconds)
            )
            return True

        with _convert_sqlite_errors():
            return await self._database.write(try_insert_reservation)

    async def try_raise_reserved_size(
        self,
        principal: str,
        purpose: Purpose,
        reservation_id: str,
        *,
        new_size: int,
        at_unix_seconds: float,
        max_total_size: int,
    ) -> bool:
        def try_update_size(connection: sqlite3.Connection) -> bool:
            sql = "SELECT coalesce(sum(size), 0) FROM places WHERE purpose = ? AND principal = ? AND id <> ?"
            others = connection.execute(sql, (purpose, principal, reservation_id)).fetchone()[0]
            if others + new_size > max_total_size:
                return False
            connection.execute(
                "INSERT INTO places VALUES (?, ?, ?, ?, 1, ?) "
                "ON CONFLICT (purpose, principal, id) DO UPDATE SET size = max(size, excluded.size)",
                (purpose, principal, reservation_id, at_unix_seconds, new_size),
            )
            return True

        with _convert_sqlite_errors():
            return await self._database.write(try_update_size)

    async def mark_inactive(self, principal: str, purpose: Purpose, reservation_id: str) -> None:
        sql = "UPDATE places SET active = 0 WHERE purpose = ? AND principal = ? AND id = ?"
        with _convert_sqlite_errors():
            await self._database.write(
                lambda connection: connection.execute(sql, (purpose, principal, reservation_id)).rowcount
            )

    async def delete_reservations(self, principal: str, purpose: Purpose, reservation_ids: Collection[str]) -> None:
        rows = [(purpose, principal, reservation_id) for reservation_id in reservation_ids]
        sql = "DELETE FROM places WHERE purpose = ? AND principal = ? AND id = ?"
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.executemany(sql, rows).rowcount)

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        sql = "SELECT id, taken_at, active, size FROM places WHERE purpose = ? AND principal = ? ORDER BY taken_at, id"
        with _convert_sqlite_errors():
            rows = await self._database.read(
                lambda connection: connection.execute(sql, (purpose, principal)).fetchall()
            )
        return [
            QuotaReservation(reservation_id, taken_at, bool(active), size)
            for reservation_id, taken_at, active, size in rows
        ]

    async def delete_all_reservations(self, purpose: Purpose) -> None:
        """Remove all reservations for a purpose.

        The local host calls this for streams when it starts, because no stream is open then.
        """
        sql = "DELETE FROM places WHERE purpose = ?"
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.execute(sql, (purpose,)).rowcount)


def _has_reservation(connection: sqlite3.Connection, principal: str, purpose: Purpose, reservation_id: str) -> bool:
    sql = "SELECT 1 FROM places WHERE purpose = ? AND principal = ? AND id = ?"
    return connection.execute(sql, (purpose, principal, reservation_id)).fetchone() is not None


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("QUOTAS_UNAVAILABLE", "the store of quotas")
