"""The audit log in SQLite: create-only rows, one writer at a time, several processes."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from shared.backends.embedded.faults import answering
from shared.backends.embedded.sqlite import Database
from shared.provenance.ports import Target
from shared.provenance.records import event_record, genesis_hash, opened, seal
from shared.timestamps import now, rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS provenance_records (
  target TEXT NOT NULL, scope TEXT NOT NULL, sequence INTEGER NOT NULL, append_id TEXT NOT NULL UNIQUE,
  timestamp TEXT NOT NULL, canonical BLOB NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (target, scope, sequence)
);
"""


class SqliteAuditLog:
    """The AuditLog port over a SQLite file.

    Args:
        path: the file; made on first use.
        workspace: gives the workspace's id, which each chain starts from.
        clock: gives the current instant.
    """

    def __init__(
        self, path: Path, workspace: Callable[[], Awaitable[str]], *, clock: Callable[[], datetime] = now
    ) -> None:
        self._database = Database(path, SCHEMA)
        self._workspace = workspace
        self._clock = clock

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event, or return the record that this append id already made."""
        genesis = genesis_hash(await self._workspace(), target, scope_key)

        def work(connection: sqlite3.Connection) -> dict[str, Any]:
            made = _by_append_id(connection, append_id)
            if made is not None:
                return made
            last, previous_hash, last_timestamp = _tip(connection, target, scope_key) or (0, genesis, "")
            timestamp = max(rfc3339(self._clock()), last_timestamp)
            sealed = seal(event_record(last + 1, timestamp, user_id, event), previous_hash)
            row = (target, scope_key, last + 1, append_id, timestamp, sealed.canonical, sealed.hash)
            connection.execute("INSERT INTO provenance_records VALUES (?,?,?,?,?,?,?)", row)
            return sealed.record

        with answering("PROVENANCE_UNAVAILABLE", "the audit log"):
            return await self._database.write(work)

    async def close(self) -> None:
        """Finish what runs and close the file."""
        await self._database.close()

    async def records(self, target: Target, scope_key: str = "") -> list[dict[str, Any]]:
        """Return a chain from its first record; holds it whole in memory."""
        sql = "SELECT canonical, hash FROM provenance_records WHERE target = ? AND scope = ? ORDER BY sequence"

        def work(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            return [opened(canonical, stored) for canonical, stored in connection.execute(sql, (target, scope_key))]

        with answering("PROVENANCE_UNAVAILABLE", "the audit log"):
            return await self._database.read(work)


def _by_append_id(connection: sqlite3.Connection, append_id: str) -> dict[str, Any] | None:
    sql = "SELECT canonical, hash FROM provenance_records WHERE append_id = ?"
    row = connection.execute(sql, (append_id,)).fetchone()
    return None if row is None else opened(*row)


def _tip(connection: sqlite3.Connection, target: Target, scope_key: str) -> tuple[int, str, str] | None:
    sql = (
        "SELECT sequence, hash, timestamp FROM provenance_records WHERE target = ? AND scope = ? "
        "ORDER BY sequence DESC LIMIT 1"
    )
    row: tuple[int, str, str] | None = connection.execute(sql, (target, scope_key)).fetchone()
    return row
