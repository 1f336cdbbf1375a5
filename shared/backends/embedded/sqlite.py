"""SQLite files that survive power loss, are shared by several processes, and are accessed outside the event loop.

Reads and writes can run in batches: calls that arrive while a batch runs form the next batch. The writes of a batch
share one commit, and so one flush to disk. The reads of a batch share one switch between threads, because a switch
costs more than reading a row.
"""

import asyncio
import contextvars
import math
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shared.backends.embedded.disk import enable_incremental_vacuum
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.tracing import find_current_span_context, open_batch_span, open_call_span
from shared.runtime import SYSTEM_RUNTIME, Runtime

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

BUSY_TIMEOUT_MS: Final = 30_000
JOURNAL_BYTES: Final = 64 * 1024 * 1024
"""Size in bytes to which SQLite cuts a write-ahead log after a checkpoint; otherwise the log would never shrink."""
WRITE_SECONDS: Final = 10.0
_LEAST_SECONDS: Final = 0.05
"""Minimum timeout in seconds for the file's lock, even if a write has used up its waiting time in this process."""
_TIMEOUT_STEP_MS: Final = 50
"""Timeouts for the file's lock are rounded up to multiples of this number of milliseconds."""

FAILURES: Final = (sqlite3.Error, OSError)
"""Exceptions that mean that the file failed; any other exception comes from the function that a transaction runs."""
MAX_WRITES: Final = 256
"""Maximum number of writes of one commit; with more writes, the first would wait too long."""

_STEPS_BETWEEN_CHECKS: Final = 10_000
"""Number of SQLite's virtual machine instructions between two checks whether the caller is cancelled."""
_DAMAGE_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_LOG = logs.get_logger("sqlite")

type Work = Callable[[sqlite3.Connection], Any]
type Outcome = Any
"""Result of a function of a batch, or the exception that it raised."""


