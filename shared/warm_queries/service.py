"""Execution of warm queries and ad-hoc queries.

Results are cached in memory, so that many dashboards with the same query cause one engine request.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shared.catalog import kql_text
from shared.catalog.kql_restrictions import check_query
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.parameters import to_literal
from shared.catalog.snapshot import Catalog
from shared.errors import FieldError, Kind, WorkspaceError, invalid_fields
from shared.timestamps import now, rfc3339
from shared.validation.names import find_nearest_name
from shared.warm_queries.ports import EngineQuery, QueryEngine
from shared.warm_queries.results import AD_HOC, QueryResult, to_row_objects
from shared.worker_threads import run_in_worker

MAX_RESULTS = 512
MAX_ROWS = 200_000
TABLE = "Telemetry"
TIME_COLUMN = "Timestamp"
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
_CELL_BYTES = 16
"""Assumed size of a result cell, to decide whether to convert the rows in a worker thread."""
# The underscore separates these parameters from declared ones, which begin with a letter.
_FROM, _TO = "_oi_from", "_oi_to"
_WINDOW = f"let {TABLE} = {TABLE} | where {TIME_COLUMN} between ({_FROM} .. {_TO});"


class ResultCache:
    """Least recently used cache of query results.

    The number of results and of rows is limited, and each result expires after its query's cache time.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, QueryResult] = OrderedDict()
        self._rows = 0

    def find(self, key: Hashable, max_age: timedelta, at: datetime) -> QueryResult | None:
        """Return the result of a key if it is not older than allowed."""
        result = self._results.get(key)
        if result is None:
            return None
        if at - result.executed_at > max_age:
            self._drop(key)
            return None
        self._results.move_to_end(key)
        return result

    def store(self, key: Hashable, result: QueryResult) -> None:
        """Store a result, and evict the least recently used results over the limits."""
        self._drop(key)
        if len(result.rows) > MAX_ROWS:
            return
        self._results[key] = result
        self._rows += len(result.rows)
        while len(self._results) > MAX_RESULTS or self._rows > MAX_ROWS:
            self._drop(next(iter(self._results)))

    def _drop(self, key: Hashable) -> None:
        result = self._results.pop(key, None)
        if result is not None:
            self._rows -= len(result.rows)


