"""Tests of execution times, of interrupts that a query ignores or that come after its end, and of leaked memory."""

import asyncio
import threading
from typing import Any, cast

import duckdb
import pytest

from emulators.kusto import engine as engine_module
from emulators.kusto.caches import StatementCache
from emulators.kusto.engine import EncodedResult, Engine, Execution
from emulators.kusto.errors import QueryError, out_of_memory_error
from emulators.kusto.options import RequestOptions
from emulators.kusto.translate import Translation
from emulators.kusto.translator import Translator


class _UninterruptibleExecution:
    """Fake query execution that ignores interrupts, without using the processor."""

    released = threading.Event()

    def __init__(self, *_: Any) -> None:
        pass

    def run(self) -> None:
        """Block until the test ends."""
        self.released.wait(60)

    def stop(self) -> None:
        """Ignore the interrupt of the engine."""


class _ConstantTranslator:
    async def translate(self, *_: Any) -> Translation:
        return Translation("SELECT 1", frozenset(), ())


async def test_an_uninterruptible_query_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the timeout, the caller gets an error at once; the process ends if the query ignores the interrupt."""
    reasons: list[object] = []

    def abort_process(reason: object) -> None:
        reasons.append(reason)
        _UninterruptibleExecution.released.set()

    monkeypatch.setattr(engine_module, "_STUCK_SECONDS", 1)
    monkeypatch.setattr(engine_module, "Execution", _UninterruptibleExecution)
    monkeypatch.setattr(engine_module, "abort_process", abort_process)
    with duckdb.connect() as connection:
        engine = Engine(connection, cast("Translator", _ConstantTranslator()))
        with pytest.raises(QueryError) as raised:
            await engine.run_query("print 1", {}, RequestOptions(timeout_seconds=0.01))
        assert raised.value.code == "RequestExecutionTimeout"
        await asyncio.to_thread(_UninterruptibleExecution.released.wait, 30)
        assert len(reasons) >= 1
        await engine.close()


def test_a_query_that_has_just_ended_can_be_stopped() -> None:
    """Interrupting an execution that has ended has no effect."""
    with duckdb.connect() as connection:
        execution = Execution(connection.cursor(), StatementCache(), "print 1", "SELECT 1", {}, RequestOptions())
        assert execution.run().rows == b"[1]"
        execution.stop()
        assert execution.stopped.is_set()


@pytest.mark.parametrize(
    ("has_leaked", "is_ingesting", "running", "expected"),
    [
        ([True, True], False, 0, ["queries that have ended"]),
        ([True, False], False, 0, []),
        ([False], False, 0, []),
        ([], True, 0, []),
        ([], False, 1, []),
    ],
)
async def test_leaked_memory_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, *, has_leaked: list[bool], is_ingesting: bool, running: int, expected: list[str]
) -> None:
    """If a query lacks memory, the process ends if ended queries still occupy the memory, and do so a moment later.

    While another query runs or rows are inserted, the memory is in use, and the process does not end.
    """
    ended: list[str] = []
    answers = iter(has_leaked)
    monkeypatch.setattr(engine_module, "abort_process", lambda reason: ended.append(str(reason)[:23]))
    monkeypatch.setattr(engine_module, "has_leaked_memory", lambda *_: next(answers))
    monkeypatch.setattr(engine_module, "_SECOND_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(engine_module, "_MEMORY_ATTEMPTS", 1)
    monkeypatch.setattr(Execution, "run", lambda _: (_ for _ in ()).throw(out_of_memory_error()))
    with duckdb.connect() as connection:
        engine = Engine(connection, cast("Translator", _ConstantTranslator()), 1_000_000, lambda: is_ingesting)
        engine.running = running
        with pytest.raises(QueryError, match="80DA0001"):
            await engine.run_query("print 1", {}, RequestOptions())
        await engine.close()
    assert ended == expected
    assert list(answers) == []


async def test_the_execution_time_includes_the_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The execution time of a result is the time of its translation, its discovery queries and its execution."""
    clock = [100.0]

    class SlowTranslator:
        async def translate(self, _text: str, found: list[Any], _place: object) -> Translation:
            clock[0] += 2
            return Translation("SELECT 1", frozenset(), (), is_discovery_query=not found)

    def run_slowly(_: Execution) -> EncodedResult:
        clock[0] += 3
        return EncodedResult((), b"[1]")

    monkeypatch.setattr(Execution, "run", run_slowly)
    with duckdb.connect() as connection:
        engine = Engine(connection, cast("Translator", SlowTranslator()), monotonic=lambda: clock[0])
        result = await engine.run_query("print 1", {}, RequestOptions())
        await engine.close()
    assert result.seconds == 2 + 3 + 2 + 3
