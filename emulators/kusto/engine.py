"""Query engine: translates KQL queries to SQL and runs several at the same time in threads, each with a timeout."""

import asyncio
import logging
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import duckdb
import orjson

from emulators.kusto.caches import StatementCache
from emulators.kusto.discovery import MAX_COLUMNS, Rows, check_column_count
from emulators.kusto.errors import (
    QueryError,
    execution_error,
    internal_error,
    out_of_memory_error,
    result_too_large_error,
    throttling_error,
    timeout_error,
    too_complex_error,
)
from emulators.kusto.frames import ColumnNameAndType, KqlResult, columns_from_cursor_description, encode_rows
from emulators.kusto.library_errors import error_from_duckdb
from emulators.kusto.options import RequestOptions
from emulators.kusto.parameters import build_placeholder_values
from emulators.kusto.positions import find_and_add_position, has_call_of_any_function
from emulators.kusto.sandbox import abort_process, has_leaked_memory
from emulators.kusto.statements import FIRST_RESULT, ResultPlace
from emulators.kusto.stop_events import bind_stop_event
from emulators.kusto.translate import Translation
from emulators.kusto.translator import Translator

_FIRST_FETCH_ROWS = 16
_MAX_FETCH_ROWS = 2000
_CHUNK_BYTES = 1024 * 1024
MAX_RUNNING = 72
"""Maximum number of concurrent queries.

This number exceeds the number of cores, because the scheduler then divides the cores between long and short queries. A
lower maximum would let a few long queries block all others.
"""
MAX_WAITING = 128
MAX_CHARACTERS = 128 * 1024
"""Maximum length of a KQL text: up to half for a query of the user, the rest for statements that the service adds."""
_STOP_SECONDS = 0.7
"""Time for a timed-out query to end before its caller receives the timeout error anyway."""
_STOP_RETRY_SECONDS = 0.05
_STUCK_SECONDS = 120
"""Time after which the process ends if a query cannot be interrupted and so occupies a thread and a core."""
_MEMORY_ATTEMPTS = 4
_SECOND_LOOK_SECONDS = 1.0
_MAX_CACHED_TYPE_DISCOVERIES = 256
"""Maximum number of discovery queries for types whose rows are cached."""

_ENDS_OF_PERIODS = frozenset({"endofday", "endofweek", "endofmonth", "endofyear"})

_LOGGER = logging.getLogger(__name__)


class EncodedResult(NamedTuple):
    """Columns of a query result, and its rows as JSON arrays that are separated by commas."""

    columns: tuple[ColumnNameAndType, ...]
    rows: bytes


class _BoundTranslation(NamedTuple):
    """Translated query, and the values of the placeholders in its SQL, by the names of the placeholders."""

    translation: Translation
    placeholder_values: Mapping[str, Any]


