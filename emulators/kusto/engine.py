"""The engine: queries in, answers out, within their time and beside each other."""

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

from emulators.kusto.discovery import MOST_COLUMNS, Rows
from emulators.kusto.errors import QueryError, internal_error, out_of_memory, throttled, timed_out, too_complex
from emulators.kusto.execution import Execution
from emulators.kusto.frames import Answer
from emulators.kusto.options import RequestOptions
from emulators.kusto.parameters import bind
from emulators.kusto.sandbox import abandon
from emulators.kusto.statements import Statements
from emulators.kusto.translate import Translation
from emulators.kusto.translator import Translator

MAX_RUNNING = 72
"""Queries that run at once. More than there are cores: the scheduler shares those out between long and short ones,
where a queue would let a few long ones hold up everybody."""
MAX_WAITING = 128
MAX_CHARACTERS = 128 * 1024
"""A stored query has half of it; the rest is for the statements that are put around it."""
_STOP_SECONDS = 0.7
"""How long a timed-out query may take to end before its caller is answered regardless."""
_STOP_AGAIN_SECONDS = 0.05
_STUCK_SECONDS = 120
"""After how long a query that does not end takes the process with it: it would keep a thread and a core for ever."""
_MEMORY_ATTEMPTS = 4

_LOGGER = logging.getLogger(__name__)


class Engine:
    """Runs queries over one sandboxed database.

    Args:
        connection: the database; each query takes a cursor.
        translator: turns query texts into SQL.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, translator: Translator) -> None:
        self._connection = connection
        self._translator = translator
        self._statements = Statements()
        self._threads = ThreadPoolExecutor(MAX_RUNNING, thread_name_prefix="query")
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._stopping: set[asyncio.Task[None]] = set()
        self.inside = 0
        self.running = 0
        self.outcomes: dict[str, int] = {}

    async def query(self, text: str, parameters: Mapping[str, Any], options: RequestOptions) -> Answer:
        """Run a query.

        A cancelled call stops the query.

        Raises:
            QueryError: it was refused, failed, or took too long.
        """
        if self.inside >= MAX_RUNNING + MAX_WAITING:
            self._count("TooManyRequests")
            raise throttled(MAX_RUNNING)
        self.inside += 1
        try:
            answer = await self._query(text, parameters, options)
        except QueryError as error:
            self._count(error.code)
            raise
        finally:
            self.inside -= 1
        self._count("Completed")
        return answer

    async def close(self) -> None:
        """Wait for what runs to end; to be called after the callers are gone."""
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=_STOP_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def _query(self, text: str, parameters: Mapping[str, Any], options: RequestOptions) -> Answer:
        if len(text) > MAX_CHARACTERS:
            raise too_complex(f"the query is longer than {MAX_CHARACTERS} characters")
        deadline = time.monotonic() + options.timeout_seconds
        translation, bound = await self._translated(text, parameters, options, deadline)
        for attempt in range(_MEMORY_ATTEMPTS):
            try:
                return await self._turn(text, translation, bound, options, deadline)
            except QueryError as error:
                # Memory is shared: what failed beside others may well pass once they are gone.
                crowded = self.running > 0 and attempt + 1 < _MEMORY_ATTEMPTS
                if not (error.partial and "80DA0001" in error.message and crowded):
                    raise
            await asyncio.sleep(random.uniform(0.05, 0.2) * 2**attempt)  # noqa: S311  spreads load, keeps no secret
        raise internal_error()

    async def _translated(
        self, text: str, parameters: Mapping[str, Any], options: RequestOptions, deadline: float
    ) -> tuple[Translation, Mapping[str, Any]]:
        """Return the translation of a text and its bound parameters, after any probes that it needs."""
        probing = replace(options, take_records=None, max_records=MOST_COLUMNS)
        found: list[Rows] = []
        while True:
            translation = await _before(deadline, self._translator.translate(text, found))
            bound = bind(translation.declarations, translation.slots, parameters)
            if not translation.probe:
                return translation, bound
            answer = await self._turn(text, translation, bound, probing, deadline)
            found.append(orjson.loads(b"[" + answer.rows + b"]"))

    async def _turn(
        self,
        text: str,
        translation: Translation,
        bound: Mapping[str, Any],
        options: RequestOptions,
        deadline: float,
    ) -> Answer:
        await _before(deadline, self._slots.acquire())
        self.running += 1
        try:
            execution = Execution(self._connection.cursor(), self._statements, text, translation.sql, bound, options)
            work = self._begin(execution)
        except BaseException:
            self._leave()
            raise
        work.add_done_callback(self._leave)
        try:
            await asyncio.wait({work}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            if not work.done():
                self._stop(execution, work)
        if not work.done():
            await asyncio.wait({work}, timeout=_STOP_SECONDS)
            raise timed_out()
        return work.result()

    def _begin(self, execution: Execution) -> "asyncio.Future[Answer]":
        try:
            return asyncio.get_running_loop().run_in_executor(self._threads, execution.run)
        except RuntimeError as error:  # no memory for one more thread; another thread may still take the run up
            execution.stop()
            raise out_of_memory() from error

    def _leave(self, work: "asyncio.Future[Answer] | None" = None) -> None:
        self.running -= 1
        self._slots.release()
        if work is not None and not work.cancelled():
            work.exception()  # looked at, so that a run which nobody waits for any more does not complain

    def _stop(self, execution: Execution, work: "asyncio.Future[Answer]") -> None:
        async def insist() -> None:
            gives_up = time.monotonic() + _STUCK_SECONDS
            while not work.done():
                if time.monotonic() > gives_up:
                    abandon(f"a query does not react to its interruption for {_STUCK_SECONDS} s")
                execution.stop()
                await asyncio.wait({work}, timeout=_STOP_AGAIN_SECONDS)

        task = asyncio.get_running_loop().create_task(insist())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)


async def _before[T](deadline: float, awaited: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(awaited, max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise timed_out() from None
