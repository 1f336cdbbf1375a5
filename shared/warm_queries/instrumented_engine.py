"""The query engine with its times told to observability."""

import time
from typing import Protocol

from shared.errors import WorkspaceError
from shared.observability.metrics import measure
from shared.observability.tracing import call_span
from shared.warm_queries.ports import EngineQuery, EngineResult, QueryEngine


class ClosableEngine(QueryEngine, Protocol):
    """An engine that holds connections."""

    async def close(self) -> None:
        """Close them."""
        ...


class InstrumentedEngine:
    """The QueryEngine port over another engine; each query is a span and a duration by outcome.

    Args:
        engine: does the work.
        database: that it queries.
    """

    def __init__(self, engine: ClosableEngine, database: str) -> None:
        self._engine = engine
        self._attributes = {"db.system.name": "azure.kusto", "db.operation.name": "query", "db.namespace": database}

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Run a query; arguments, result and errors are the engine's."""
        started, outcome = time.perf_counter(), "failed"
        try:
            with call_span("query", self._attributes):
                result = await self._engine.execute(query)
            outcome = "answered"
        except WorkspaceError as error:
            outcome = error.code
            raise
        else:
            return result
        finally:
            measure("workspace.query.duration", time.perf_counter() - started, outcome=outcome)

    async def ping(self) -> None:
        """Return when the engine answers."""
        await self._engine.ping()

    async def close(self) -> None:
        """Close the engine's connections."""
        await self._engine.close()
