"""Reads that arrive together go to SQLite together: a hop to its thread costs more than a point read."""

import asyncio
import contextvars
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from shared.backends.embedded.sqlite import FAILURES, Database, told_as
from shared.observability.tracing import batch_span, call_span, caller

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

type _Waiting = tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any], "SpanContext | None"]


class GroupedReads:
    """Runs reads of one file; those that arrive while one runs ride in the next.

    Args:
        database: the file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._told_as = told_as(database.path, "read")
        self._waits = f"wait for the read of {database.path.stem}"
        self._reads = f"read together from {database.path.stem}"

    async def read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what a function makes of the file; what it raises is raised here and troubles no other read."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with call_span(self._waits, self._told_as, FAILURES, kind="INTERNAL"):
            self._waiting.append((work, future, caller()))
            if self._task is None or self._task.done():
                # In a context of its own: it serves many callers.
                self._task = asyncio.create_task(self._run(), context=contextvars.Context())
            return await future

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            size: dict[str, str | int] = {"db.operation.batch.size": len(batch)} if len(batch) > 1 else {}
            try:
                with batch_span(self._reads, [one for _, _, one in batch], self._told_as | size):
                    outcomes = await self._database.read(partial(_tried_all, [work for work, _, _ in batch]))
            except Exception as error:  # noqa: BLE001  each of them must hear of it
                outcomes = [(None, error)] * len(batch)
            for (_, future, _), (result, failure) in zip(batch, outcomes, strict=True):
                _settle(future, result, failure)


def _tried_all(
    works: list[Callable[[sqlite3.Connection], Any]], connection: sqlite3.Connection
) -> list[tuple[Any, Exception | None]]:
    return [_tried(work, connection) for work in works]


def _tried(work: Callable[[sqlite3.Connection], Any], connection: sqlite3.Connection) -> tuple[Any, Exception | None]:
    try:
        return work(connection), None
    except Exception as error:  # noqa: BLE001  handed to whoever asked
        return None, error


def _settle(future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
