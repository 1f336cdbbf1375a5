"""The query engine as warm queries need it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """A query for the engine.

    Attributes:
        text: KQL, statements included.
        parameters: values of the declared query parameters, each a KQL literal (strings bare).
        max_records: the engine returns no more rows than this.
        timeout_seconds: the engine gives up after this time.
        cache_seconds: an answer up to this old may be given again; 0 for a fresh one.
        lines_before: lines of the text that are not the caller's; taken off the positions in the engine's messages.
    """

    text: str
    parameters: Mapping[str, str]
    max_records: int
    timeout_seconds: int
    cache_seconds: int = 0
    lines_before: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A result column: its name and its Kusto scalar type name."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The primary table of an answer.

    Attributes:
        columns: in order.
        rows: cells as they stand on the wire: datetime and timespan as text, dynamic as JSON value or JSON text.
        execution_ms: the engine's own time, milliseconds.
        computed_at: when the engine worked the answer out, where it gave one that it had kept; None for a fresh one.
    """

    columns: tuple[Column, ...]
    rows: list[list[Any]]
    execution_ms: float
    computed_at: datetime | None = None


class QueryEngine(Protocol):
    """Runs KQL, read-only."""

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Run a query.

        Raises:
            WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY`` or ``QUERY_TOO_LARGE``; TIMEOUT
                ``QUERY_TIMEOUT``; THROTTLED ``THROTTLED``; UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE``. A partial failure
                inside a good reply raises too.
        """
        ...

    async def ping(self) -> None:
        """Return when the engine answers; raise WorkspaceError UNAVAILABLE when it does not."""
        ...
