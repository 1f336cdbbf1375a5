"""Query engine: runs queries concurrently, each within its timeout."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import duckdb
import orjson

from emulators.kusto.caches import StatementCache
from emulators.kusto.discovery import MAX_COLUMNS, Rows
from emulators.kusto.errors import (
    QueryError,
    internal_error,
    out_of_memory_error,
    throttling_error,
    timeout_error,
    too_complex_error,
)
from emulators.kusto.execution import Execution
from emulators.kusto.frames import KqlResult
from emulators.kusto.options import RequestOptions
from emulators.kusto.parameters import bind_parameters
from emulators.kusto.sandbox import abort_process
from emulators.kusto.translate import Translation
from emulators.kusto.translator import Translator

MAX_RUNNING = 72
"""Number of concurrent queries. It exceeds the number of cores, because the scheduler then divides the cores between
long and short queries; with fewer, a few long queries would block all others."""
MAX_WAITING = 128
MAX_CHARACTERS = 128 * 1024
"""A stored query may have half of this length; the rest is for the statements that the service adds."""
_STOP_SECONDS = 0.7
"""Time for a timed-out query to end before its caller receives the timeout error anyway."""
_STOP_RETRY_SECONDS = 0.05
_STUCK_SECONDS = 120
"""Time after which a query that cannot be interrupted ends the process; it would occupy a thread and a core forever."""
_MEMORY_ATTEMPTS = 4

_LOGGER = logging.getLogger(__name__)


class Engine:
    """Runs queries over one sandboxed database.

    Args:
        connection: the database; each query opens a cursor.
        translator: turns query texts into SQL.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, translator: Translator) -> None:
        self._connection = connection
        self._translator = translator
        self._statements = StatementCache()
        self._threads = ThreadPoolExecutor(MAX_RUNNING, thread_name_prefix="query")
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._stopping: set[asyncio.Task[None]] = set()
        self.pending = 0
        self.running = 0
        self.outcomes: dict[str, int] = {}

    async def query(self, text: str, parameters: Mapping[str, Any], options: RequestOptions) -> KqlResult:
        """Run a query; cancelling the call stops the query.

        Raises:
            QueryError: the query was rejected, failed or timed out.
        """
        if self.pending >= MAX_RUNNING + MAX_WAITING:
            self._count("TooManyRequests")
            raise throttling_error(MAX_RUNNING)
        self.pending += 1
        try:
            result = await self._query(text, parameters, options)
        except QueryError as error:
            self._count(error.code)
            raise
        finally:
            self.pending -= 1
        self._count("Completed")
        return result

    async def close(self) -> None:
        """Wait for the running queries to end; to be called after all callers have disconnected."""
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=_STOP_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def _query(self, text: str, parameters: Mapping[str, Any], options: RequestOptions) -> KqlResult:
        if len(text) > MAX_CHARACTERS:
            raise too_complex_error(f"the query is longer than {MAX_CHARACTERS} characters")
        deadline = time.monotonic() + options.timeout_seconds
        translation, bound = await self._translate(text, parameters, options, deadline)
        for attempt in range(_MEMORY_ATTEMPTS):
            try:
                return await self._execute(text, translation, bound, options, deadline)
            except QueryError as error:
                # Queries share the memory: one that failed next to others may succeed after they have ended.
                retry = self.running > 0 and attempt + 1 < _MEMORY_ATTEMPTS
                if not (error.partial and "80DA0001" in error.message and retry):
                    raise
            await asyncio.sleep(random.uniform(0.05, 0.2) * 2**attempt)  # noqa: S311  spreads load, keeps no secret
        raise internal_error()

    async def _translate(
        self, text: str, parameters: Mapping[str, Any], options: RequestOptions, deadline: float
    ) -> tuple[Translation, Mapping[str, Any]]:
        """Return the translation of a text and its bound parameters, after running the probes that it needs."""
        probing = replace(options, take_records=None, max_records=MAX_COLUMNS)
        found: list[Rows] = []
        while True:
            translation = await _await_until(deadline, self._translator.translate(text, found))
            bound = bind_parameters(translation.declarations, translation.slots, parameters)
            if not translation.probe:
                return translation, bound
            result = await self._execute(text, translation, bound, probing, deadline)
            found.append(orjson.loads(b"[" + result.rows + b"]"))

    async def _execute(
        self,
        text: str,
        translation: Translation,
        bound: Mapping[str, Any],
        options: RequestOptions,
        deadline: float,
    ) -> KqlResult:
        await _await_until(deadline, self._slots.acquire())
        self.running += 1
        try:
            execution = Execution(self._connection.cursor(), self._statements, text, translation.sql, bound, options)
            work = self._start(execution)
        except BaseException:
            self._release_slot()
            raise
        work.add_done_callback(self._release_slot)
        try:
            await asyncio.wait({work}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            if not work.done():
                self._stop(execution, work)
        if not work.done():
            await asyncio.wait({work}, timeout=_STOP_SECONDS)
            raise timeout_error()
        return work.result()

    def _start(self, execution: Execution) -> "asyncio.Future[KqlResult]":
        try:
            return asyncio.get_running_loop().run_in_executor(self._threads, execution.run)
        except RuntimeError as error:  # no memory for another thread; an existing thread may still start the execution
            execution.stop()
            raise out_of_memory_error() from error

    def _release_slot(self, work: "asyncio.Future[KqlResult] | None" = None) -> None:
        self.running -= 1
        self._slots.release()
        if work is not None and not work.cancelled():
            work.exception()  # retrieved, so that asyncio does not log it if no caller waits for the execution

    def _stop(self, execution: Execution, work: "asyncio.Future[KqlResult]") -> None:
        async def interrupt_until_done() -> None:
            give_up_at = time.monotonic() + _STUCK_SECONDS
            while not work.done():
                if time.monotonic() > give_up_at:
                    abort_process(f"a query cannot be interrupted since {_STUCK_SECONDS} s")
                execution.stop()
                await asyncio.wait({work}, timeout=_STOP_RETRY_SECONDS)

        task = asyncio.get_running_loop().create_task(interrupt_until_done())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)


async def _await_until[T](deadline: float, awaited: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(awaited, max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise timeout_error() from None
