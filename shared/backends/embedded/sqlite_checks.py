"""Readiness checks of SQLite files, on a separate connection with a short timeout."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from shared.runtime import SYSTEM_RUNTIME, Runtime

WAIT_SECONDS: Final = 2.0
"""Default timeout in seconds: a writer that holds the lock for longer blocks other writers noticeably."""
_LONGEST_PAUSE_SECONDS: Final = 0.01
"""Longest pause in seconds between attempts; SQLite's own pauses are so long that a busy file would seem locked."""


async def check_write_lock_is_available(
    path: Path, wait_seconds: float = WAIT_SECONDS, *, runtime: Runtime = SYSTEM_RUNTIME
) -> None:
    """Check that a SQLite file can be locked for writing; nothing is written, and a missing file is accepted.

    Args:
        path: the SQLite file.
        wait_seconds: timeout while other writers hold the lock.
        runtime: clock, randomness and threads.

    Raises:
        sqlite3.Error: the file is locked, read-only or damaged.
    """
    await runtime.run_in_thread(_run_check_in_write_transaction, path, wait_seconds, _roll_back, runtime)


async def check_file_is_writable(
    path: Path, wait_seconds: float = WAIT_SECONDS, *, runtime: Runtime = SYSTEM_RUNTIME
) -> None:
    """Check that a SQLite file can be written; a missing file is accepted.

    Arguments: see :func:`check_write_lock_is_available`.

    Raises:
        sqlite3.Error: the disk is full, or the file is locked, read-only or damaged.
    """
    await runtime.run_in_thread(_run_check_in_write_transaction, path, wait_seconds, _write_test_row, runtime)


def _run_check_in_write_transaction(
    path: Path, wait_seconds: float, check: Callable[[sqlite3.Connection], None], runtime: Runtime
) -> None:
    if not path.exists():
        return
    # As a URI with mode=rw, because a file that was deleted meanwhile must not be created.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0, autocommit=True)) as file:
        _begin_write_transaction(file, runtime.monotonic() + wait_seconds, runtime)
        check(file)


def _begin_write_transaction(file: sqlite3.Connection, monotonic_deadline: float, runtime: Runtime) -> None:
    while True:
        try:
            file.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or runtime.monotonic() > monotonic_deadline:
                raise
            runtime.block(runtime.uniform(0.001, _LONGEST_PAUSE_SECONDS))
        else:
            return


def _roll_back(file: sqlite3.Connection) -> None:
    file.execute("ROLLBACK")


def _write_test_row(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE IF NOT EXISTS checked (at REAL)")
    file.execute("DELETE FROM checked")
    file.execute("INSERT INTO checked VALUES (julianday())")
    file.execute("COMMIT")
