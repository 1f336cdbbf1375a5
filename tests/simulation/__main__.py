"""Command ``make simulate``: runs many simulated worlds on all cores, or repeats the world of one seed.

``SEED=n`` replays the world of a seed and prints its trace. ``MINUTES`` limits the duration (default 10); ``WORLDS``
limits the number of worlds. ``COMPONENTS`` names the components of every world, separated by commas; by default, each
seed chooses its own. ``AIMS`` names the crash points at which a replayed world must crash, separated by semicolons.
``BATCH`` names a file that a run wrote for a violation; its worlds are repeated up to this violation, in one process.
``MUTANTS=1`` checks that each mutant in ``tests/simulation/mutants`` is found.

The command has no arguments; with any, it prints this text and returns 2.

The exit code is 0 if no invariant was violated and a run without ``COMPONENTS`` meets the rules of crash points in
``CONTRIBUTING.md``.
"""

import os
import sys
from pathlib import Path
from typing import Final

from tests.simulation.batch import Batch
from tests.simulation.exploration import Exploration, list_components, simulate_world
from tests.simulation.mutation import find_mutants
from tests.simulation.soak import SoakLimits, Totals, replay_batch, run_soak

_SHOWN: Final = 60


def main() -> int:
    """Run the command with the settings of the environment variables; return the exit code."""
    if len(sys.argv) > 1:
        print(__doc__)
        return 2
    names = tuple(filter(None, os.environ.get("COMPONENTS", "").split(",")))
    if seed := os.environ.get("SEED"):
        return _replay_world(int(seed), names)
    if file := os.environ.get("BATCH"):
        return _replay_batch(Path(file))
    worlds = int(os.environ.get("WORLDS") or 10**9)
    first = int(os.environ.get("FIRST") or 1)
    if os.environ.get("MUTANTS"):
        return find_mutants(min(worlds, 10_000), os.environ.get("MUTANT", ""))
    seconds = float(os.environ.get("MINUTES") or 10) * 60
    return run_soak(SoakLimits(seconds, worlds, first, bool(os.environ.get("STOP_AT_VIOLATION"))), names)


def _replay_batch(file: Path) -> int:
    totals = Totals()
    totals.add(replay_batch(Batch.load(file)))
    print(f"worlds {totals.worlds}, violations {totals.violations}")
    return bool(totals.violations)


def _replay_world(seed: int, names: tuple[str, ...]) -> int:
    known = {each.name: each for each in list_components()}
    aims = os.environ.get("AIMS")
    targets = None if aims is None else aims.split(";")
    result = simulate_world(seed, tuple(known[name] for name in names) or None, targets)
    print("\n".join(result.trace if os.environ.get("FULL") else shorten_trace(result)))
    print(f"seed {seed}: {result.violation or 'no violation'}, trace {result.digest}")
    return bool(result.violation)


def shorten_trace(result: Exploration) -> list[str]:
    """Return the last part of a world's trace without lines about thread-pool jobs."""
    return [line for line in result.trace if " job " not in line][-_SHOWN:]


if __name__ == "__main__":
    sys.exit(main())
