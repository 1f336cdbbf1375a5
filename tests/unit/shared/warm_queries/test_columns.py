"""Tests of the query column cache."""

import asyncio

import pytest

from shared.catalog.models import WarmQuery
from shared.errors import Kind, WorkspaceError
from shared.warm_queries import columns as module
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

COLUMNS = (Column("n", "long"),)


class Engine:
    """Query engine whose replies can be delayed."""

    def __init__(self) -> None:
        self.awake = asyncio.Event()
        self.broken = False
        self.request_count = 0

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the columns after a delay."""
        self.request_count += 1
        await self.awake.wait()
        if self.broken:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", query.text)
        return EngineResult(COLUMNS, [], 1.0, None)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


def query(kql: str) -> WarmQuery:
    """Return a query."""
    return WarmQuery(lookup="q", name="Q", surface="s", kql=kql)


async def test_columns_are_requested_once() -> None:
    """Columns are cached after the first request; for a rejected query, ``find`` returns None."""
    engine = Engine()
    engine.awake.set()
    columns = QueryColumns(engine)
    assert [await columns.find(query("T | count")) for _ in range(3)] == [COLUMNS] * 3
    assert engine.request_count == 1
    engine.broken = True
    assert await columns.find(query("T | take 1")) is None
    with pytest.raises(WorkspaceError):
        await columns.resolve(query("T | take 1"))


async def test_wait_for_unresponsive_engine_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first caller waits, for a limited time, and the engine gets one request per query."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    engine = Engine()
    columns = QueryColumns(engine)
    assert await columns.find(query("T | count")) is None
    monkeypatch.setattr(module, "WAIT_SECONDS", 3600.0)
    assert await asyncio.wait_for(columns.find(query("T | count")), 60) is None
    assert await asyncio.wait_for(columns.find(query("T | take 1")), 60) is None
    assert engine.request_count == 2
    engine.awake.set()
    assert await columns.resolve(query("T | take 2")) == COLUMNS
    assert await columns.find(query("T | count")) == COLUMNS
    assert engine.request_count == 3
