"""Port of the KQL query engine (Azure Data Explorer or its emulator)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """KQL query for the engine, with its parameter values and limits.

    Attributes:
        text: KQL text, including the service's own statements.
        parameters: values of the declared query parameters as KQL literals; a string is its text without quotes.
        max_records: maximum number of rows.
        timeout_seconds: time after which the engine cancels the query.
        cache_seconds: maximum age of a cached result; 0 requires a new result.
        lines_before: number of lines before the caller's text, to subtract from line numbers in the engine's errors.
    """

    text: str
    parameters: Mapping[str, str]
    max_records: int
    timeout_seconds: int
    cache_seconds: int = 0
    lines_before: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a query's result: its name and its Kusto scalar type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class EngineResult:
    """Primary result table of a KQL query, with the execution time.

    Attributes:
        columns: columns of the result in order.
        rows: rows of cells as the engine sends them: datetime and timespan as text, dynamic as JSON value or JSON text.
        execution_ms: execution time in the engine, in milliseconds.
        computed_at: time at which a cached result was computed; None for a new result.
        visualization: properties of the query's operator ``render``; None without the operator.
        approximations: each used function whose results can differ from Data Explorer's, with a note; empty for a
            result of Data Explorer itself.
        size: number of bytes of the engine's reply; decides whether its rows are processed in a worker thread.
    """

    columns: tuple[Column, ...]
    rows: list[list[Any]]
    execution_ms: float
    computed_at: datetime | None = None
    visualization: Mapping[str, Any] | None = None
    approximations: tuple[str, ...] = ()
    size: int = 0


class QueryEngine(Protocol):
    """Read-only engine for KQL."""

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Execute a KQL query and return its result table.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY``, or ``QUERY_TOO_LARGE`` if the query
                needs more memory or returns more rows than the engine allows; TIMEOUT ``QUERY_TIMEOUT``; THROTTLED
                ``THROTTLED``; UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE``. A partial failure in a successful reply of the
                engine is an error, too.
        """
        ...

    async def ping(self) -> None:
        """Check that the engine is reachable; raise WorkspaceError UNAVAILABLE if not."""
        ...
