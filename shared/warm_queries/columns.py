"""Result columns of warm queries (saved KQL queries), which the engine determines without reading telemetry."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.catalog import kql_text
from shared.catalog.kql_restrictions import check_query_restrictions
from shared.catalog.models import ParameterType, WarmQuery
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.disconnects import start_task_independent_of_client
from shared.warm_queries.ports import Column, EngineQuery, EngineResult, QueryEngine

MIN_CACHED = 1_000
LIST_REQUESTS = 4
"""Maximum number of concurrent engine requests for the columns of a list of queries."""
MAX_AWAITED = 100
"""Maximum number of uncached queries in a list for whose columns a caller waits."""
REJECTED_SECONDS = 60.0
"""Seconds for which the engine's rejection of a query is cached for lists."""
TIMEOUT_SECONDS = 20
WAIT_SECONDS = 4.0
"""Maximum seconds that callers wait if they can continue without the columns."""
UNRESPONSIVE_SECONDS = 10.0
"""Seconds after a timeout for which callers do not wait for the engine."""
UNAVAILABLE = WorkspaceError(
    Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine did not return the columns in time; try again."
)
_NO_ROWS = "let Telemetry = Telemetry | where 1 == 0;"
_UNRESOLVED = "Failed to resolve"
"""Words of both engines in the error about an unknown column."""
# A valid value of each type; the query's result for it is not used.
_SAMPLE_VALUES = {
    ParameterType.BOOL: "bool(false)",
    ParameterType.INT: "int(1)",
    ParameterType.LONG: "long(1)",
    ParameterType.REAL: "real(1.0)",
    ParameterType.DECIMAL: "decimal(1.0)",
    ParameterType.STRING: "",
    ParameterType.DATETIME: "datetime(2026-01-01T00:00:00.000000Z)",
    ParameterType.TIMESPAN: "time(0.01:00:00.000000)",
    ParameterType.GUID: "guid(00000000-0000-0000-0000-000000000000)",
    ParameterType.DYNAMIC: "dynamic({})",
}


type ColumnsOrError = tuple[Column, ...] | WorkspaceError
"""Columns of a query, or the reason why they are unknown."""

type _Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    """Cached columns or error of a query.

    Attributes:
        result: result columns of the query, or the engine's error.
        expires_at: monotonic time in seconds after which the entry is not used.
        approximations: each used function whose results can differ from Data Explorer's, with a note.
    """

    result: ColumnsOrError
    expires_at: float
    approximations: tuple[str, ...] = ()