def connect(path: Path, runtime: Runtime = SYSTEM_RUNTIME, *, incremental_vacuum: bool = False) -> sqlite3.Connection:
    """Open a file in WAL mode with synchronous=FULL, so that commits survive power loss.

    The caller closes the connection.

    Args:
        path: path of the file, created if it does not exist.
        runtime: clock, randomness and threads.
        incremental_vacuum: whether free pages can be returned to the file system; only effective for a new file.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, autocommit=True, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if incremental_vacuum:
            enable_incremental_vacuum(connection)
        _enable_wal(connection, runtime)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_wal(connection: sqlite3.Connection, runtime: Runtime) -> None:
    """Switch a SQLite file to WAL mode (write-ahead log), with retries.

    SQLite's busy timeout does not apply when several processes open a new file at the same time.
    """
    deadline = runtime.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or runtime.monotonic() > deadline:
                raise
            runtime.block(runtime.uniform(0.001, 0.02))
        else:
            return


def build_trace_attributes_of_file(path: Path, operation: str) -> dict[str, str | int]:
    """Return the trace attributes of an operation on a file, by the OpenTelemetry conventions for databases."""
    return {"db.system.name": "sqlite", "db.namespace": path.stem, "db.operation.name": operation}


@contextmanager
def convert_sqlite_errors(error_code: str, store_name: str) -> Iterator[None]:
    """Context manager: convert failures of a SQLite file, such as a full disk or a lock, to UNAVAILABLE errors.

    Args:
        error_code: error code, for instance ``CATALOG_UNAVAILABLE``.
        store_name: what the file stores, for the error message, for instance ``the catalog``.

    Raises:
        WorkspaceError: UNAVAILABLE with the given code; it has no Retry-After if the file is damaged.
    """
    try:
        yield
    except FAILURES as error:
        raise build_file_failure_error(error_code, store_name, error) from error


def build_file_failure_error(error_code: str, store_name: str, cause: BaseException) -> WorkspaceError:
    """Build the UNAVAILABLE error about a failure of a SQLite file.

    If the file is damaged, log its cause; the error then has no Retry-After, because no retry can succeed.

    Args:
        error_code: error code, as for :func:`convert_sqlite_errors`.
        store_name: what the file stores, as for :func:`convert_sqlite_errors`.
        cause: exception of SQLite or of the operating system.
    """
    if is_damaged_file_error(cause):
        _LOG.error("the file of %s is damaged: %s", store_name, cause)
        detail = f"The file of {store_name} is damaged; requests that need it fail until an operator repairs it."
        return WorkspaceError(Kind.UNAVAILABLE, error_code, detail, retryAfter=None)
    name = store_name[0].upper() + store_name[1:]
    return WorkspaceError(Kind.UNAVAILABLE, error_code, f"{name} does not respond; retry later.")


def is_damaged_file_error(error: BaseException | None) -> bool:
    """Return whether an exception of SQLite means that the content of the file is damaged."""
    # The low byte is the primary code; the others distinguish kinds of damage.
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


def delete_database_file(path: Path) -> None:
    """Delete a SQLite file with its write-ahead log.

    Raises:
        OSError: a file cannot be deleted.
    """
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class SqliteDatabase:
    """SQLite file for coroutines. One thread reads from the file, and another thread writes to it.

    Args:
        path: path of the file.
        schema: SQL statements that create missing tables.
        write_seconds: maximum time in seconds that a write waits for other writers.
        runtime: clock, randomness and threads.

    Attributes:
        path: path of the file.
        runtime: clock, randomness and threads, also for the stores in this file.
    """

    def __init__(
        self, path: Path, schema: str, *, write_seconds: float = WRITE_SECONDS, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._reading = _ThreadConnection(path, schema, "reads", runtime)
        self._writing = _ThreadConnection(path, schema, "writes", runtime)
        self._write_seconds = write_seconds
        self.path = path
        self.runtime = runtime
        self._read_span = f"read {path.stem}", build_trace_attributes_of_file(path, "read"), FAILURES
        self._write_span = f"write {path.stem}", build_trace_attributes_of_file(path, "write"), FAILURES

    async def read[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function on a snapshot of the file and return its result; writers do not block the function."""
        with open_call_span(*self._read_span):
            return await self._reading.run(lambda connection: _run_transaction(connection, "BEGIN", function))

    async def read_until_cancelled[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function like :meth:`read`; if the caller is cancelled, its running statement ends with an error."""
        is_cancelled = threading.Event()

        def read_unless_cancelled(connection: sqlite3.Connection) -> T:
            connection.set_progress_handler(is_cancelled.is_set, _STEPS_BETWEEN_CHECKS)
            try:
                return function(connection)
            finally:
                connection.set_progress_handler(None, _STEPS_BETWEEN_CHECKS)

        try:
            return await self.read(read_unless_cancelled)
        finally:
            is_cancelled.set()

    async def write[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction and return its result; an exception rolls the transaction back."""
        deadline = self.runtime.monotonic() + self._write_seconds

        def run_transaction(connection: sqlite3.Connection) -> T:
            self._writing.limit_lock_wait(connection, max(deadline - self.runtime.monotonic(), _LEAST_SECONDS))
            return _run_transaction(connection, "BEGIN IMMEDIATE", function)

        with open_call_span(*self._write_span):
            return await self._writing.run(run_transaction)

    async def close(self) -> None:
        """Wait for running transactions, and close the SQLite file."""
        await self._writing.close()
        await self._reading.close()


class _ThreadConnection:
    """Connection to a SQLite file, opened on first use, and used by one dedicated thread."""

    def __init__(self, path: Path, schema: str, purpose: str, runtime: Runtime) -> None:
        self._path = path
        self._schema = schema
        self._executor = runtime.open_pool(1, f"sqlite-{path.stem}-{purpose}")
        self._runtime = runtime
        self._connection: sqlite3.Connection | None = None
        self._timeout_ms = BUSY_TIMEOUT_MS

    async def run[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.wrap_future(self._executor.submit(lambda: function(self._open_connection())))

    def limit_lock_wait(self, connection: sqlite3.Connection, max_seconds: float) -> None:
        """Limit how long the connection waits for the file's lock; only its own thread calls this."""
        # Rounded up, nearly all limits are equal. Each new one costs a statement, and its text a place in the cache.
        timeout_ms = math.ceil(max_seconds * 1000 / _TIMEOUT_STEP_MS) * _TIMEOUT_STEP_MS
        if timeout_ms != self._timeout_ms:
            connection.execute(f"PRAGMA busy_timeout={timeout_ms}")
            self._timeout_ms = timeout_ms

    async def close(self) -> None:
        await self._runtime.run_in_thread(self._stop_thread_and_close_connection)

    def _stop_thread_and_close_connection(self) -> None:
        # The function of a cancelled caller may still be opening the file.
        self._executor.shutdown(wait=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = connect(self._path, self._runtime)
            try:
                connection.executescript(self._schema)
            except BaseException:
                connection.close()
                raise
            self._connection, self._timeout_ms = connection, BUSY_TIMEOUT_MS
        return self._connection


def _run_transaction[T](
    connection: sqlite3.Connection, begin_sql: str, function: Callable[[sqlite3.Connection], T]
) -> T:
    connection.execute(begin_sql)
    try:
        result = function(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite ends the transaction on some errors itself; a failed commit can leave it open.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


@dataclass(frozen=True, slots=True)
class _Call:
    """Function that waits in a batcher until the next batch runs."""

    work: Work
    future: asyncio.Future[Any]
    caller: "SpanContext | None"


class _Batcher(ABC):
    """Base class that collects calls of functions and runs the functions in batches."""

    operation: ClassVar[str]
    max_calls: ClassVar[int | None] = None

    def __init__(self, database: SqliteDatabase, wait_span_name: str, batch_span_name: str) -> None:
        self._database = database
        self._waiting: list[_Call] = []
        self._task: asyncio.Task[None] | None = None
        self._attributes = build_trace_attributes_of_file(database.path, self.operation)
        self._wait_span = wait_span_name
        self._batch_span = batch_span_name

    async def _run_in_next_batch[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with open_call_span(self._wait_span, self._attributes, FAILURES, kind="INTERNAL"):
            self._waiting.append(_Call(function, future, find_current_span_context()))
            if self._task is None or self._task.done():
                # An empty context, because the task serves many callers.
                self._task = asyncio.create_task(self._run_batches(), context=contextvars.Context())
            return await future

    async def _run_batches(self) -> None:
        while self._waiting:
            batch = self._waiting[: self.max_calls]
            del self._waiting[: len(batch)]
            size: dict[str, str | int] = {"db.operation.batch.size": len(batch)} if len(batch) > 1 else {}
            try:
                with open_batch_span(self._batch_span, [call.caller for call in batch], self._attributes | size):
                    outcomes = await self._run_batch([call.work for call in batch])
            except Exception as error:  # noqa: BLE001  raised to every caller of the batch
                outcomes = [error] * len(batch)
            for call, outcome in zip(batch, outcomes, strict=True):
                _resolve_future(call.future, outcome)

    @abstractmethod
    async def _run_batch(self, functions: Sequence[Work]) -> Sequence[Outcome]:
        """Run the functions of a batch; return the result or the exception of each function."""


class ReadBatcher(_Batcher):
    """Runs reads of one SQLite file in batches.

    Args:
        database: the SQLite file.
    """

    operation = "read"

    def __init__(self, database: SqliteDatabase) -> None:
        name = database.path.stem
        super().__init__(database, f"wait for the read of {name}", f"read together from {name}")

    async def read[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that reads the file, and return its result; an exception does not affect other reads."""
        return await self._run_in_next_batch(function)

    async def _run_batch(self, functions: Sequence[Work]) -> Sequence[Outcome]:
        return await self._database.read(
            lambda connection: [_run_and_return_result_or_error(connection, work) for work in functions]
        )


class WriteBatcher(_Batcher):
    """Runs writes to a SQLite file, many in one commit; a failed write does not affect the others.

    Args:
        database: the SQLite file; closed with the batcher.
    """

    operation = "write"
    max_calls = MAX_WRITES

    def __init__(self, database: SqliteDatabase) -> None:
        name = database.path.stem
        super().__init__(database, f"wait for the write to {name}", f"commit to {name}")

    async def write[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that writes to the file; return its result after the commit.

        An exception of the function undoes its writes and is raised.
        """
        return await self._run_in_next_batch(function)

    async def close(self) -> None:
        """Finish the waiting writes and close the file."""
        if self._task is not None:
            await self._task
        await self._database.close()

    async def _run_batch(self, functions: Sequence[Work]) -> Sequence[Outcome]:
        return await self._database.write(
            lambda connection: [_run_in_savepoint(connection, work) for work in functions]
        )


def _run_and_return_result_or_error(connection: sqlite3.Connection, function: Work) -> Outcome:
    try:
        return function(connection)
    except Exception as error:  # noqa: BLE001  raised to the caller of this read
        return error


def _run_in_savepoint(connection: sqlite3.Connection, function: Work) -> Outcome:
    """Run one function in a savepoint; return its result, or its exception after rolling back its changes."""
    connection.execute("SAVEPOINT alone")
    try:
        outcome = function(connection)
    except Exception as error:  # noqa: BLE001  the other writes of the batch continue
        # If SQLite has ended the whole transaction, this statement fails, and the batch with it.
        connection.execute("ROLLBACK TO alone")
        outcome = error
    connection.execute("RELEASE alone")
    return outcome


def _resolve_future(future: asyncio.Future[Any], outcome: Outcome) -> None:
    if future.done():
        return  # the caller was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
