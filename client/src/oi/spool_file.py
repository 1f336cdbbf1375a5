"""Spool file: telemetry messages that still have to be sent, in SQLite."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

_SCHEMA = "CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, lookup TEXT NOT NULL, line BLOB NOT NULL) STRICT"


class SpoolFile:
    """SQLite file of telemetry messages, in the order in which they were added.

    Args:
        path: path of the file, created if it is missing.
    """

    def __init__(self, path: Path | str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        # A message is on disk when `add` returns, also after a power failure.
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, lookup: str, lines: Sequence[bytes]) -> None:
        """Append messages (NDJSON lines) of a data connection; all are on disk when this function returns."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(
                "INSERT INTO message (lookup, line) VALUES (?, ?)", ((lookup, line) for line in lines)
            )
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def read(self, limit: int) -> tuple[str, list[tuple[int, bytes]]]:
        """Return the connection of the oldest message, and this connection's oldest messages with their row ids.

        Both are empty if no message is stored.
        """
        first = self._database.execute("SELECT lookup FROM message ORDER BY id LIMIT 1").fetchone()
        if first is None:
            return "", []
        rows = self._database.execute(
            "SELECT id, line FROM message WHERE lookup = ? ORDER BY id LIMIT ?", (first[0], limit)
        ).fetchall()
        return first[0], rows

    def remove(self, ids: Sequence[int]) -> None:
        """Remove the messages with these row ids, because the service has accepted them."""
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("DELETE FROM message WHERE id = ?", ((each,) for each in ids))
        self._database.execute("COMMIT")

    def __len__(self) -> int:
        """Return the number of messages that still have to be sent."""
        (count,) = self._database.execute("SELECT count(*) FROM message").fetchone()
        return int(count)
