"""Columns of queries, from the engine and without reading telemetry."""

import asyncio
import time
from collections import OrderedDict

from shared.catalog import kql_text
from shared.catalog.kql_restrictions import check_query
from shared.catalog.models import ParameterType, WarmQuery
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.ports import Column, EngineQuery, QueryEngine
from shared.worker_threads import run_in_worker

MAX_CACHED = 1_000
TIMEOUT_SECONDS = 20
WAIT_SECONDS = 4.0
"""Maximum wait of callers that can continue without the columns."""
UNRESPONSIVE_SECONDS = 10.0
"""Period after a timeout in which callers do not wait for the engine."""
UNAVAILABLE = WorkspaceError(
    Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine did not return the columns in time; try again."
)
_NO_ROWS = "let Telemetry = Telemetry | where 1 == 0;"
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


class QueryColumns:
    """Cache of query columns by the query's text and parameters."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._cache: OrderedDict[tuple[object, ...], tuple[Column, ...]] = OrderedDict()
        self._requests: dict[tuple[object, ...], asyncio.Task[tuple[Column, ...] | WorkspaceError]] = {}
        self._unresponsive_until = 0.0

    async def resolve(self, query: WarmQuery) -> tuple[Column, ...]:
        """Return the columns of a query, from the cache or from the engine.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID`` or ``QUERY_NOT_READ_ONLY`` if the engine rejects the query; other
                errors of the engine.
        """
        key = _cache_key(query)
        columns = self._cache.get(key)
        if columns is None:
            columns = await self._request(query)
            self._unresponsive_until = 0.0
            self._cache[key] = columns
            if len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return columns

    async def find(self, query: WarmQuery) -> tuple[Column, ...] | None:
        """Return the columns of a query; None if the engine does not return them in time or rejects the query."""
        result = await self.resolve_or_error(query)
        return None if isinstance(result, WorkspaceError) else result

    async def resolve_or_error(self, query: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        """Return the columns of a query, or the error of :meth:`resolve` or of an unresponsive engine.

        The request to the engine continues after the timeout. Until it ends, other callers do not wait.
        """
        key = _cache_key(query)
        if key in self._cache:
            return self._cache[key]
        if key not in self._requests:
            self._requests[key] = asyncio.create_task(self._resolve_safely(query))
            self._requests[key].add_done_callback(lambda _: self._requests.pop(key, None))
        wait_seconds = 0.0 if time.monotonic() < self._unresponsive_until else WAIT_SECONDS
        done, _ = await asyncio.wait({self._requests[key]}, timeout=wait_seconds)
        if done:
            return done.pop().result()
        if wait_seconds:
            self._unresponsive_until = time.monotonic() + UNRESPONSIVE_SECONDS
        return UNAVAILABLE

    async def _resolve_safely(self, query: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        try:
            return await self.resolve(query)
        except WorkspaceError as error:
            return error

    async def _request(self, query: WarmQuery) -> tuple[Column, ...]:
        request = await run_in_worker(len(query.kql), self._build_request, query)
        return (await self._engine.execute(request)).columns

    @staticmethod
    def _build_request(query: WarmQuery) -> EngineQuery:
        check_query(query.kql)
        declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
        composed = kql_text.compose_query(
            query.kql, declared, _NO_ROWS if kql_text.accepts_time_filter(query.kql) else ""
        )
        values = {parameter.name: _SAMPLE_VALUES[parameter.type] for parameter in query.parameters}
        return EngineQuery(composed.text, values, 1, TIMEOUT_SECONDS, lines_before=composed.lines_before)


def _cache_key(query: WarmQuery) -> tuple[object, ...]:
    return query.kql, tuple((parameter.name, parameter.type) for parameter in query.parameters)
