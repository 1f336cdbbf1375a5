"""Tests of the runner of event sources."""

import asyncio

from shared.errors import Kind, WorkspaceError
from shared.webhooks.sources.runner import EventSources


class Source:
    """Fake event source that counts its runs; it can fail or wait for the test.

    Attributes:
        runs: number of runs.
        is_failing: whether the next runs fail.
        gate: event for which a run waits; None to end at once.
        started: set when a run begins.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.is_failing = False
        self.gate: asyncio.Event | None = None
        self.started = asyncio.Event()

    async def __call__(self) -> None:
        """Run once."""
        self.runs += 1
        self.started.set()
        if self.is_failing:
            raise WorkspaceError(Kind.UNAVAILABLE, "STORE_DOWN", "The store does not respond.")
        if self.gate is not None:
            await self.gate.wait()


async def test_a_failure_stops_no_other_source() -> None:
    """If one event source fails, the other sources still run, and afterwards the worker is woken."""
    broken, working, woken = Source(), Source(), list[int]()
    broken.is_failing = True
    await EventSources({"a": broken, "b": working}, lambda: woken.append(working.runs)).run()
    assert (broken.runs, woken) == (1, [1])


async def test_nudges_during_a_run_cause_one_more() -> None:
    """Any number of changes during a run cause exactly one more run, which does not wait for the timer."""
    source, done = Source(), asyncio.Event()
    source.gate = asyncio.Event()
    sources = EventSources({"a": source}, lambda: done.set() if source.runs > 1 else None)
    sources.nudge()
    await source.started.wait()
    for _ in range(5):
        sources.nudge()
    source.gate.set()
    await done.wait()
    await sources.close()
    assert source.runs == 2


async def test_no_run_starts_after_the_close() -> None:
    """Closing the runner stops its run and prevents new ones."""
    source = Source()
    source.gate = asyncio.Event()
    sources = EventSources({"a": source}, lambda: None)
    sources.nudge()
    await source.started.wait()
    await sources.close()
    sources.nudge()
    await asyncio.sleep(0)
    assert source.runs == 1
