"""Status and message counts of the workspace's data connections in SQLite."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.background.ports import CLOCK_TOLERANCE
from shared.errors import WorkspaceError
from shared.observability.logs import get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import ArrivedMessages, ConnectionState
from shared.timestamps import format_rfc3339, parse_rfc3339

_LOG: Final = get_logger("connections")
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
CREATE TABLE IF NOT EXISTS connection_source_times (
    connection TEXT NOT NULL,
    source TEXT NOT NULL,
    last_message TEXT NOT NULL,
    PRIMARY KEY (connection, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS connection_type_mismatches (
    connection TEXT PRIMARY KEY,
    messages INTEGER NOT NULL
) WITHOUT ROWID;
"""
_READ = (
    "SELECT connection, status, messages_received, last_message, ifnull(messages, 0)"
    " FROM connection_states LEFT JOIN connection_type_mismatches USING (connection)"
)
# Earlier versions stored no time for each source; the latest time of the whole connection is never earlier.
_READ_SOURCE = (
    "SELECT highest, coalesce(times.last_message, states.last_message, '')"
    " FROM connection_sources LEFT JOIN connection_source_times AS times USING (connection, source)"
    " LEFT JOIN connection_states AS states USING (connection) WHERE connection = ? AND source = ?"
)

type _Row = tuple[str, str, int, str | None, int]


class SqliteConnectionStates:
    """Implementation of ConnectionStateStore: stores the status and message statistics of connections in SQLite.

    Several processes may use the file.

    Args:
        path: the SQLite file; it can contain other tables.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._database = SqliteDatabase(path, _SCHEMA, runtime=runtime)
        self._last_read: Mapping[str, tuple[_Row, ConnectionState]] = {}

    async def add_arrived_messages_to_counts(self, arrivals: Sequence[ArrivedMessages]) -> None:
        if arrivals:
            with convert_sqlite_errors(*_NAMES):
                await self._database.write(
                    lambda connection: _add_new_messages_to_counts(connection, arrivals, self._runtime.now())
                )

    async def set_status(self, connection_lookups: Collection[str], status: str) -> None:
        with convert_sqlite_errors(*_NAMES):
            await self._database.write(
                lambda database: database.executemany(
                    "INSERT INTO connection_states (connection, status) VALUES (?, ?)"
                    " ON CONFLICT (connection) DO UPDATE SET status = excluded.status",
                    [(connection, status) for connection in connection_lookups],
                )
            )

    async def load_statuses_by_connection(self) -> Mapping[str, str]:
        with convert_sqlite_errors(*_NAMES):
            return await self._database.read(
                lambda database: dict(database.execute("SELECT connection, status FROM connection_states").fetchall())
            )

    async def load_states_by_connection(self) -> Mapping[str, ConnectionState]:
        at = self._runtime.now()
        with convert_sqlite_errors(*_NAMES):
            states = await self._database.read(self._read_states)
        if not any(_is_in_future(each.last_message, at) for each in states.values()):
            return states
        capped = {
            lookup: replace(each, last_message=at) if _is_in_future(each.last_message, at) else each
            for lookup, each in states.items()
        }
        try:
            with convert_sqlite_errors(*_NAMES):
                await self._database.write(lambda database: _cap_future_times(database, at))
        except WorkspaceError as error:
            # The next read repeats the correction.
            _LOG.warning("the times of the latest messages were not corrected after a clock setback: %s", error)
        return capped

    async def close(self) -> None:
        """Close the SQLite file."""
        await self._database.close()

    def _read_states(self, database: sqlite3.Connection) -> Mapping[str, ConnectionState]:
        """Read the states of all connections.

        For an unchanged state, the previous object is returned again, which saves time.
        """
        before, states = self._last_read, dict[str, tuple[_Row, ConnectionState]]()
        rows: list[_Row] = database.execute(_READ).fetchall()
        for row in rows:
            found = before.get(row[0])
            states[row[0]] = found if found is not None and found[0] == row else (row, _state_from_row(row))
        self._last_read = states
        return {connection: state for connection, (_, state) in states.items()}


def _add_new_messages_to_counts(
    database: sqlite3.Connection, arrivals: Sequence[ArrivedMessages], at: datetime
) -> None:
    for each in arrivals:
        row: tuple[int, str] | None = database.execute(_READ_SOURCE, (each.connection, each.source)).fetchone()
        highest, latest = row or (None, "")
        new = each.list_uncounted_sequence_numbers(highest, latest)
        last = format_rfc3339(each.last_message)
        if new or last > latest:
            _add_to_message_counts(database, each.connection, len(new), last, at)
            _store_source_progress(database, each, max(new, default=highest), max(last, latest))
            _add_to_mismatch_count(database, each.connection, len(each.mismatched.intersection(new)))


def _add_to_message_counts(
    database: sqlite3.Connection, connection: str, new_messages: int, last_message_at: str, at: datetime
) -> None:
    """Add new messages to the count of their connection, and move the time of its latest message forward.

    A stored time later than the current time ``at`` is first replaced by the current time, as in
    :func:`shared.background.ports.cap_stored_time`.
    """
    database.execute(
        "INSERT INTO connection_states (connection, messages_received, last_message) VALUES (?, ?, ?)"
        " ON CONFLICT (connection) DO UPDATE SET messages_received = messages_received + excluded.messages_received,"
        " last_message = max(iif(last_message > ?, ?, ifnull(last_message, '')), excluded.last_message)",
        (connection, new_messages, last_message_at, format_rfc3339(at + CLOCK_TOLERANCE), format_rfc3339(at)),
    )


def _is_in_future(time: datetime | None, at: datetime) -> bool:
    """Return whether a time was stored before a clock setback, which is now ``at``."""
    return time is not None and time > at + CLOCK_TOLERANCE


def _cap_future_times(database: sqlite3.Connection, at: datetime) -> None:
    """Replace times of latest messages that were stored before a clock setback by the current time ``at``."""
    database.execute(
        "UPDATE connection_states SET last_message = ? WHERE last_message > ?",
        (format_rfc3339(at), format_rfc3339(at + CLOCK_TOLERANCE)),
    )


def _store_source_progress(
    database: sqlite3.Connection, arrivals: ArrivedMessages, highest_number: int | None, last_message_at: str
) -> None:
    """Store the highest counted sequence number, and the latest message's time, of a connection in a hub partition."""
    database.execute(
        "INSERT INTO connection_sources (connection, source, highest) VALUES (?, ?, ?)"
        " ON CONFLICT (connection, source) DO UPDATE SET highest = excluded.highest",
        (arrivals.connection, arrivals.source, highest_number),
    )
    database.execute(
        "INSERT INTO connection_source_times (connection, source, last_message) VALUES (?, ?, ?)"
        " ON CONFLICT (connection, source) DO UPDATE SET last_message = excluded.last_message",
        (arrivals.connection, arrivals.source, last_message_at),
    )


def _add_to_mismatch_count(database: sqlite3.Connection, connection: str, new_mismatches: int) -> None:
    if new_mismatches:
        database.execute(
            "INSERT INTO connection_type_mismatches (connection, messages) VALUES (?, ?)"
            " ON CONFLICT (connection) DO UPDATE SET messages = messages + excluded.messages",
            (connection, new_mismatches),
        )


def _state_from_row(row: _Row) -> ConnectionState:
    _, status, received, last, mismatches = row
    return ConnectionState(status, received, parse_rfc3339(last) if last else None, mismatches)