class WarmQueries:
    """Service that executes the workspace's queries."""

    def __init__(self, catalog: Callable[[], Awaitable[Catalog]], engine: QueryEngine, timeout_seconds: int) -> None:
        self._catalog = catalog
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self._results = ResultCache()

    async def execute(
        self,
        lookup: str,
        time_range: timedelta | None,
        limit: int,
        arguments: Mapping[str, Any],
        label: Callable[[str], str] = "p.{}".format,
    ) -> QueryResult:
        """Execute the approved query with this lookup or API path.

        Args:
            lookup: lookup, else API path.
            time_range: only rows within this duration before now, filtered before any aggregation.
            limit: maximum number of rows.
            arguments: values of declared parameters by name, as text or as JSON values.
            label: returns the caller's name of a parameter, for error messages.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``QUERY_NOT_APPROVED``; INVALID naming
                parameters; errors of the engine.
        """
        stored = (await self._catalog()).find_query(lookup)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", "No warm query has this lookup.")
        query = stored.value
        if query.approval is None:
            raise WorkspaceError(
                Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "The query is a draft; another person must approve it first."
            )
        bound = bind_parameters(query.parameters, arguments, label)
        if query.cache_seconds:
            return await self._run_cached(query, bound, time_range, limit)
        return await self._run(query, bound, time_range, limit, now())

    async def execute_ad_hoc(self, kql: str, time_range: timedelta | None, limit: int) -> QueryResult:
        """Execute the caller's own query.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY``; errors of the engine.
        """
        return await self._run(_AdHocQuery(kql), {}, time_range, limit, now())

    async def _run_cached(
        self, query: WarmQuery, bound: dict[str, str], time_range: timedelta | None, limit: int
    ) -> QueryResult:
        at = now()
        key = (query.model_dump_json(), tuple(sorted(bound.items())), time_range, limit)
        max_age = timedelta(seconds=query.cache_seconds)
        cached = self._results.find(key, max_age, at)
        if cached is not None:
            return cached
        result = await self._run(query, bound, time_range, limit, at)
        self._results.store(key, replace(result, from_cache=True))
        return result

    async def _run(
        self,
        query: "WarmQuery | _AdHocQuery",
        bound: dict[str, str],
        time_range: timedelta | None,
        limit: int,
        at: datetime,
    ) -> QueryResult:
        request = await run_in_worker(len(query.kql), self._build_request, query, bound, time_range, limit, at)
        result = await self._engine.execute(request)
        cells = min(len(result.rows), limit) * len(result.columns)
        rows = await run_in_worker(cells * _CELL_BYTES, to_row_objects, result.columns, result.rows[:limit])
        return QueryResult(
            query=query.name,
            executed_at=result.computed_at or at,
            columns=result.columns,
            rows=rows,
            truncated=len(result.rows) > limit,
            execution_ms=result.execution_ms,
            approval=query.approval,
            from_cache=(result.computed_at is not None) if query.cache_seconds else None,
        )

    def _build_request(
        self,
        query: "WarmQuery | _AdHocQuery",
        bound: dict[str, str],
        time_range: timedelta | None,
        limit: int,
        at: datetime,
    ) -> EngineQuery:
        check_query(query.kql)
        declarations = [f"{parameter.name}:{parameter.type}" for parameter in query.parameters]
        statements = ""
        if time_range is not None:
            kql_text.check_time_range(query.kql)
            declarations += [f"{_FROM}:datetime", f"{_TO}:datetime"]
            bound = {**bound, **_time_range_parameters(at, time_range)}
            statements = _WINDOW
        composed = kql_text.compose_query(query.kql, ", ".join(declarations), statements)
        return EngineQuery(
            text=composed.text,
            parameters=bound,
            max_records=limit + 1,
            timeout_seconds=self._timeout_seconds,
            # The engine finds cached results by text and parameters; a time range that ends now never matches one.
            cache_seconds=0 if time_range is not None else query.cache_seconds,
            lines_before=composed.lines_before,
        )


@dataclass(frozen=True, slots=True)
class _AdHocQuery:
    """Ad-hoc query with the attributes of a stored one."""

    kql: str
    name: str = AD_HOC
    parameters: tuple[QueryParameter, ...] = ()
    cache_seconds: int = 0
    approval: None = None


def bind_parameters(
    parameters: Sequence[QueryParameter], arguments: Mapping[str, Any], label: Callable[[str], str] = "p.{}".format
) -> dict[str, str]:
    """Return a literal for every declared parameter, from the arguments or its default; null selects the default.

    Raises:
        WorkspaceError: INVALID with each unknown, missing or invalid argument under the caller's name.
    """
    declared = {parameter.name: parameter for parameter in parameters}
    errors = [
        FieldError(label(name), _unknown_parameter(name, declared, label)) for name in arguments if name not in declared
    ]
    bound: dict[str, str] = {}
    for name, parameter in declared.items():
        value = arguments.get(name)
        if value is None and parameter.required:
            errors.append(FieldError(label(name), f"is required, of type {parameter.type}"))
            continue
        try:
            bound[name] = to_literal(parameter.type, parameter.default if value is None else value)
        except ValueError as error:
            errors.append(FieldError(label(name), f"{error} ({parameter.type})"))
    if errors:
        raise invalid_fields(errors)
    return bound


def _time_range_parameters(end: datetime, time_range: timedelta) -> dict[str, str]:
    return {_FROM: f"datetime({rfc3339(end - time_range)})", _TO: f"datetime({rfc3339(end)})"}


def _unknown_parameter(name: str, declared: Iterable[str], label: Callable[[str], str]) -> str:
    nearest = find_nearest_name(name, declared)
    hint = "" if nearest is None else f"; did you mean `{label(nearest)}`?"
    return f"is not a parameter of this query{hint}"
