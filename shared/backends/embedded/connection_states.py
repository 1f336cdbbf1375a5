"""Status and statistics of connections in SQLite."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.backends.embedded.sqlite import SqliteDatabase, unavailable_on_failure
from shared.telemetry.ports import ArrivedMessages, ConnectionState
from shared.timestamps import parse_rfc3339, rfc3339

_NAMES = ("CONNECTION_STATES_UNAVAILABLE", "the store of connection states")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS connection_states (
    connection TEXT PRIMARY KEY,
    status TEXT NOT NULL DEFAULT 'CONNECTING',
    messages_received INTEGER NOT NULL DEFAULT 0,
    last_message TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS connection_sources (
    connection TEXT NOT NULL,
    source TEXT NOT NULL,
    highest INTEGER NOT NULL,
    PRIMARY KEY (connection, source)
) WITHOUT ROWID;
"""


class SqliteConnectionStates:
    """The ConnectionStateStore port over one SQLite file that several processes may use.

    Args:
        path: the SQLite file; it may contain other tables.
    """

    def __init__(self, path: Path) -> None:
        self._database = SqliteDatabase(path, _SCHEMA)

    async def record(self, arrivals: Sequence[ArrivedMessages]) -> None:
        if arrivals:
            with unavailable_on_failure(*_NAMES):
                await self._database.write(lambda connection: _record(connection, arrivals))

    async def set_status(self, connection: str, status: str) -> None:
        with unavailable_on_failure(*_NAMES):
            await self._database.write(
                lambda database: database.execute(
                    "INSERT INTO connection_states (connection, status) VALUES (?, ?)"
                    " ON CONFLICT (connection) DO UPDATE SET status = excluded.status",
                    (connection, status),
                )
            )

    async def states(self) -> Mapping[str, ConnectionState]:
        with unavailable_on_failure(*_NAMES):
            return await self._database.read(_read_states)

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()


def _record(database: sqlite3.Connection, arrivals: Sequence[ArrivedMessages]) -> None:
    for each in arrivals:
        row = database.execute(
            "SELECT highest FROM connection_sources WHERE connection = ? AND source = ?",
            (each.connection, each.source),
        ).fetchone()
        new = [number for number in each.sequence_numbers if row is None or number > row[0]]
        if new:
            _count(database, each, len(new), max(new))


def _count(database: sqlite3.Connection, arrivals: ArrivedMessages, count: int, highest: int) -> None:
    database.execute(
        "INSERT INTO connection_sources (connection, source, highest) VALUES (?, ?, ?)"
        " ON CONFLICT (connection, source) DO UPDATE SET highest = excluded.highest",
        (arrivals.connection, arrivals.source, highest),
    )
    database.execute(
        "INSERT INTO connection_states (connection, messages_received, last_message) VALUES (?, ?, ?)"
        " ON CONFLICT (connection) DO UPDATE SET messages_received = messages_received + excluded.messages_received,"
        " last_message = max(ifnull(last_message, ''), excluded.last_message)",
        (arrivals.connection, count, rfc3339(arrivals.last_message)),
    )


def _read_states(database: sqlite3.Connection) -> Mapping[str, ConnectionState]:
    rows = database.execute("SELECT connection, status, messages_received, last_message FROM connection_states")
    return {
        connection: ConnectionState(status, received, parse_rfc3339(last) if last else None)
        for connection, status, received, last in rows
    }
