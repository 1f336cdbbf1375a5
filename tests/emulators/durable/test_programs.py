"""Tests of random orchestrations with random crashes of the engine."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.durable.engine import DurableSettings
from emulators.durable.management import InstanceFilter
from tests.emulators.durable import programs
from tests.emulators.durable.engine_harness import EngineHarness
from tests.random_examples import scale_examples

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once


class Crashes:
    """Planned crashes of the engine, each after a number of function calls."""

    def __init__(self, harness: EngineHarness, gaps: list[int]) -> None:
        self.harness = harness
        self._gaps = gaps
        self.due = asyncio.Event()
        harness.functions.before_call = self._count_calls

    def _count_calls(self) -> None:
        if not self._gaps:
            return
        self._gaps[0] -= 1
        if self._gaps[0] < 0:
            self._gaps.pop(0)
            self.due.set()

    async def crash_if_due(self) -> None:
        """Crash and restart the engine if a crash is planned for this call."""
        if self.due.is_set():
            self.due.clear()
            await self.harness.kill_engine()
            self.harness.start_engine()


async def run_program(program: dict[str, Any], gaps: list[int], max_concurrent_activities: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        harness = EngineHarness(
            Path(folder) / "durable.sqlite",
            DurableSettings("hub", max_concurrent_activities, max_concurrent_activities),
        )
        programs.register_program_functions(harness.functions)
        try:
            await harness.start_orchestration("interpret", program)
            return await run_to_end(harness, Crashes(harness, list(gaps)))
        finally:
            await harness.kill_engine()


async def run_to_end(harness: EngineHarness, crashes: Crashes) -> dict[str, Any]:
    """Send events, advance the clock and crash the engine, until the program ends."""
    fed: dict[tuple[str, str], int] = {}

    async def check_end() -> bool:
        await crashes.crash_if_due()
        for instance in await harness.management.list_instance_page(InstanceFilter(), "", 100):
            for name in programs.EVENTS:
                key = (instance.start.execution, name)
                if not instance.status.has_ended and fed.setdefault(key, 0) < 1:
                    fed[key] += 1
                    for _ in range(12):
                        await harness.raise_event(name, "data", instance.start.instance)
        found = await harness.management.find_instance("one")
        return found is not None and found.status.has_ended

    await harness.wait_until(check_end, tick=7)
    return await harness.read_status()


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=programs.programs,
    rounds=st.integers(1, 2),
    gaps=st.lists(st.integers(0, 12), max_size=4),
    most_at_once=st.sampled_from([1, 10]),
)
def test_the_result_of_an_orchestration_does_not_depend_on_crashes(
    steps: list[Any], rounds: int, gaps: list[int], most_at_once: int
) -> None:
    """If the engine crashes at random times, the result of an orchestration is the same."""
    program = {"steps": steps, "rounds": rounds}
    status = asyncio.run(run_program(program, gaps, most_at_once))
    assert (status["runtimeStatus"], status["output"]) == ("Completed", programs.compute_expected_results(program)), (
        status
    )
    assert status["customStatus"] == len(steps)
