"""Decorator of the KQL query engine that records OpenTelemetry spans and durations.

This module is separate from the adapters, because it measures every adapter in the same way.
"""

from typing import Protocol

from shared.errors import WorkspaceError
from shared.observability.metrics import record_histogram_value
from shared.observability.tracing import open_call_span
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.ports import EngineQuery, EngineResult, QueryEngine


class ClosableEngine(QueryEngine, Protocol):
    """Query engine with connections to close."""

    async def close(self) -> None:
        """Close the connections to the query engine."""
        ...


class InstrumentedEngine:
    """Query engine that passes each query to a wrapped engine, and records a trace span and the duration by outcome.

    Args:
        engine: engine that executes the queries.
        database: name of the engine's database, for the spans.
        runtime: clock, randomness and threads.
    """

    def __init__(self, engine: ClosableEngine, database: str, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._engine = engine
        self._attributes = {"db.system.name": "azure.kusto", "db.operation.name": "query", "db.namespace": database}
        self._runtime = runtime

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Execute a KQL query with the wrapped engine, inside a trace span."""
        started, outcome = self._runtime.monotonic(), "failed"
        try:
            with open_call_span("query", self._attributes):
                result = await self._engine.execute(query)
            outcome = "answered"
        except WorkspaceError as error:
            outcome = error.code
            raise
        else:
            return result
        finally:
            record_histogram_value("workspace.query.duration", self._runtime.monotonic() - started, outcome=outcome)

    async def ping(self) -> None:
        """Check that the wrapped query engine is reachable."""
        await self._engine.ping()

    async def close(self) -> None:
        """Close the connections of the wrapped query engine."""
        await self._engine.close()
