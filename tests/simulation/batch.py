"""Batches of simulated worlds, which one process simulates one after the other."""

import gc
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.exploration import Exploration, choose_components, list_components, simulate_world

_WORLDS_FOR_UNUSED_POINTS: Final = 20
"""One world of this number gets components with many unused crash points; not more, because they are expensive."""


@dataclass(frozen=True)
class Batch:
    """Range of seeds whose worlds one process simulates.

    Attributes:
        first: first seed.
        size: number of worlds.
        names: components of every world; none for those that the seeds choose.
        deadline: time of the monotonic clock at which the batch ends early; None if it does not.
        aims: crash points at which no process has died so far in this run.
    """

    first: int
    size: int
    names: tuple[str, ...] = ()
    deadline: float | None = None
    aims: frozenset[str] = frozenset()

    def save(self, folder: Path, size: int) -> Path:
        """Write the batch, up to a number of worlds, into a file of a folder, and return the file."""
        file = folder / f"simulation-batch-{self.first}-{size}.json"
        content = {"first": self.first, "size": size, "names": self.names, "aims": sorted(self.aims)}
        file.write_text(json.dumps(content), encoding="utf-8")
        return file

    @classmethod
    def load(cls, file: Path) -> "Batch":
        """Return the batch of a file that ``save`` wrote."""
        content = json.loads(file.read_text(encoding="utf-8"))
        names, aims = tuple(content["names"]), frozenset(content["aims"])
        return cls(content["first"], content["size"], names, aims=aims)


@dataclass(frozen=True)
class BatchSummary:
    """Result of the worlds of one batch.

    Attributes:
        worlds: number of worlds.
        violations: arguments that replay each violation, and its text.
        seen: sides of thread-pool jobs that were reached.
        crashed: crash points at which a process died.
    """

    worlds: int
    violations: list[tuple[str, str]]
    seen: set[str]
    crashed: set[str]


def simulate_batch(batch: Batch) -> BatchSummary:
    """Simulate the worlds of a range of seeds; every second world aims at crash points that were not used yet."""
    # The process ends after the batch. Until then, dead processes fill its memory, and a collection could free nothing.
    gc.set_threshold(0)
    chosen = tuple(each for each in list_components() if each.name in batch.names) or None
    violations: list[tuple[str, str]] = []
    seen: set[str] = set()
    crashed: set[str] = set()
    worlds = 0
    for seed in range(batch.first, batch.first + batch.size):
        if batch.deadline is not None and time.monotonic() > batch.deadline:
            break
        worlds += 1
        aims = batch.aims - crashed if seed % 2 == 1 else None
        components = chosen
        if chosen is None and aims is not None and seed % _WORLDS_FOR_UNUSED_POINTS == 1:
            components = choose_components(seed, aims)
        result = simulate_world(seed, components, aims)
        seen |= result.points.seen
        crashed |= result.points.crashed
        if result.violation:
            names = [] if components is None else [each.name for each in components]
            arguments = _build_arguments(result, names, is_aimed=aims is not None)
            # Should the world alone not repeat it, the worlds before it in this process may have taken part.
            arguments += f" (or BATCH={batch.save(Path(tempfile.gettempdir()), worlds)})"
            violations.append((arguments, result.violation))
    return BatchSummary(worlds, violations, seen, crashed)


def _build_arguments(result: Exploration, names: Sequence[str], *, is_aimed: bool) -> str:
    """Return the arguments of ``make simulate`` that repeat a world with only the crash points that it used.

    Args:
        result: result of the world.
        names: components of the world in their order; empty if its seed chose them.
        is_aimed: whether the world aimed at given crash points.
    """
    components = f" COMPONENTS={','.join(names)}" if names else ""
    aims = f" AIMS='{';'.join(result.points.aimed)}'" if is_aimed else ""
    return f"SEED={result.seed}{components}{aims}"
