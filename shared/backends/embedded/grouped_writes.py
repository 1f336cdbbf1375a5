"""Group commit: writes that come while one is being put on disk go together in the next transaction."""

import asyncio
import contextvars
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.backends.embedded.sqlite import FAILURES, Database, told_as
from shared.observability.tracing import batch_span, call_span, caller

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

MAX_GROUP: Final = 256

type Work = Callable[[sqlite3.Connection], Any]


@dataclass(frozen=True, slots=True)
class _Waiting:
    work: Work
    ended: asyncio.Future[Any]
    caller: "SpanContext | None"


class GroupedWrites:
    """Runs writes on a file, many a commit; each succeeds or fails by itself.

    Args:
        database: the file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._told_as = told_as(database.path, "write")
        self._waits = f"wait for the write to {database.path.stem}"
        self._commits = f"commit to {database.path.stem}"

    async def write[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a write transaction, return once it is on disk; on an exception nothing of it stays."""
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with call_span(self._waits, self._told_as, FAILURES, kind="INTERNAL"):
            self._waiting.append(_Waiting(work, ended, caller()))
            if self._writing is None:
                # In a context of its own: it serves many callers.
                self._writing = asyncio.create_task(self._write_all(), context=contextvars.Context())
            return await ended

    async def close(self) -> None:
        """Finish what waits and close the file."""
        if self._writing is not None:
            await self._writing
        await self._database.close()

    async def _write_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            size: dict[str, str | int] = {"db.operation.batch.size": len(group)} if len(group) > 1 else {}
            try:
                with batch_span(self._commits, [waiting.caller for waiting in group], self._told_as | size):
                    outcomes = await self._database.write(_together([waiting.work for waiting in group]))
            except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it is
                outcomes = [error] * len(group)
            for waiting, outcome in zip(group, outcomes, strict=True):
                _tell(waiting.ended, outcome)
        self._writing = None


def _together(works: list[Work]) -> Callable[[sqlite3.Connection], list[Any]]:
    def run(connection: sqlite3.Connection) -> list[Any]:
        return [_alone(connection, work) for work in works]

    return run


def _alone(connection: sqlite3.Connection, work: Work) -> Any:
    """Return what a function gives or the exception that it raises, nothing of it having stayed then."""
    connection.execute("SAVEPOINT alone")
    try:
        outcome = work(connection)
    except Exception as error:  # noqa: BLE001  the others of the group go on
        # Where SQLite has ended the whole transaction, this fails and with it the group.
        connection.execute("ROLLBACK TO alone")
        outcome = error
    connection.execute("RELEASE alone")
    return outcome


def _tell(ended: asyncio.Future[Any], outcome: Any) -> None:
    if ended.done():
        return  # who waited has gone
    if isinstance(outcome, Exception):
        ended.set_exception(outcome)
    else:
        ended.set_result(outcome)
