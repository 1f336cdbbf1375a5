"""One SQLite file: power-loss safe, several processes at once, off the event loop."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUSY_TIMEOUT_MS = 30_000


def connect(path: Path) -> sqlite3.Connection:
    """Open a file in WAL mode with synchronous=FULL, so that a commit survives power loss; the caller closes it."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, autocommit=True, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    _use_wal(connection)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; processes that open a new file at once collide here without SQLite's busy handler waiting."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))  # noqa: S311  spreads retries, no secret
        else:
            return


class Database:
    """A SQLite file with its schema, used from coroutines; one thread does its work in order."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = schema
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.stem}")
        self._connection: sqlite3.Connection | None = None

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function over one consistent view of the file."""
        return await self._run(lambda connection: _within(connection, "BEGIN", work))

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction; on an exception nothing of it stays."""
        return await self._run(lambda connection: _within(connection, "BEGIN IMMEDIATE", work))

    async def check(self) -> None:
        """Return when the file takes writes.

        Raises:
            sqlite3.Error: it does not: full, read-only, locked or damaged.
        """
        await self.write(lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS checked (at REAL)"))
        await self.write(_write_something)

    async def close(self) -> None:
        """Finish what runs and close the file."""
        if self._connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._connection.close)
            self._connection = None
        self._executor.shutdown(wait=True)

    async def _run[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(self._open()))

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(self._path)
            self._connection.executescript(self._schema)
        return self._connection


def _write_something(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM checked")
    connection.execute("INSERT INTO checked VALUES (julianday())")


def _within[T](connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # A commit that failed may have left the transaction open, or not; SQLite itself ends it on some errors.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result
