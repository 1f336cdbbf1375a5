"""Runs warm queries and ad-hoc queries."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.catalog.models import Approval, QueryParameter, WarmQuery
from shared.catalog.parameters import literal
from shared.catalog.snapshot import Catalog
from shared.errors import FieldError, Kind, WorkspaceError, invalid_fields
from shared.timestamps import now, rfc3339
from shared.warm_queries import kql_text
from shared.warm_queries.ports import Column, EngineQuery, QueryEngine
from shared.warm_queries.results import row_objects

TABLE = "Telemetry"
TIME_COLUMN = "Timestamp"
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
AD_HOC = "ad-hoc"
# Our own parameters; the underscore keeps them apart from declared ones, which begin with a letter.
_FROM, _TO = "_oi_from", "_oi_to"
_WINDOW = f"let {TABLE} = {TABLE} | where {TIME_COLUMN} between ({_FROM} .. {_TO});"


@dataclass(frozen=True, slots=True)
class QueryRun:
    """The outcome of one execution.

    Attributes:
        query: the query's name, or ``ad-hoc``.
        rows: at most ``limit`` objects by column name.
        truncated: whether the query gave more rows than that.
        approval: who released the query, None for an ad-hoc one.
    """

    query: str
    executed_at: datetime
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    truncated: bool
    execution_ms: float
    approval: Approval | None


class WarmQueries:
    """Executes queries of the workspace."""

    def __init__(self, catalog: Callable[[], Awaitable[Catalog]], engine: QueryEngine, timeout_seconds: int) -> None:
        self._catalog = catalog
        self._engine = engine
        self._timeout_seconds = timeout_seconds

    async def execute(
        self, lookup: str, time_range: timedelta | None, limit: int, arguments: Mapping[str, Any]
    ) -> QueryRun:
        """Run the approved query with this lookup key or API path.

        Args:
            lookup: matched as lookup key, then as API path.
            time_range: keeps the rows of the last so much time, before anything is aggregated.
            limit: most rows to return.
            arguments: values of declared parameters by name, as text or as JSON values.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``, FORBIDDEN ``QUERY_NOT_APPROVED``, INVALID naming
                ``p.<name>``, or what the engine raises.
        """
        stored = (await self._catalog()).find_query(lookup)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", "There is no warm query with this lookup.")
        query = stored.value
        if query.approval is None:
            raise WorkspaceError(
                Kind.FORBIDDEN, "QUERY_NOT_APPROVED", "The query is a draft; it runs once somebody else approved it."
            )
        bound = bind(query.parameters, arguments)
        declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
        return await self._run(query.kql, declared, bound, time_range, limit, query)

    async def execute_ad_hoc(self, kql: str, time_range: timedelta | None, limit: int) -> QueryRun:
        """Run the caller's own query.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY``; or what the engine raises.
        """
        return await self._run(kql, "", {}, time_range, limit, None)

    async def _run(
        self,
        kql: str,
        declared: str,
        bound: dict[str, str],
        time_range: timedelta | None,
        limit: int,
        query: WarmQuery | None,
    ) -> QueryRun:
        kql_text.check_read_only(kql)
        executed_at = now()
        statements = ""
        if time_range is not None:
            kql_text.check_time_range_holds(kql)
            declared = f"{declared}, {_FROM}:datetime, {_TO}:datetime".removeprefix(", ")
            bound = {**bound, **_window(executed_at, time_range)}
            statements = _WINDOW
        composed = kql_text.compose(kql, declared, statements)
        result = await self._engine.execute(
            EngineQuery(composed.text, bound, limit + 1, self._timeout_seconds, lines_before=composed.lines_before)
        )
        return QueryRun(
            query=AD_HOC if query is None else query.name,
            executed_at=executed_at,
            columns=result.columns,
            rows=row_objects(result.columns, result.rows[:limit]),
            truncated=len(result.rows) > limit,
            execution_ms=result.execution_ms,
            approval=None if query is None else query.approval,
        )


def bind(parameters: Sequence[QueryParameter], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a literal for every declared parameter, from the arguments or its default.

    Raises:
        WorkspaceError: INVALID, listing each unknown, missing or ill-typed argument as ``p.<name>``.
    """
    declared = {parameter.name: parameter for parameter in parameters}
    errors = [FieldError(f"p.{name}", "is no parameter of this query") for name in arguments if name not in declared]
    bound: dict[str, str] = {}
    for name, parameter in declared.items():
        if name not in arguments and parameter.required:
            errors.append(FieldError(f"p.{name}", f"is required, of type {parameter.type}"))
            continue
        try:
            bound[name] = literal(parameter.type, arguments.get(name, parameter.default))
        except ValueError as error:
            errors.append(FieldError(f"p.{name}", f"{error} ({parameter.type})"))
    if errors:
        raise invalid_fields(errors)
    return bound


def _window(end: datetime, time_range: timedelta) -> dict[str, str]:
    return {_FROM: f"datetime({rfc3339(end - time_range)})", _TO: f"datetime({rfc3339(end)})"}
