"""Execution of warm queries (saved KQL queries) and of ad-hoc KQL queries.

Results are cached in memory, so that many dashboards with the same query cause one engine request.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from shared.catalog import kql_text
from shared.catalog.kql_restrictions import check_query_restrictions
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.parameters import bind_arguments_as_literals
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.ports import EngineQuery, QueryEngine
from shared.warm_queries.results import AD_HOC, QueryResult, to_column_values, to_row_objects
from shared.warm_queries.time_ranges import (
    TimeRange,
    build_time_condition_kql,
    build_time_parameter_literals,
    get_time_parameter_name,
    is_fixed_time_range,
)

MAX_RESULTS: Final = 512
MAX_ROWS: Final = 200_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""Size of the engine's replies whose results are cached; the rows take about four times as much memory."""


@dataclass(frozen=True, slots=True)
class _CachedResult:
    """Cached query result, and the maximum age at which it is used."""

    result: QueryResult
    max_age: timedelta

    def is_usable(self, at: datetime) -> bool:
        """Return whether the result is not too old at time ``at``.

        Also return False if the result is newer than ``at``: the clock was set back, so the result's age is unknown.
        """
        return timedelta(0) <= at - self.result.executed_at <= self.max_age


class ResultCache:
    """Least recently used cache of query results.

    At most ``MAX_RESULTS`` results with ``MAX_ROWS`` rows and ``MAX_BYTES`` bytes together are cached.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, _CachedResult] = OrderedDict()
        self._rows = 0
        self._bytes = 0

    def find_result(self, key: Hashable, at: datetime) -> QueryResult | None:
        """Return the result with this key; None if it is not cached, or not usable at time ``at``."""
        cached = self._results.get(key)
        if cached is None:
            return None
        if not cached.is_usable(at):
            self._remove_result(key)
            return None
        self._results.move_to_end(key)
        return cached.result

    def store_result(self, key: Hashable, result: QueryResult, max_age: timedelta, at: datetime) -> None:
        """Cache a query result; remove results that cannot be used at time ``at``, and evict others above a limit.

        The least recently used results are evicted first. A result that exceeds a limit on its own is not cached.
        """
        self._remove_result(key)
        for expired in [key for key, cached in self._results.items() if not cached.is_usable(at)]:
            self._remove_result(expired)
        if result.row_count > MAX_ROWS or result.size > MAX_BYTES:
            return
        self._results[key] = _CachedResult(result, max_age)
        self._rows += result.row_count
        self._bytes += result.size
        while len(self._results) > MAX_RESULTS or self._rows > MAX_ROWS or self._bytes > MAX_BYTES:
            self._remove_result(next(iter(self._results)))

    def _remove_result(self, key: Hashable) -> None:
        cached = self._results.pop(key, None)
        if cached is not None:
            self._rows -= cached.result.row_count
            self._bytes -= cached.result.size


TABLE = "Telemetry"
TIME_COLUMN = "Timestamp"
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000


class WarmQueries:
    """Service that executes the workspace's warm queries (saved KQL queries) and ad-hoc queries."""

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        engine: QueryEngine,
        timeout_seconds: int,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self._results = ResultCache()
        self._runtime = runtime

    async def execute(
        self,
        lookup_or_path: str,
        time_range: TimeRange | None,
        limit: int,
        arguments: Mapping[str, Any],
        format_field_name: Callable[[str], str] = "p.{}".format,
        *,
        repeated_names: Collection[str] = (),
        use_cache: bool = True,
        allows_column_values: bool = False,
    ) -> QueryResult:
        """Execute the approved query with this lookup (id in URLs) or API path.

        Args:
            lookup_or_path: lookup (id in URLs) of the query, or its API path.
            time_range: range of time whose rows the query reads, filtered before any aggregation; None for all rows.
            limit: maximum number of rows.
            arguments: values of declared parameters by name, as text or as JSON values.
            format_field_name: converts a parameter's name to the field name in error messages, for example ``p.name``
                in a query string.
            repeated_names: names of the arguments that the caller sent several times, which is an error.
            use_cache: False to compute a new result even if the query allows caching.
            allows_column_values: True if the result may have values by column instead of rows.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``QUERY_NOT_APPROVED``; INVALID with the
                invalid arguments; errors of the engine.
        """
        stored = (await self._catalog()).find_query(lookup_or_path)
        if stored is None:
            detail = f"No warm query has the lookup (short name in URLs) or API path {lookup_or_path[:64]!r}."
            raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", detail)
        query = stored.value
        if query.approval is None:
            raise WorkspaceError(
                Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "The query is a draft; another person must approve it first."
            )
        bound = bind_arguments_as_literals(query.parameters, arguments, format_field_name, repeated_names)
        if query.cache_seconds and use_cache:
            return await self._run_query_with_cache(
                query, bound, time_range, limit, allows_column_values=allows_column_values
            )
        if query.cache_seconds:
            # The engine has a cache of its own, which the query's cache time also controls.
            query = query.model_copy(update={"cache_seconds": 0})
        return await self._run_query(
            query, bound, time_range, limit, self._runtime.now(), allows_column_values=allows_column_values
        )

    async def execute_ad_hoc(
        self, kql: str, time_range: TimeRange | None, limit: int, *, allows_column_values: bool = False
    ) -> QueryResult:
        """Execute a KQL text that the caller sent; for the other arguments, see :meth:`execute`.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY``; errors of the engine.
        """
        return await self._run_query(
            _AdHocQuery(kql), {}, time_range, limit, self._runtime.now(), allows_column_values=allows_column_values
        )

    async def _run_query_with_cache(
        self,
        query: WarmQuery,
        literals: dict[str, str],
        time_range: TimeRange | None,
        limit: int,
        *,
        allows_column_values: bool,
    ) -> QueryResult:
        at = self._runtime.now()
        key = _build_cache_key(query, literals, time_range, limit)
        cached = self._results.find_result(key, at)
        if cached is not None and (allows_column_values or cached.values is None):
            return cached  # formats that store columns also accept rows
        if cached is not None:
            return await self._runtime.run_in_thread_if_large(cached.size, cached.convert_to_rows)
        result = await self._run_query(
            query, literals, time_range, limit, at, allows_column_values=allows_column_values
        )
        max_age = timedelta(seconds=query.cache_seconds)
        # The time after the execution: results of calls that started meanwhile are possibly cached already.
        self._results.store_result(key, replace(result, from_cache=True), max_age, self._runtime.now())
        return result

    async def _run_query(
        self,
        query: "WarmQuery | _AdHocQuery",
        literals: dict[str, str],
        time_range: TimeRange | None,
        limit: int,
        at: datetime,
        *,
        allows_column_values: bool,
    ) -> QueryResult:
        request = await self._runtime.run_in_thread_if_large(
            len(query.kql), self._build_engine_query, query, literals, time_range, limit, at
        )
        result = await self._engine.execute(request)
        rows: list[dict[str, Any]] = []
        values: tuple[list[Any], ...] | None = None
        selected = result.rows[:limit]
        if allows_column_values:
            values = await self._runtime.run_in_thread_if_large(result.size, to_column_values, result.columns, selected)
        else:
            rows = await self._runtime.run_in_thread_if_large(result.size, to_row_objects, result.columns, selected)
        return QueryResult(
            query=query.name,
            executed_at=result.computed_at or at,
            columns=result.columns,
            rows=rows,
            truncated=len(result.rows) > limit,
            execution_ms=result.execution_ms,
            approval=query.approval,
            from_cache=(result.computed_at is not None) if query.cache_seconds else None,
            values=values,
            visualization=result.visualization,
            size=result.size,
        )

    def _build_engine_query(
        self,
        query: "WarmQuery | _AdHocQuery",
        literals: dict[str, str],
        time_range: TimeRange | None,
        limit: int,
        at: datetime,
    ) -> EngineQuery:
        check_query_restrictions(query.kql)
        declarations = [f"{parameter.name}:{parameter.type}" for parameter in query.parameters]
        statements = ""
        if time_range is not None:
            kql_text.reject_time_range_bypass(query.kql, get_time_parameter_name(time_range))
            limits = build_time_parameter_literals(time_range, at)
            declarations += [f"{name}:datetime" for name in limits]
            literals = {**literals, **limits}
            statements = f"let {TABLE} = {TABLE} | where {build_time_condition_kql(TIME_COLUMN, time_range)};"
        composed = kql_text.compose_query(query.kql, ", ".join(declarations), statements)
        return EngineQuery(
            text=composed.text,
            parameters=literals,
            max_records=limit + 1,
            timeout_seconds=self._timeout_seconds,
            # The engine finds cached results by text and parameters; a time range that ends now never matches one.
            cache_seconds=_compute_max_cache_seconds(query, at) if is_fixed_time_range(time_range) else 0,
            lines_before=composed.lines_before,
        )


def _build_cache_key(query: WarmQuery, literals: dict[str, str], time_range: TimeRange | None, limit: int) -> bytes:
    parts = (query.model_dump_json(), sorted(literals.items()), time_range, limit)
    # A hash, because the arguments can be as large as the body of a request.
    return hashlib.sha256(repr(parts).encode()).digest()


def _compute_max_cache_seconds(query: "WarmQuery | _AdHocQuery", at: datetime) -> int:
    """Return the maximum age in seconds of a result from the engine's cache.

    For an approved query, the result must be newer than the approval, because the reply states who approved the query.
    """
    if query.approval is None:
        return query.cache_seconds
    return max(0, min(query.cache_seconds, int((at - query.approval.approved_at).total_seconds())))


@dataclass(frozen=True, slots=True)
class _AdHocQuery:
    """KQL text that a caller sent, with the same attributes as a stored query."""

    kql: str
    name: str = AD_HOC
    parameters: tuple[QueryParameter, ...] = ()
    cache_seconds: int = 0
    approval: None = None
