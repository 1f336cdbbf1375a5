"""Port of the query engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """Query for the engine.

    Attributes:
        text: KQL, including statements.
        parameters: values of the declared query parameters as KQL literals (strings are not quoted).
        max_records: maximum number of rows.
        timeout_seconds: time after which the engine cancels the query.
        cache_seconds: maximum age of a cached result; 0 requires a new one.
        lines_before: number of lines before the caller's text, to be subtracted from the engine's error positions.
    """

    text: str
    parameters: Mapping[str, str]
    max_records: int
    timeout_seconds: int
    cache_seconds: int = 0
    lines_before: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """Result column: its name and its Kusto scalar type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class EngineResult:
    """Primary table of a result.

    Attributes:
        columns: in order.
        rows: cells in wire format: datetime and timespan as text, dynamic as JSON value or JSON text.
        execution_ms: execution time in the engine, in milliseconds.
        computed_at: time of the computation for a cached result; None for a new one.
    """

    columns: tuple[Column, ...]
    rows: list[list[Any]]
    execution_ms: float
    computed_at: datetime | None = None


class QueryEngine(Protocol):
    """Read-only engine for KQL."""

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Execute a query.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY`` or ``QUERY_TOO_LARGE``; TIMEOUT
                ``QUERY_TIMEOUT``; THROTTLED ``THROTTLED``; UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE``. A partial failure
                in a successful reply is an error, too.
        """
        ...

    async def ping(self) -> None:
        """Check that the engine is reachable; raise WorkspaceError UNAVAILABLE if not."""
        ...
