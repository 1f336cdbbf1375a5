"""Batches of reads and writes of a SQLite file.

Calls that arrive while one batch runs wait and form the next one. For writes this is group commit: many of them share
one flush of the disk. For reads it saves switches between threads, each of which costs more than a point read.
"""

import asyncio
import contextvars
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shared.backends.embedded.sqlite import FAILURES, SqliteDatabase, span_attributes
from shared.observability.tracing import batch_span, call_span, current_span_context

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

MAX_WRITES: Final = 256
"""Writes of one commit; more would make the first of them wait too long."""

type Work = Callable[[sqlite3.Connection], Any]


@dataclass(frozen=True, slots=True)
class _Call:
    """A caller's function that waits for its batch."""

    work: Work
    future: asyncio.Future[Any]
    caller: "SpanContext | None"


class _Batcher(ABC):
    """Base class that collects calls and runs them in batches."""

    operation: ClassVar[str]
    max_calls: ClassVar[int | None] = None

    def __init__(self, database: SqliteDatabase, wait_span: str, batch_span_name: str) -> None:
        self._database = database
        self._waiting: list[_Call] = []
        self._task: asyncio.Task[None] | None = None
        self._attributes = span_attributes(database.path, self.operation)
        self._wait_span = wait_span
        self._batch_span = batch_span_name

    async def _run[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with call_span(self._wait_span, self._attributes, FAILURES, kind="INTERNAL"):
            self._waiting.append(_Call(work, future, current_span_context()))
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
                with batch_span(self._batch_span, [call.caller for call in batch], self._attributes | size):
                    outcomes = await self._execute([call.work for call in batch])
            except Exception as error:  # noqa: BLE001  raised to every caller of the batch
                outcomes = [error] * len(batch)
            for call, outcome in zip(batch, outcomes, strict=True):
                _resolve(call.future, outcome)

    @abstractmethod
    async def _execute(self, works: Sequence[Work]) -> Sequence[Any]:
        """Run functions together; return the result of each, or its exception."""


class ReadBatcher(_Batcher):
    """Runs reads of one file; reads that arrive while a batch runs form the next one.

    Args:
        database: the file.
    """

    operation = "read"

    def __init__(self, database: SqliteDatabase) -> None:
        name = database.path.stem
        super().__init__(database, f"wait for the read of {name}", f"read together from {name}")

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of a function over the file; its exception reaches this caller only."""
        return await self._run(work)

    async def _execute(self, works: Sequence[Work]) -> Sequence[Any]:
        return await self._database.read(lambda connection: [_read_one(connection, work) for work in works])


class WriteBatcher(_Batcher):
    """Runs writes on a file, many in one commit; each succeeds or fails independently.

    Args:
        database: the file; closed with the batcher.
    """

    operation = "write"
    max_calls = MAX_WRITES

    def __init__(self, database: SqliteDatabase) -> None:
        name = database.path.stem
        super().__init__(database, f"wait for the write to {name}", f"commit to {name}")

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction and return after the commit; an exception undoes its changes."""
        return await self._run(work)

    async def close(self) -> None:
        """Finish the waiting writes and close the file."""
        if self._task is not None:
            await self._task
        await self._database.close()

    async def _execute(self, works: Sequence[Work]) -> Sequence[Any]:
        return await self._database.write(lambda connection: [_write_one(connection, work) for work in works])


def _read_one(connection: sqlite3.Connection, work: Work) -> Any:
    try:
        return work(connection)
    except Exception as error:  # noqa: BLE001  raised to the caller of this read
        return error


def _write_one(connection: sqlite3.Connection, work: Work) -> Any:
    """Return the result of a function, or its exception after its changes were undone."""
    connection.execute("SAVEPOINT alone")
    try:
        outcome = work(connection)
    except Exception as error:  # noqa: BLE001  the other writes of the batch continue
        # If SQLite has ended the whole transaction, this statement fails, and the batch with it.
        connection.execute("ROLLBACK TO alone")
        outcome = error
    connection.execute("RELEASE alone")
    return outcome


def _resolve(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return  # the caller was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
