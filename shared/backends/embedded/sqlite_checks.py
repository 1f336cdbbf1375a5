"""Readiness checks of SQLite files, on a separate connection with a short timeout."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

WAIT_SECONDS: Final = 2.0
"""A writer that holds the lock for longer blocks other writers noticeably."""
_LONGEST_PAUSE_SECONDS: Final = 0.01
"""Longest pause between attempts: SQLite's own pauses grow so long that a busy file would seem locked."""


async def check_write_lock(path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
    """Check that a writer can lock a file; a missing file is accepted, and nothing is written.

    Args:
        path: the file.
        wait_seconds: timeout while other writers hold the lock.

    Raises:
        sqlite3.Error: the file is locked, read-only or damaged.
    """
    await asyncio.to_thread(_check, path, wait_seconds, _roll_back)


async def check_write(path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
    """Check that a file can be written; a missing file is accepted. See :func:`check_write_lock` for the arguments.

    Raises:
        sqlite3.Error: the disk is full, or the file is locked, read-only or damaged.
    """
    await asyncio.to_thread(_check, path, wait_seconds, _write_row)


def _check(path: Path, wait_seconds: float, work: Callable[[sqlite3.Connection], None]) -> None:
    if not path.exists():
        return
    # As a URI with mode=rw, because a file that was deleted meanwhile must not be created.
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


def _roll_back(file: sqlite3.Connection) -> None:
    file.execute("ROLLBACK")


def _write_row(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE IF NOT EXISTS checked (at REAL)")
    file.execute("DELETE FROM checked")
    file.execute("INSERT INTO checked VALUES (julianday())")
    file.execute("COMMIT")
