"""Tests of the engine that shares another query engine fairly between principals."""

import asyncio
from dataclasses import replace

import pytest

from shared.errors import Kind, WorkspaceError
from shared.fair_use.acting_member import use_acting_member
from shared.warm_queries.fair_engine import RESPONSE_SECONDS, FairEngine
from shared.warm_queries.ports import EngineQuery, EngineResult

QUERY = EngineQuery("Telemetry", {}, 10, 60)
RESULT = EngineResult((), [], 0.0)


class GatedEngine:
    """Fake query engine whose queries run until the test opens its gate."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.gate = asyncio.Event()
        self.calls: list[str] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Wait until the test opens the gate, then return a result."""
        self.started.append(query.text)
        await self.gate.wait()
        return RESULT

    async def ping(self) -> None:
        """Record the call."""
        self.calls.append("ping")

    async def close(self) -> None:
        """Record the call."""
        self.calls.append("close")


def start_query(fair: FairEngine, member: str, text: str = "", seconds: int = 60) -> asyncio.Task[EngineResult]:
    """Start a query in a request of the given member; by default, the text of the query is the member's id."""
    with use_acting_member(member):
        query = replace(QUERY, text=text or member, timeout_seconds=seconds)
        return asyncio.create_task(fair.execute(query))


async def run_ready_tasks() -> None:
    """Run the event loop until every task waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_principal_with_many_queries_does_not_delay_another() -> None:
    """The number of running queries per principal is limited, so that another principal's query starts at once."""
    engine = GatedEngine()
    fair = FairEngine(engine, 2)
    many = [start_query(fair, "many") for _ in range(40)]
    await run_ready_tasks()
    one = start_query(fair, "one")
    await run_ready_tasks()
    assert engine.started == ["many", "many", "one"]
    engine.gate.set()
    assert await asyncio.gather(*many, one) == [RESULT] * 41


async def test_a_query_that_waits_too_long_is_throttled() -> None:
    """A query that waits too long is rejected with THROTTLED and is never sent to the engine."""
    engine = GatedEngine()
    fair = FairEngine(engine, 1)
    running = start_query(fair, "many", seconds=0)
    await run_ready_tasks()
    with pytest.raises(WorkspaceError) as late:
        await start_query(fair, "many", "late", seconds=0)
    assert (late.value.kind, late.value.code, late.value.members) == (Kind.THROTTLED, "THROTTLED", {"retryAfter": 5})
    with pytest.raises(WorkspaceError, match="retry later"):
        await start_query(fair, "many", "late", seconds=RESPONSE_SECONDS)
    assert engine.started == ["many"]
    engine.gate.set()
    assert await running == RESULT


async def test_queries_outside_of_requests_are_not_limited() -> None:
    """Queries that no caller requested, such as those of alert rules, are not limited and start at once."""
    engine = GatedEngine()
    fair = FairEngine(engine, 1)
    queries = [asyncio.create_task(fair.execute(QUERY)) for _ in range(3)]
    await run_ready_tasks()
    assert len(engine.started) == 3
    engine.gate.set()
    await asyncio.gather(*queries)


async def test_ping_and_close_reach_the_wrapped_engine() -> None:
    """``ping`` and ``close`` are passed to the wrapped engine."""
    engine = GatedEngine()
    fair = FairEngine(engine, 1)
    await fair.ping()
    await fair.close()
    assert engine.calls == ["ping", "close"]
