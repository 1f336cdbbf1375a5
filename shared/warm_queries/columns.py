"""Which columns a query gives, asked of the engine without reading telemetry."""

import asyncio
import time
from collections import OrderedDict

from shared.catalog import kql_text
from shared.catalog.kql_restrictions import check_query
from shared.catalog.models import ParameterType, WarmQuery
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.ports import Column, EngineQuery, QueryEngine
from shared.worker_threads import run_in_worker

REMEMBERED = 1_000
TIMEOUT_SECONDS = 20
PATIENCE_SECONDS = 4.0
"""How long somebody waits who can do without."""
SILENT_SECONDS = 10.0
"""For how long an engine that did not tell in that time is not waited for."""
SILENT = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The engine cannot tell the columns now.")
_NO_ROWS = "let Telemetry = Telemetry | where 1 == 0;"
# A value of each type that engines bind; what the query gives for it is not looked at.
_SOME_VALUE = {
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
    """Works out the columns of queries, and remembers them by the query's text and parameters."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[tuple[object, ...], tuple[Column, ...]] = OrderedDict()
        self._asking: dict[tuple[object, ...], asyncio.Task[tuple[Column, ...] | WorkspaceError]] = {}
        self._silent_until = 0.0

    async def resolve(self, query: WarmQuery) -> tuple[Column, ...]:
        """Return the columns of a query, after asking the engine to bind it.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID`` or ``QUERY_NOT_READ_ONLY`` for a query that does not bind; what
                else the engine raises.
        """
        key = _key(query)
        known = self._known.get(key)
        if known is None:
            known = await self._ask(query)
            self._silent_until = 0.0
            self._known[key] = known
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known

    async def find(self, query: WarmQuery) -> tuple[Column, ...] | None:
        """Return the columns of a query, None where the engine does not tell them in a moment."""
        told = await self.resolve_or_error(query)
        return None if isinstance(told, WorkspaceError) else told

    async def resolve_or_error(self, query: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        """Return the columns of a query, or why they are not known: what :meth:`of` raises, or a silent engine.

        It goes on being asked meanwhile; while it is silent, nobody else waits for it.
        """
        key = _key(query)
        if key in self._known:
            return self._known[key]
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._answered(query))
            self._asking[key].add_done_callback(lambda _: self._asking.pop(key, None))
        patience = 0.0 if time.monotonic() < self._silent_until else PATIENCE_SECONDS
        done, _ = await asyncio.wait({self._asking[key]}, timeout=patience)
        if done:
            return done.pop().result()
        if patience:
            self._silent_until = time.monotonic() + SILENT_SECONDS
        return SILENT

    async def _answered(self, query: WarmQuery) -> tuple[Column, ...] | WorkspaceError:
        try:
            return await self.resolve(query)
        except WorkspaceError as error:
            return error

    async def _ask(self, query: WarmQuery) -> tuple[Column, ...]:
        asked = await run_in_worker(len(query.kql), self._composed, query)
        return (await self._engine.execute(asked)).columns

    @staticmethod
    def _composed(query: WarmQuery) -> EngineQuery:
        check_query(query.kql)
        declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
        composed = kql_text.compose_query(
            query.kql, declared, _NO_ROWS if kql_text.accepts_time_filter(query.kql) else ""
        )
        values = {parameter.name: _SOME_VALUE[parameter.type] for parameter in query.parameters}
        return EngineQuery(composed.text, values, 1, TIMEOUT_SECONDS, lines_before=composed.lines_before)


def _key(query: WarmQuery) -> tuple[object, ...]:
    return query.kql, tuple((parameter.name, parameter.type) for parameter in query.parameters)