@dataclass(slots=True)
class Execution:
    """Execution of one query after its translation to SQL.

    Attributes:
        cursor: database cursor that only this execution uses; the cursor is closed at the end.
        statements: cache of parsed SQL statements.
        text: KQL text of the query, used to find the positions of errors.
        sql: SQL of the query, one SELECT.
        bound: values of the placeholders in the SQL, by the names of the placeholders.
        options: options of the request, such as the maximum size of the result.
        stopped: event that is set when the result is no longer needed.
    """

    cursor: duckdb.DuckDBPyConnection
    statements: StatementCache
    text: str
    sql: str
    bound: Mapping[str, Any]
    options: RequestOptions
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> EncodedResult:
        """Execute the query and return the columns and the rows as JSON.

        Raises:
            QueryError: the query failed or was stopped.
        """
        try:
            with bind_stop_event(self.cursor, self.sql, self.stopped):
                return self._fetch_columns_and_encoded_rows()
        except duckdb.Error as error:
            raise find_and_add_position(error_from_duckdb(error), self.text) from error
        except MemoryError:
            raise out_of_memory_error() from None
        except (OverflowError, ValueError) as error:
            raise execution_error(str(error)) from error
        finally:
            self.cursor.close()

    def stop(self) -> None:
        """Interrupt the execution; call this again until the execution ends, because DuckDB can ignore an interrupt."""
        self.stopped.set()
        with suppress(duckdb.ConnectionException):  # the execution has just ended and closed its cursor
            self.cursor.interrupt()

    def _fetch_columns_and_encoded_rows(self) -> EncodedResult:
        limited = f"SELECT * FROM ({self.sql}) LIMIT {self._compute_row_limit()}"  # noqa: S608  the translator's own SQL
        statement = self.statements.parse_select(self.cursor, limited)
        if self.stopped.is_set():
            raise timeout_error()
        if _LOGGER.isEnabledFor(logging.DEBUG):
            self._log_plan(limited)
        self.cursor.execute(statement, dict(self.bound) or None)
        columns = columns_from_cursor_description(self.cursor.description or ())
        return EncodedResult(columns, b",".join(self._iterate_encoded_chunks(columns)))

    def _log_plan(self, sql: str) -> None:
        (_, plan), *_ = self.cursor.execute(f"EXPLAIN {sql}", dict(self.bound) or None).fetchall()
        _LOGGER.debug("the plan of a query:\n%s", plan)

    def _compute_row_limit(self) -> int:
        take = self.options.take_records
        one_more = self.options.max_records + 1
        return one_more if take is None else min(take, one_more)

    def _iterate_encoded_chunks(self, columns: tuple[ColumnNameAndType, ...]) -> Iterator[bytes]:
        records = size = 0
        fetch_rows = _FIRST_FETCH_ROWS
        # DuckDB stores microseconds, and Kusto ticks of 100 ns; the end of a day is its last tick.
        ends = "endof" in self.text and has_call_of_any_function(self.text, _ENDS_OF_PERIODS)
        while rows := self.cursor.fetchmany(fetch_rows):
            if self.stopped.is_set():
                raise timeout_error()
            records += len(rows)
            if records > self.options.max_records:
                raise result_too_large_error(
                    f"The results of this query exceed the set limit of {self.options.max_records} records"
                )
            chunk = encode_rows(columns, rows, extend_ends_of_periods=ends)
            size += len(chunk)
            if size > self.options.max_bytes:
                raise result_too_large_error(
                    f"The results of this query exceed the set limit of {self.options.max_bytes} bytes"
                )
            yield chunk
            # A row can have megabytes. The size of the next chunk follows from the average row so far, so that the size
            # limit is checked before too much memory is used.
            fetch_rows = min(_MAX_FETCH_ROWS, max(1, _CHUNK_BYTES * records // max(1, size)))


class Engine:
    """Query engine that runs several KQL queries at the same time on one sandboxed DuckDB database.

    Args:
        connection: connection to the database; each query opens its own cursor.
        translator: translates KQL queries to SQL.
        memory_bytes: memory limit of DuckDB's buffers. If DuckDB has leaked more than half of it, the engine ends the
            process; None to never do this.
        is_ingesting: returns whether rows are being inserted, which takes memory, too.
        monotonic: clock, in seconds, that measures the execution times of queries.

    Attributes:
        pending: number of queries that wait or run.
        running: number of SQL statements that run now.
        outcomes: number of ended queries by outcome: ``Completed`` or the code of the error.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        translator: Translator,
        memory_bytes: int | None = None,
        is_ingesting: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._memory_bytes = memory_bytes
        self._is_ingesting = is_ingesting
        self._monotonic = monotonic
        self._translator = translator
        self._statements = StatementCache()
        self._type_discoveries: OrderedDict[str, Rows] = OrderedDict()
        self._threads = ThreadPoolExecutor(MAX_RUNNING, thread_name_prefix="query")
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._stopping: set[asyncio.Task[None]] = set()
        self.pending = 0
        self.running = 0
        self.outcomes: dict[str, int] = {}

    async def run_query(self, kql_text: str, parameters: Mapping[str, Any], options: RequestOptions) -> KqlResult:
        """Run a KQL query and return the result; if the call is cancelled, the query is stopped.

        The execution time of a result includes its translation, its discovery queries and waiting, as in Data Explorer,
        whose ExecutionTime is the whole time of a query in the engine.

        Raises:
            QueryError: the query was rejected, failed or timed out.
        """
        if self.pending >= MAX_RUNNING + MAX_WAITING:
            self._count_outcome("TooManyRequests")
            raise throttling_error(MAX_RUNNING)
        self.pending += 1
        try:
            result = await self._run_query(kql_text, parameters, options)
        except QueryError as error:
            self._count_outcome(error.code)
            raise
        finally:
            self.pending -= 1
        self._count_outcome("Completed")
        return result

    async def close(self) -> None:
        """Wait briefly until stopped queries have ended; call this after all callers have disconnected."""
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=_STOP_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _count_outcome(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def _run_query(self, kql_text: str, parameters: Mapping[str, Any], options: RequestOptions) -> KqlResult:
        if len(kql_text) > MAX_CHARACTERS:
            raise too_complex_error(f"the query is longer than {MAX_CHARACTERS} characters")
        deadline = time.monotonic() + options.timeout_seconds
        results: list[KqlResult] = []
        place: ResultPlace | None = FIRST_RESULT
        while place is not None:
            began = self._monotonic()
            translation, bound = await self._translate_after_discovery_queries(
                kql_text, parameters, options, deadline, place
            )
            columns, rows = await self._execute_with_retries(kql_text, translation, bound, options, deadline)
            results.append(
                KqlResult(
                    columns,
                    rows,
                    seconds=self._monotonic() - began,
                    visualization=translation.visualization,
                    name=translation.name,
                    approximations=translation.approximations,
                )
            )
            if sum(len(each.rows) for each in results) > options.max_bytes:
                raise result_too_large_error(
                    f"The results of this query exceed the set limit of {options.max_bytes} bytes"
                )
            place = _find_next_result_place(place, translation)
        first, *further = results
        return replace(first, further=tuple(further))

    async def _execute_with_retries(
        self,
        kql_text: str,
        translation: Translation,
        placeholder_values: Mapping[str, Any],
        options: RequestOptions,
        monotonic_deadline: float,
    ) -> EncodedResult:
        """Execute a translated query; repeat it after a short pause if other queries left it too little memory."""
        for attempt in range(_MEMORY_ATTEMPTS):
            try:
                return await self._execute_in_thread(
                    kql_text, translation, placeholder_values, options, monotonic_deadline
                )
            except QueryError as error:
                # All queries share the memory. A query that ran out of memory can succeed after the others have ended.
                retry = self.running > 0 and attempt + 1 < _MEMORY_ATTEMPTS
                lacked_memory = error.is_partial_failure and "80DA0001" in error.message
                if lacked_memory:
                    await self._abort_process_if_memory_leaked()
                if not (lacked_memory and retry):
                    raise
            await asyncio.sleep(random.uniform(0.05, 0.2) * 2**attempt)  # noqa: S311  spreads load, no secret
        raise internal_error()

    def has_leaked_memory(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Return whether memory has leaked: ended queries still occupy more than half of the limit.

        Always False while a query runs or rows are inserted.

        Args:
            connection: database connection that no other thread uses now.
        """
        if self.running or self._is_ingesting() or self._memory_bytes is None:
            return False
        with suppress(duckdb.Error, MemoryError):
            return has_leaked_memory(connection, self._memory_bytes)
        return False

    async def _abort_process_if_memory_leaked(self) -> None:
        with suppress(duckdb.Error, MemoryError), self._connection.cursor() as cursor:
            if self.has_leaked_memory(cursor):
                # An insertion can have ended just now; its memory is free a moment later.
                await asyncio.sleep(_SECOND_LOOK_SECONDS)
                if self.has_leaked_memory(cursor):
                    abort_process("queries that have ended still occupy most of the memory")

    async def _translate_after_discovery_queries(
        self,
        kql_text: str,
        parameters: Mapping[str, Any],
        options: RequestOptions,
        monotonic_deadline: float,
        result_place: ResultPlace,
    ) -> _BoundTranslation:
        """Translate one query of a KQL text to SQL; first run its discovery queries, which find its output columns.

        ``result_place`` is the position of the query's result among the results of the KQL text. The module
        ``emulators.kusto.discovery`` describes discovery queries.
        """
        discovery_options = replace(options, take_records=MAX_COLUMNS + 1, max_records=MAX_COLUMNS + 1)
        found: list[Rows] = []
        while True:
            translation = await _wait_until_deadline(
                monotonic_deadline, self._translator.translate(kql_text, found, result_place)
            )
            bound = build_placeholder_values(translation.declarations, translation.slots, parameters)
            if not translation.is_discovery_query:
                return _BoundTranslation(translation, bound)
            known = self._type_discoveries.get(translation.sql) if translation.reusable else None
            if known is None:
                result = await self._execute_with_retries(
                    kql_text, translation, bound, discovery_options, monotonic_deadline
                )
                known = orjson.loads(b"[" + result.rows + b"]")
                check_column_count(known)
                if translation.reusable:
                    self._cache_type_discovery_rows(translation.sql, known)
            found.append(known)

    def _cache_type_discovery_rows(self, sql: str, rows: Rows) -> None:
        self._type_discoveries[sql] = rows
        if len(self._type_discoveries) > _MAX_CACHED_TYPE_DISCOVERIES:
            self._type_discoveries.popitem(last=False)

    async def _execute_in_thread(
        self,
        kql_text: str,
        translation: Translation,
        placeholder_values: Mapping[str, Any],
        options: RequestOptions,
        monotonic_deadline: float,
    ) -> EncodedResult:
        await _wait_until_deadline(monotonic_deadline, self._slots.acquire())
        self.running += 1
        try:
            execution = Execution(
                self._connection.cursor(), self._statements, kql_text, translation.sql, placeholder_values, options
            )
            work = self._start_execution(execution)
        except BaseException:
            self._release_execution_slot()
            raise
        work.add_done_callback(self._release_execution_slot)
        try:
            await asyncio.wait({work}, timeout=max(0.0, monotonic_deadline - time.monotonic()))
        finally:
            if not work.done():
                self._interrupt_execution(execution, work)
        if not work.done():
            await asyncio.wait({work}, timeout=_STOP_SECONDS)
            raise timeout_error()
        return work.result()

    def _start_execution(self, execution: Execution) -> "asyncio.Future[EncodedResult]":
        try:
            return asyncio.get_running_loop().run_in_executor(self._threads, execution.run)
        except RuntimeError as error:  # no memory for another thread; an existing thread can still start the execution
            execution.stop()
            raise out_of_memory_error() from error

    def _release_execution_slot(self, future: "asyncio.Future[EncodedResult] | None" = None) -> None:
        self.running -= 1
        self._slots.release()
        if future is not None and not future.cancelled():
            future.exception()  # retrieved, so that asyncio does not log it if no caller waits for the execution

    def _interrupt_execution(self, execution: Execution, future: "asyncio.Future[EncodedResult]") -> None:
        async def interrupt_until_done() -> None:
            give_up_at = time.monotonic() + _STUCK_SECONDS
            while not future.done():
                if time.monotonic() > give_up_at:
                    abort_process(f"a query could not be interrupted for {_STUCK_SECONDS} s")
                execution.stop()
                await asyncio.wait({future}, timeout=_STOP_RETRY_SECONDS)

        task = asyncio.get_running_loop().create_task(interrupt_until_done())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)


def _find_next_result_place(current_place: ResultPlace, translation: Translation) -> ResultPlace | None:
    """Return the position (statement and result number) of a query's next result; None after the last result."""
    if current_place.part + 1 < translation.parts:
        return ResultPlace(current_place.statement, current_place.part + 1)
    following = current_place.statement + 1
    return ResultPlace(following) if following < translation.statements else None


async def _wait_until_deadline[T](monotonic_deadline: float, awaited: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(awaited, max(0.0, monotonic_deadline - time.monotonic()))
    except TimeoutError:
        raise timeout_error() from None
