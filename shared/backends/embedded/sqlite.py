"""One SQLite file: power-loss safe, several processes at once, off the event loop."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from shared.observability.tracing import call_span

BUSY_TIMEOUT_MS = 30_000
WRITE_SECONDS = 10.0
_LEAST_SECONDS = 0.05
"""What a write gets that waited in this process for all of its time: the file may be free by then."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a file in WAL mode with synchronous=FULL, so that a commit survives power loss; the caller closes it."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, autocommit=True, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
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


FAILURES: Final = (sqlite3.Error, OSError)
"""What says that a file failed; whatever else is raised over it is an answer."""


def told_as(path: Path, operation: str) -> dict[str, str | int]:
    """Return the attributes of a span of a call to a file, by the OpenTelemetry conventions for databases."""
    return {"db.system.name": "sqlite", "db.namespace": path.stem, "db.operation.name": operation}


class Database:
    """A SQLite file with its schema, used from coroutines; one thread reads, another one writes, each in order.

    Args:
        path: the file.
        schema: what makes its tables where they are missing.
        write_seconds: how long a write may wait for others, of this process and of others, that hold the file.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, schema: str, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._reading = _Connected(path, schema, "reads")
        self._writing = _Connected(path, schema, "writes")
        self._write_seconds = write_seconds
        self.path = path
        self._read_span = f"read {path.stem}", told_as(path, "read"), FAILURES
        self._write_span = f"write {path.stem}", told_as(path, "write"), FAILURES

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function over one consistent view of the file; no writer holds it up."""
        with call_span(*self._read_span):
            return await self._reading.run(lambda connection: _within(connection, "BEGIN", work))

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction; on an exception nothing of it stays."""
        deadline = time.monotonic() + self._write_seconds

        def run(connection: sqlite3.Connection) -> T:
            left = max(deadline - time.monotonic(), _LEAST_SECONDS)
            connection.execute(f"PRAGMA busy_timeout={round(left * 1000)}")
            return _within(connection, "BEGIN IMMEDIATE", work)

        with call_span(*self._write_span):
            return await self._writing.run(run)

    async def close(self) -> None:
        """Finish what runs and close the file."""
        await self._writing.close()
        await self._reading.close()


class _Connected:
    """A connection to a file, made on first use, and the thread that uses it."""

    def __init__(self, path: Path, schema: str, purpose: str) -> None:
        self._path = path
        self._schema = schema
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.stem}-{purpose}")
        self._connection: sqlite3.Connection | None = None

    async def run[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(self._open()))

    async def close(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        # A caller that was cancelled leaves its work behind, which may be opening the file at this moment.
        self._executor.shutdown(wait=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = connect(self._path)
            try:
                connection.executescript(self._schema)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


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
