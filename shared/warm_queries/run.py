"""The outcome of one execution."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.catalog.models import Approval
from shared.warm_queries.ports import Column

AD_HOC = "ad-hoc"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer with everything that is told of it.

    Attributes:
        query: the query's name, or ``ad-hoc``.
        executed_at: when the engine worked it out.
        rows: at most ``limit`` objects by column name.
        truncated: whether the query gave more rows than that.
        execution_ms: the engine's own time, milliseconds.
        approval: who released the query, None for an ad-hoc one.
        from_cache: whether it was worked out for an earlier call; None for a query that allows no such thing.
    """

    query: str
    executed_at: datetime
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    truncated: bool
    execution_ms: float
    approval: Approval | None
    from_cache: bool | None = None
