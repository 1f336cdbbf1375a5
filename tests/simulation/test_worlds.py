"""Tests of simulated worlds: some seeds, seeds whose worlds failed before, and repeatable traces."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.simulation.component import Component
from tests.simulation.cosmos_world import uses_cosmos
from tests.simulation.environment import run_in_world
from tests.simulation.exploration import choose_components, list_components, list_crash_points_in_code, simulate_world

ROOT = Path(__file__).parents[2]
ONCE_FAILED = Path(__file__).parent / "once_failed.txt"
SEEDS_OF_EACH_COMPONENT = 6
PRINT_TRACE = """
import sys
from tests.simulation.exploration import simulate_world
for seed in (5, 6, 7):
    print("\\n".join(simulate_world(seed).trace))
"""


def read_seeds_that_failed_before() -> list[tuple[int, tuple[type[Component], ...], list[str] | None]]:
    """Return the seeds that have failed before, with components and crash points; None if the seed chooses these."""
    known = {component.name: component for component in list_components()}
    lines = ONCE_FAILED.read_text(encoding="utf-8").splitlines()
    entries = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return [
        (int(seed), tuple(known[name] for name in names.split(",")), _parse_crash_points(text))
        for seed, names, text in entries
    ]


def _parse_crash_points(text: str) -> list[str] | None:
    """Return the crash points that an entry names after ``AIMS=``; None without this word."""
    _, separator, aims = text.partition(" AIMS=")
    if not separator:
        return None
    return aims.split(";") if aims else []


@pytest.mark.parametrize("component", list_components(), ids=lambda component: component.name)
def test_each_component_holds_its_invariants(component: type[Component]) -> None:
    """A simulated world with one component violates none of the component's invariants."""
    for seed in range(SEEDS_OF_EACH_COMPONENT):
        assert simulate_world(seed, (component,)).violation == "", f"seed {seed}"


def test_seeds_that_failed_before_succeed() -> None:
    """A seed whose world once violated an invariant violates none today."""
    failed = {
        seed: result.violation
        for seed, chosen, aims in read_seeds_that_failed_before()
        if (result := simulate_world(seed, chosen, aims)).violation
    }
    assert failed == {}


def test_crash_points_of_seeds_that_failed_before_exist() -> None:
    """Each crash point that an entry names is an await of today's code; a change of the code can move it."""
    existing = {
        point
        for component in list_components()
        for with_cosmos in (False, True)
        for point in list_crash_points_in_code(component, with_cosmos=with_cosmos)
    }
    named = {point for _, _, aims in read_seeds_that_failed_before() for point in aims or ()}
    assert named
    assert named - existing == set()


def test_equal_seeds_give_equal_traces_in_all_processes() -> None:
    """A seed gives exactly the same trace in processes with different hash seeds."""

    def print_trace(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PRINT_TRACE]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout

    first = print_trace("1")
    assert first.count(b"\n") > 100
    assert first == print_trace("2")


def test_equal_seeds_give_equal_traces_in_all_threads() -> None:
    """A seed gives the same trace in a new thread, and in a process that a thread forks, as in the main thread."""
    # An import whose preview abandons the generator that lists the uploaded file.
    component = next(each for each in list_components() if each.name == "imports")
    with ThreadPoolExecutor(1) as thread:
        digest = thread.submit(lambda: simulate_world(8, (component,)).digest).result()
    assert digest == simulate_world(8, (component,)).digest


def test_no_garbage_is_collected_while_a_world_is_simulated() -> None:
    """No garbage is collected within a world, even if its code enables the collector, so that traces are repeatable."""
    before = gc.isenabled(), gc.get_threshold()
    with run_in_world(lambda: None, {}):
        collections = gc.get_stats()[0]["collections"]
        gc.enable()
        objects: list[list[int]] = [[] for _ in range(100_000)]
        assert gc.get_stats()[0]["collections"] == collections
    assert len(objects) == 100_000
    assert (gc.isenabled(), gc.get_threshold()) == before


def test_a_simulated_world_crashes_at_its_target_points() -> None:
    """A world crashes at up to three target points.

    A run with exactly the points that were used has the same trace.
    """
    component = list_components()[0]
    aimed = simulate_world(4, (component,), list_crash_points_in_code(component, with_cosmos=uses_cosmos(4)))
    assert len(aimed.points.aimed) == 3
    assert set(aimed.points.aimed) <= aimed.points.crashed
    assert simulate_world(4, (component,), aimed.points.aimed).digest == aimed.digest
    assert simulate_world(4, (component,), ()).digest != aimed.digest


def test_different_seeds_give_different_worlds() -> None:
    """Different seeds select different components and different steps."""
    assert len({simulate_world(seed, list_components()[:1]).digest for seed in range(4)}) == 4
    assert len({choose_components(seed) for seed in range(50)}) >= min(len(list_components()), 3)


def test_components_with_unused_crash_points_are_chosen_more_often() -> None:
    """A component with many unused crash points is chosen more often, but every component is chosen sometimes."""
    rare = next(component for component in list_components() if component.weight == 1)
    unused = {point for stores in (False, True) for point in list_crash_points_in_code(rare, with_cosmos=stores)}
    chosen = [component for seed in range(1_000) for component in choose_components(seed, unused)]
    usual = [component for seed in range(1_000) for component in choose_components(seed)]
    assert chosen.count(rare) > 10 * usual.count(rare)
    assert set(chosen) == set(list_components())
    assert [choose_components(seed, set()) for seed in range(50)] == [choose_components(seed) for seed in range(50)]
