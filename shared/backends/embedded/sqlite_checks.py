"""Whether a writer can get into a SQLite file: found out on a connection of its own, in a moment."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

WAIT_SECONDS: Final = 2.0
"""Whoever holds the file for longer keeps writers waiting."""
_LONGEST_PAUSE_SECONDS: Final = 0.01
"""Between two tries: SQLite's own pauses grow so long that a file with many writers would seem locked."""


async def check_write_lock(path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
    """Return when a writer gets into a file, or when there is no file yet; nothing is written.

    Args:
        path: the file.
        wait_seconds: how long others may hold it.

    Raises:
        sqlite3.Error: none does: the file is locked, read-only or damaged.
    """
    await asyncio.to_thread(_enter, path, wait_seconds, _leave)


async def check_write(path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
    """Return when a file takes a write to disk, or when there is no file yet; arguments as for ``check_write_lock``.

    Raises:
        sqlite3.Error: it does not: full, locked, read-only or damaged.
    """
    await asyncio.to_thread(_enter, path, wait_seconds, _write_something)


def _enter(path: Path, wait_seconds: float, work: Callable[[sqlite3.Connection], None]) -> None:
    if not path.exists():
        return
    # By name and not by path: a file that is removed meanwhile must not be made.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0, autocommit=True)) as file:
        _begin(file, time.monotonic() + wait_seconds)
        work(file)


def _begin(file: sqlite3.Connection, deadline: float) -> None:
    while True:
        try:
            file.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, _LONGEST_PAUSE_SECONDS))  # noqa: S311  spreads retries, no secret
        else:
            return


def _leave(file: sqlite3.Connection) -> None:
    file.execute("ROLLBACK")


def _write_something(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE IF NOT EXISTS checked (at REAL)")
    file.execute("DELETE FROM checked")
    file.execute("INSERT INTO checked VALUES (julianday())")
    file.execute("COMMIT")
