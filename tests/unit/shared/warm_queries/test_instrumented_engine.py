"""Tests of the engine that measures the calls of another query engine."""

from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.warm_queries import instrumented_engine
from shared.warm_queries.instrumented_engine import InstrumentedEngine
from shared.warm_queries.ports import EngineQuery, EngineResult
from tests.virtual_time import VirtualTime

QUERY = EngineQuery("Telemetry", {}, 10, 5)


class Engine:
    """Fake query engine whose queries take two seconds, or raise the error that the test has set."""

    def __init__(self, time: VirtualTime) -> None:
        self.time = time
        self.error: Exception | None = None
        self.calls: list[str] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return an empty result, or raise the error that the test has set."""
        assert query is QUERY
        self.time.advance(2)
        if self.error is not None:
            raise self.error
        return EngineResult((), [], 0.0)

    async def ping(self) -> None:
        """Record the call."""
        self.calls.append("ping")

    async def close(self) -> None:
        """Record the call."""
        self.calls.append("close")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "answered"),
        (WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "slow"), "QUERY_TIMEOUT"),
        (ConnectionError("down"), "failed"),
    ],
)
async def test_each_query_is_measured_by_its_outcome(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, outcome: str
) -> None:
    """The duration of each query is recorded with its outcome; the caller gets the error of a failed query."""
    time, measured = VirtualTime(), list[tuple[Any, ...]]()

    def record(name: str, value: float, **attributes: str) -> None:
        measured.append((name, value, attributes))

    monkeypatch.setattr(instrumented_engine, "record_histogram_value", record)
    engine = Engine(time)
    engine.error = error
    instrumented = InstrumentedEngine(engine, "Telemetry", runtime=time.runtime)
    if error is None:
        await instrumented.execute(QUERY)
    else:
        with pytest.raises(type(error)):
            await instrumented.execute(QUERY)
    assert measured == [("workspace.query.duration", 2.0, {"outcome": outcome})]


async def test_readiness_checks_and_close_are_passed_on() -> None:
    """Readiness checks and the shutdown are passed to the wrapped engine."""
    engine = Engine(VirtualTime())
    instrumented = InstrumentedEngine(engine, "Telemetry")
    await instrumented.ping()
    await instrumented.close()
    assert engine.calls == ["ping", "close"]
