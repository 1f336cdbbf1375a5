"""SQLite files: safe against power loss, shared by several processes, accessed outside the event loop."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability.tracing import call_span

BUSY_TIMEOUT_MS: Final = 30_000
WRITE_SECONDS: Final = 10.0
_LEAST_SECONDS: Final = 0.05
"""Timeout of a write that waited in this process until its deadline: the file may be free by then."""

FAILURES: Final = (sqlite3.Error, OSError)
"""Exceptions of a file that failed; any other exception of a transaction is a result of its function."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a file in WAL mode with synchronous=FULL, so that commits survive power loss; the caller closes it."""
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
    """Switch to WAL, with retries: SQLite's busy timeout does not apply when processes open a new file at once."""
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


def span_attributes(path: Path, operation: str) -> dict[str, str | int]:
    """Return the span attributes of an operation on a file, by the OpenTelemetry conventions for databases."""
    return {"db.system.name": "sqlite", "db.namespace": path.stem, "db.operation.name": operation}


@contextmanager
def unavailable_on_failure(code: str, store: str) -> Iterator[None]:
    """Convert a failure of the file (locked too long, disk full, damaged, unreachable) to UNAVAILABLE.

    Args:
        code: error code, for instance ``CATALOG_UNAVAILABLE``.
        store: name of the store in the error's detail.

    Raises:
        WorkspaceError: UNAVAILABLE with that code.
    """
    try:
        yield
    except FAILURES as error:
        raise WorkspaceError(Kind.UNAVAILABLE, code, f"{store} does not answer at the moment; try again") from error


class SqliteDatabase:
    """A SQLite file with its schema, used from coroutines; one thread reads and another one writes.

    Args:
        path: the file.
        schema: statements that create missing tables.
        write_seconds: how long a write may wait for other writers of this process and of others.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, schema: str, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._reading = _ThreadConnection(path, schema, "reads")
        self._writing = _ThreadConnection(path, schema, "writes")
        self._write_seconds = write_seconds
        self.path = path
        self._read_span = f"read {path.stem}", span_attributes(path, "read"), FAILURES
        self._write_span = f"write {path.stem}", span_attributes(path, "write"), FAILURES

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function over one consistent snapshot of the file; writers do not block it."""
        with call_span(*self._read_span):
            return await self._reading.run(lambda connection: _run_transaction(connection, "BEGIN", work))

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction; an exception rolls it back."""
        deadline = time.monotonic() + self._write_seconds

        def run(connection: sqlite3.Connection) -> T:
            remaining = max(deadline - time.monotonic(), _LEAST_SECONDS)
            connection.execute(f"PRAGMA busy_timeout={round(remaining * 1000)}")
            return _run_transaction(connection, "BEGIN IMMEDIATE", work)

        with call_span(*self._write_span):
            return await self._writing.run(run)

    async def close(self) -> None:
        """Finish running transactions and close the file."""
        await self._writing.close()
        await self._reading.close()


class _ThreadConnection:
    """A connection to a file, opened on first use, and the thread that uses it."""

    def __init__(self, path: Path, schema: str, purpose: str) -> None:
        self._path = path
        self._schema = schema
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.stem}-{purpose}")
        self._connection: sqlite3.Connection | None = None

    async def run[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(self._open()))

    async def close(self) -> None:
        await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        # The work of a cancelled caller may still be opening the file.
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


def _run_transaction[T](connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite ends the transaction on some errors itself; a failed commit may leave it open.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result