class QueryColumns:
    """Cache of the result columns of KQL queries, by text and parameters of the query.

    The cache has space for ``MIN_CACHED`` queries, or for twice as many as were ever requested together, if this is
    more.
    """

    def __init__(self, engine: QueryEngine, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._engine = engine
        self._runtime = runtime
        self._cache: OrderedDict[_Key, _CacheEntry] = OrderedDict()
        self._capacity = MIN_CACHED
        self._requests: dict[_Key, asyncio.Task[ColumnsOrError]] = {}
        self._queued: dict[_Key, asyncio.Task[ColumnsOrError]] = {}
        self._unresponsive_until = 0.0
        self._succeeded_at = 0.0
        self._failed_at = 0.0
        self._turns = asyncio.Semaphore(LIST_REQUESTS)

    async def resolve_columns(self, query: WarmQuery) -> tuple[Column, ...]:
        """Return the result columns of a KQL query, from the cache or from the query engine; wait as long as it needs.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID`` or ``QUERY_NOT_READ_ONLY`` if the engine rejects the query; other
                errors of the engine.
        """
        key = _build_cache_key(query)
        cached = self._find_cached_result(key)
        if cached is not None and not isinstance(cached, WorkspaceError):
            return cached
        reply = await self._request_columns(query)
        self._unresponsive_until = 0.0
        self._succeeded_at = self._runtime.monotonic()
        self._store_result(key, _CacheEntry(reply.columns, math.inf, reply.approximations))
        return reply.columns

    def find_approximated_functions(self, query: WarmQuery) -> tuple[str, ...]:
        """Return the KQL functions in a query whose results a local engine only approximates.

        The result is empty if the query's columns are not cached.
        """
        entry = self._cache.get(_build_cache_key(query))
        return () if entry is None else entry.approximations

    async def find_columns(self, query: WarmQuery) -> tuple[Column, ...] | None:
        """Return the result columns of a KQL query; None if the engine rejects it, or does not reply in time."""
        result = await self.resolve_columns_or_error(query)
        return None if isinstance(result, WorkspaceError) else result

    async def resolve_columns_or_error(self, query: WarmQuery) -> ColumnsOrError:
        """Return the result columns of a KQL query, or the error of the query engine; wait only a few seconds.

        After the timeout, the request to the engine continues. For ten seconds, or until the engine responds, callers
        get the timeout error without waiting.
        """
        [result] = await self.resolve_all_columns_or_errors([query])
        return result

    async def find_columns_of_queries(self, queries: Sequence[WarmQuery]) -> list[tuple[Column, ...] | None]:
        """Return the result columns of each query; None for a query that the engine rejects or answers too late."""
        results = await self.resolve_all_columns_or_errors(queries)
        return [None if isinstance(result, WorkspaceError) else result for result in results]

    async def resolve_all_columns_or_errors(self, queries: Sequence[WarmQuery]) -> list[ColumnsOrError]:
        """Return for each query its result columns or an error; wait at most ``WAIT_SECONDS`` for the engine.

        Queries that the engine has not answered by then get the error ``UNAVAILABLE``; their requests continue in the
        background. The method does not wait if more than ``MAX_AWAITED`` queries are not cached, or if the engine did
        not respond to recent requests.
        """
        self.enlarge_cache(len(queries))
        keys = [_build_cache_key(query) for query in queries]
        results = [self._find_cached_result(key) for key in keys]
        missing = {key: query for key, query, result in zip(keys, queries, results, strict=True) if result is None}
        if missing:
            loaded = await self._request_missing_columns(missing)
            results = [loaded[key] if result is None else result for key, result in zip(keys, results, strict=True)]
        return [UNAVAILABLE if result is None else result for result in results]

    async def find_query_error(self, query: WarmQuery) -> WorkspaceError | None:
        """Return the engine's error for a query, or None if the query is valid; wait as long as the engine needs."""
        key = _build_cache_key(query)
        result = self._find_cached_result(key)
        if result is None:
            result = await asyncio.shield(self._get_or_start_column_request(key, query))
        return result if isinstance(result, WorkspaceError) else None

    def enlarge_cache(self, query_count: int) -> None:
        """Enlarge the cache to twice ``query_count`` queries, so that it also has space for changed queries."""
        self._capacity = max(self._capacity, 2 * query_count)

    def _find_cached_result(self, key: _Key) -> ColumnsOrError | None:
        entry = self._cache.get(key)
        if entry is None or entry.expires_at < self._runtime.monotonic():
            return None
        self._cache.move_to_end(key)
        return entry.result

    def _store_result(self, key: _Key, entry: _CacheEntry) -> None:
        self._cache[key] = entry
        self._cache.move_to_end(key)
        while len(self._cache) > self._capacity:
            self._cache.popitem(last=False)

    async def _request_missing_columns(self, missing: Mapping[_Key, WarmQuery]) -> Mapping[_Key, ColumnsOrError]:
        """Request the columns of uncached queries; the result of a query is an error if the engine is too slow."""
        start = (
            self._get_or_start_column_request if len(missing) <= LIST_REQUESTS else self._get_or_queue_column_request
        )
        requests = {key: start(key, query) for key, query in missing.items()}
        started_at = self._runtime.monotonic()
        is_waiting = len(missing) <= MAX_AWAITED and started_at >= self._unresponsive_until
        done, pending = await asyncio.wait(requests.values(), timeout=WAIT_SECONDS if is_waiting else 0.0)
        if pending and is_waiting and self._succeeded_at < started_at:
            self._unresponsive_until = self._runtime.monotonic() + UNRESPONSIVE_SECONDS
        return {key: request.result() if request in done else UNAVAILABLE for key, request in requests.items()}

    def _get_or_start_column_request(self, key: _Key, query: WarmQuery) -> asyncio.Task[ColumnsOrError]:
        """Return the running task that requests a query's columns from the engine; start one if none is running."""
        return self._get_or_create_task(
            self._requests, key, lambda: self._resolve_columns_and_cache_rejection(key, query)
        )

    def _get_or_queue_column_request(self, key: _Key, query: WarmQuery) -> asyncio.Task[ColumnsOrError]:
        """Return the queued task that will request a query's columns from the engine; create it if there is none.

        The task waits until fewer than ``LIST_REQUESTS`` queued requests are running.
        """
        return self._get_or_create_task(self._queued, key, lambda: self._resolve_columns_when_slot_is_free(key, query))

    @staticmethod
    def _get_or_create_task(
        tasks: dict[_Key, asyncio.Task[ColumnsOrError]],
        key: _Key,
        create: Callable[[], Coroutine[Any, Any, ColumnsOrError]],
    ) -> asyncio.Task[ColumnsOrError]:
        """Return the running task with this key; if there is none, start one with the coroutine from ``create``."""
        if key not in tasks:
            tasks[key] = start_task_independent_of_client(create())
            tasks[key].add_done_callback(lambda _: tasks.pop(key, None))
        return tasks[key]

    async def _resolve_columns_when_slot_is_free(self, key: _Key, query: WarmQuery) -> ColumnsOrError:
        queued_at = self._runtime.monotonic()
        async with self._turns:
            if self._failed_at > queued_at:
                # The engine failed while this request was in the queue; the request would fail, too.
                return UNAVAILABLE
            result = self._find_cached_result(key)
            return await self._get_or_start_column_request(key, query) if result is None else result

    async def _resolve_columns_and_cache_rejection(self, key: _Key, query: WarmQuery) -> ColumnsOrError:
        """Return the columns of a query or the engine's error; cache the rejection of a query for a minute."""
        try:
            return await self.resolve_columns(query)
        except WorkspaceError as error:
            if error.kind is Kind.INVALID:
                self._store_result(key, _CacheEntry(error, self._runtime.monotonic() + REJECTED_SECONDS))
            else:
                self._failed_at = self._runtime.monotonic()
            return error

    async def _request_columns(self, query: WarmQuery) -> EngineResult:
        request = await self._runtime.run_in_thread_if_large(len(query.kql), self._build_columns_request, query)
        try:
            return await self._engine.execute(request)
        except WorkspaceError as error:
            hint = kql_text.build_output_schema_hint(query.kql) if _is_about_unknown_column(error) else ""
            if not hint:
                raise
            raise _append_hint_to_error(error, hint) from error

    @staticmethod
    def _build_columns_request(query: WarmQuery) -> EngineQuery:
        check_query_restrictions(query.kql)
        declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
        composed = kql_text.compose_query(
            query.kql, declared, _NO_ROWS if kql_text.can_restrict_telemetry_rows(query.kql) else ""
        )
        values = {parameter.name: _SAMPLE_VALUES[parameter.type] for parameter in query.parameters}
        return EngineQuery(composed.text, values, 1, TIMEOUT_SECONDS, lines_before=composed.lines_before)


def _is_about_unknown_column(error: WorkspaceError) -> bool:
    return error.kind is Kind.INVALID and _UNRESOLVED in error.detail


def _append_hint_to_error(error: WorkspaceError, hint: str) -> WorkspaceError:
    message = error.detail.removeprefix("query: ") + hint
    extended = build_invalid_field_error("query", message, code=error.code)
    extended.members.update({name: value for name, value in error.members.items() if name != "errors"})
    return extended


def _build_cache_key(query: WarmQuery) -> _Key:
    return query.kql, tuple((parameter.name, parameter.type) for parameter in query.parameters)
