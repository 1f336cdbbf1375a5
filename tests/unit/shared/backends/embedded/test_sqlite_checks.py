"""Tests of readiness checks of SQLite files."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.sqlite import connect
from shared.backends.embedded.sqlite_checks import check_file_is_writable, check_write_lock_is_available

type Check = Callable[[Path, float], Awaitable[None]]

CHECKS = [check_write_lock_is_available, check_file_is_writable]
SOON = 0.1


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    """Return the path of a SQLite file with a table."""
    made = tmp_path / "a file #1?.sqlite"
    with closing(connect(made)) as connection:
        connection.execute("CREATE TABLE t (n INTEGER)")
    return made


@contextmanager
def hold_lock(database_path: Path) -> Iterator[None]:
    """Hold the write lock of a file for the duration of the block."""
    with closing(sqlite3.connect(database_path, autocommit=True)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.parametrize("check", CHECKS)
async def test_the_readiness_check_of_a_locked_file_fails(database_path: Path, check: Check) -> None:
    """While another writer holds the lock, the readiness check fails; afterwards it succeeds."""
    with hold_lock(database_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        await check(database_path, SOON)
    await check(database_path, SOON)


@pytest.mark.parametrize("check", CHECKS)
async def test_the_readiness_check_creates_no_file(tmp_path: Path, check: Check) -> None:
    """If a store has no file yet, its readiness check succeeds and does not create the file."""
    await check(tmp_path / "new.sqlite", SOON)
    assert not [*tmp_path.iterdir()]  # noqa: ASYNC240  a folder of its own


@pytest.mark.parametrize("check", CHECKS)
async def test_the_readiness_check_of_a_damaged_file_fails(tmp_path: Path, check: Check) -> None:
    """If the file is not a database, the readiness check fails."""
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        await check(path, SOON)


async def test_on_a_full_disk_only_the_write_check_fails(database_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the check of writing fails, but the check of the lock succeeds."""
    genuine = sqlite3.connect

    def raise_disk_full(name: str, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = genuine(name, **options)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", raise_disk_full)
    await check_write_lock_is_available(database_path, SOON)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        await check_file_is_writable(database_path, SOON)


async def test_the_readiness_check_of_a_busy_file_succeeds(database_path: Path) -> None:
    """The check succeeds even if other writers hold the lock most of the time, and no write is lost."""
    enough = threading.Event()

    def write() -> int:
        written = 0
        with closing(connect(database_path)) as connection:
            while not enough.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO t VALUES (1)")
                enough.wait(0.002)
                connection.execute("COMMIT")
                written += 1
        return written

    writing = asyncio.create_task(asyncio.to_thread(write))
    try:
        for _ in range(5):
            await check_write_lock_is_available(database_path, 20)
    finally:
        enough.set()
    written = await writing
    with closing(sqlite3.connect(database_path)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (written,)
