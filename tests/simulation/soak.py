"""Simulation of many worlds on all cores, in processes that are replaced regularly to limit their memory."""

import gc
import multiprocessing
import os
import resource
import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import islice
from multiprocessing.pool import AsyncResult
from typing import Final

from tests.simulation.batch import Batch, BatchSummary, simulate_batch
from tests.simulation.cosmos_world import replace_modules
from tests.simulation.environment import make_template, prepare_process
from tests.simulation.exploration import list_components, list_crash_points_in_code
from tests.simulation.point_lists import EXCLUDED, RARE, select_listed_points

LONG_RUN: Final = 50_000
"""A run of all components with at least this number of worlds must use the crash points."""
_LEAST_SHARE: Final = 0.95
_WORLDS_OF_A_PROCESS: Final = 100
_WORLDS_BEFORE_A_STOP: Final = 20
_SHOWN_VIOLATIONS: Final = 20
_WORLDS_BETWEEN_REPORTS: Final = 5_000
_SLOW_MODULES: Final = ("duckdb", "pandas", "pyarrow.dataset", "pyarrow.pandas_compat", "pyarrow.parquet")
"""Modules that worlds load on first use; without them, each worker process would load them again."""


@dataclass(frozen=True)
class SoakLimits:
    """Limits of a soak run, which explores many simulated worlds.

    Attributes:
        seconds: time after which no new batch of worlds starts.
        worlds: number of worlds.
        first: first seed.
        stops_at_violation: whether the exploration ends after the first batch with a violation.
    """

    seconds: float
    worlds: int
    first: int = 1
    stops_at_violation: bool = False


@dataclass
class Totals:
    """Sums over all completed batches of worlds."""

    worlds: int = 0
    violations: int = 0
    seen: set[str] = field(default_factory=set)
    crashed: set[str] = field(default_factory=set)

    def add(self, summary: BatchSummary) -> None:
        """Add the summary of a batch; print its violations and, from time to time, the number of worlds so far."""
        before, self.worlds = self.worlds, self.worlds + summary.worlds
        if self.worlds // _WORLDS_BETWEEN_REPORTS > before // _WORLDS_BETWEEN_REPORTS:
            print(f"{self.worlds} worlds so far, {self.violations} violations", flush=True)
        self.seen |= summary.seen
        self.crashed |= summary.crashed
        for arguments, text in summary.violations:
            self.violations += 1
            if self.violations <= _SHOWN_VIOLATIONS:
                print(f"violation: make simulate {arguments}: {text}", flush=True)


def run_soak(limits: SoakLimits, names: tuple[str, ...] = ()) -> int:
    """Simulate worlds until a limit is reached; print a summary as the last line; return the exit code.

    Args:
        limits: limits of the exploration.
        names: components of every world; none for those that the seeds choose.
    """
    _prepare_forks(names)
    started = time.monotonic()
    totals = Totals()
    _run_batches(_list_batches(limits, started + limits.seconds, names), totals, limits)
    points = _list_crash_points(totals.seen, names)
    faults = [] if names else _find_faults(totals, points)
    for point in sorted(points - totals.crashed):
        print(f"no crash at {point}")
    for fault in faults:
        print(f"crash points: {fault}")
    elapsed = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    per_cpu_second = totals.worlds / (used.ru_utime + used.ru_stime)
    print(f"{totals.worlds / elapsed:.1f} worlds per second, {per_cpu_second:.1f} per CPU second")
    reached = f"crash points {len(points & totals.crashed)} of {len(points)}"
    print(f"worlds {totals.worlds}, violations {totals.violations}, {reached}")
    return int(totals.violations > 0 or bool(faults))


def replay_batch(batch: Batch) -> BatchSummary:
    """Simulate a batch in a new process, in the same state as that of a process of a soak run."""
    _prepare_forks(batch.names)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(simulate_batch, (batch,))


def _prepare_forks(names: tuple[str, ...]) -> None:
    """Load everything that forked processes need."""
    prepare_process()
    for name in _SLOW_MODULES:
        import_module(name)
    for with_cosmos in (False, True):
        make_template(with_cosmos=with_cosmos)
    _list_crash_points(set(), names)
    # Worker processes share the memory of the imported modules, which a collection would copy.
    gc.collect()
    gc.freeze()


def _find_faults(totals: Totals, points: set[str]) -> list[str]:
    """Return what is wrong with the crash points that a run of all components used."""
    faults = [
        f"{point} is excluded, but a process died there"
        for point in sorted(select_listed_points(EXCLUDED, totals.crashed))
    ]
    if totals.worlds >= LONG_RUN:
        faults += find_coverage_faults(points, totals.crashed, select_listed_points(RARE, points))
    return faults


def find_coverage_faults(points: Collection[str], crashed: Collection[str], rare: Collection[str]) -> list[str]:
    """Return what is wrong with the crash points that a long run used; no entry if nothing is wrong.

    Args:
        points: all crash points except the excluded ones.
        crashed: crash points at which a process died.
        rare: crash points that a long run may leave unused.
    """
    unused = sorted(set(points).difference(crashed))
    faults = [f"{point} is not listed as rare, but no process died there" for point in unused if point not in rare]
    used = len(points) - len(unused)
    if used < _LEAST_SHARE * len(points):
        faults.append(f"{used} of {len(points)} were used, which is less than {_LEAST_SHARE:.0%}")
    return faults


def _run_batches(batches: Iterator[Batch], totals: Totals, limits: SoakLimits) -> None:
    """Run each batch of worlds in a new process; if ``stops_at_violation`` is set, end at the first violation."""
    cores = os.process_cpu_count() or 1
    running: deque[AsyncResult[BatchSummary]] = deque()
    # A forked process needs no imports. The ended simulated processes of one batch take about 200 MB.
    with multiprocessing.get_context("fork").Pool(cores, maxtasksperchild=1) as pool:
        while not (totals.violations and limits.stops_at_violation):
            # Few batches wait, so that each knows what the ones before it have reached.
            for batch in islice(batches, cores + 1 - len(running)):
                aims = frozenset(_list_crash_points(totals.seen, batch.names) - totals.crashed)
                running.append(pool.apply_async(simulate_batch, (replace(batch, aims=aims),)))
            if not running:
                break
            totals.add(running.popleft().get())
        pool.terminate()
        pool.join()


def _list_batches(limits: SoakLimits, deadline: float, names: tuple[str, ...]) -> Iterator[Batch]:
    most = _WORLDS_BEFORE_A_STOP if limits.stops_at_violation else _WORLDS_OF_A_PROCESS
    size = min(most, -(-limits.worlds // (os.process_cpu_count() or 1)))
    for first in range(limits.first, limits.first + limits.worlds, size):
        if time.monotonic() > deadline:
            return
        yield Batch(first, min(size, limits.first + limits.worlds - first), names, deadline)


def _list_crash_points(seen: set[str], names: tuple[str, ...]) -> set[str]:
    """Return all crash points of the components (awaits, starts and ends of jobs) except the excluded ones."""
    components = [each for each in list_components() if not names or each.name in names]
    modules = {
        module for component in components for module in (*component.modules, *replace_modules(component.modules))
    }
    awaits = {
        aim
        for component in components
        for stores in (False, True)
        for aim in list_crash_points_in_code(component, with_cosmos=stores)
    }
    jobs = {point for point in seen if point.partition(":")[0] in modules}
    points = awaits | jobs
    return points - select_listed_points(EXCLUDED, points)
