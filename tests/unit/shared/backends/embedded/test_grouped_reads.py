"""Batched reads of one file."""

import asyncio
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.sqlite_batching import ReadBatcher


async def test_each_read_gets_its_own_result(tmp_path: Path) -> None:
    """Each read gets its own rows or error, and a cancelled read does not affect others."""
    database = SqliteDatabase(tmp_path / "file.sqlite", "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1), (2);")
    reads = ReadBatcher(database)
    gone = asyncio.create_task(reads.read(lambda connection: connection.execute("SELECT 1").fetchone()))
    good = [asyncio.create_task(reads.read(partial(_added, n))) for n in range(50)]
    bad = asyncio.create_task(reads.read(lambda connection: connection.execute("SELECT * FROM nothing")))
    await asyncio.sleep(0)
    gone.cancel()
    assert await asyncio.gather(*good) == [[(n + 1,), (n + 2,)] for n in range(50)]
    with pytest.raises(sqlite3.OperationalError):
        await bad
    await database.close()


def _added(number: int, connection: sqlite3.Connection) -> list[tuple[int]]:
    return connection.execute("SELECT ? + n FROM t", (number,)).fetchall()
