"""Closing of SQLite files."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from shared.backends.embedded import sqlite
from shared.backends.embedded.sqlite import SqliteDatabase


async def test_a_file_is_closed_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller cancelled during the opening leaves no connection after the close."""
    begun, go_on = threading.Event(), threading.Event()
    opened: list[sqlite3.Connection] = []
    genuine = sqlite.connect

    def slow(path: Path) -> sqlite3.Connection:
        begun.set()
        go_on.wait()
        opened.append(genuine(path))
        return opened[0]

    monkeypatch.setattr(sqlite, "connect", slow)
    database = SqliteDatabase(tmp_path / "a.sqlite", "")
    reading = asyncio.create_task(database.read(lambda connection: connection.execute("SELECT 1").fetchone()))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    go_on.set()
    await closing
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    await database.close()
