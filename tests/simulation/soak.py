"""Exploration of many worlds on all cores, in processes that are replaced before they have collected too much."""

import gc
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.cosmos_world import replace_modules
from tests.simulation.environment import make_template, prepare_process
from tests.simulation.exploration import Exploration, explore, list_aims, list_components

EXCLUDED: Final = Path(__file__).parent / "excluded_crash_points.txt"
"""Crash points that no world reaches, each with the reason."""
_WORLDS_OF_A_PROCESS: Final = 100
_WORLDS_BEFORE_A_STOP: Final = 20
_SHOWN_VIOLATIONS: Final = 20


@dataclass(frozen=True)
class Limits:
    """Limits of an exploration.

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


@dataclass(frozen=True)
class BatchSummary:
    """Result of a batch of worlds.

    Attributes:
        worlds: number of worlds.
        violations: seed and text of each violation.
        seen: sides of thread-pool jobs that were reached.
        crashed: crash points at which a process died.
    """

    worlds: int
    violations: list[tuple[int, str]]
    seen: set[str]
    crashed: set[str]


def explore_batch(batch: tuple[int, int, tuple[str, ...], float]) -> BatchSummary:
    """Run the worlds of a range of seeds.

    Args:
        batch: first seed, number of seeds, the names of the components of every world (none for the seeds' own), and
            the time of the monotonic clock at which the batch ends early.
    """
    first, size, names, deadline = batch
    chosen = tuple(each for each in list_components() if each.name in names) or None
    violations: list[tuple[int, str]] = []
    seen: set[str] = set()
    crashed: set[str] = set()
    worlds = 0
    for seed in range(first, first + size):
        if time.monotonic() > deadline:
            break
        worlds += 1
        result: Exploration = explore(seed, chosen)
        seen |= result.points.seen
        crashed |= result.points.crashed
        if result.violation:
            violations.append((seed, result.violation))
    return BatchSummary(worlds, violations, seen, crashed)


def run_soak(limits: Limits, names: tuple[str, ...] = ()) -> int:
    """Explore worlds until a limit is reached, and print a summary as the last line; return the exit code.

    Args:
        limits: limits of the exploration.
        names: components of every world; none for those that the seeds choose.
    """
    prepare_process()
    for with_cosmos in (False, True):
        make_template(with_cosmos=with_cosmos)
    # Worker processes share the memory of the imported modules, which a collection would copy.
    gc.collect()
    gc.freeze()
    started = time.monotonic()
    worlds, violations = 0, 0
    seen: set[str] = set()
    crashed: set[str] = set()
    cores = os.process_cpu_count() or 1
    # A forked process needs no imports; one batch of worlds collects about 100 MB of dead processes.
    with multiprocessing.get_context("fork").Pool(cores, maxtasksperchild=1) as pool:
        for summary in pool.imap_unordered(explore_batch, _list_batches(limits, started + limits.seconds, names)):
            worlds += summary.worlds
            seen |= summary.seen
            crashed |= summary.crashed
            for seed, text in summary.violations:
                violations += 1
                if violations <= _SHOWN_VIOLATIONS:
                    print(f"violation: make simulate SEED={seed}: {text}", flush=True)
            has_failed = violations > 0 and limits.stops_at_violation
            if has_failed or time.monotonic() - started > limits.seconds:
                break
        pool.terminate()
        pool.join()
    points = _list_points(seen, names)
    for point in sorted(points - crashed):
        print(f"no crash at {point}")
    elapsed = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{worlds / elapsed:.1f} worlds per second, {worlds / (used.ru_utime + used.ru_stime):.1f} per CPU second")
    print(f"worlds {worlds}, violations {violations}, crash points {len(points & crashed)} of {len(points)}")
    return int(violations > 0)


def _list_batches(
    limits: Limits, deadline: float, names: tuple[str, ...]
) -> Iterator[tuple[int, int, tuple[str, ...], float]]:
    most = _WORLDS_BEFORE_A_STOP if limits.stops_at_violation else _WORLDS_OF_A_PROCESS
    size = min(most, -(-limits.worlds // (os.process_cpu_count() or 1)))
    for first in range(limits.first, limits.first + limits.worlds, size):
        yield first, min(size, limits.first + limits.worlds - first), names, deadline


def _list_points(seen: set[str], names: tuple[str, ...]) -> set[str]:
    """Return the awaits of the components and the sides of their jobs, without the excluded ones."""
    components = [each for each in list_components() if not names or each.name in names]
    modules = {
        module for component in components for module in (*component.modules, *replace_modules(component.modules))
    }
    awaits = {
        aim for component in components for stores in (False, True) for aim in list_aims(component, with_cosmos=stores)
    }
    jobs = {point for point in seen if point.partition(":")[0] in modules}
    return (awaits | jobs) - read_excluded()


def read_excluded() -> set[str]:
    """Return the crash points that the file of exclusions names."""
    lines = EXCLUDED.read_text(encoding="utf-8").splitlines()
    return {line.partition("  #")[0].strip() for line in lines if line and not line.startswith("#")}
