"""Tests of batches of simulated worlds: their files, and what they report about a violation."""

from pathlib import Path

import pytest

from tests.simulation import batch as batch_module
from tests.simulation.batch import Batch, simulate_batch
from tests.simulation.exploration import Exploration
from tests.simulation.world import CrashPoints


def test_a_saved_batch_is_loaded_with_the_worlds_up_to_the_violation(tmp_path: Path) -> None:
    """A loaded batch has the seeds, components and aims of the saved one, and no deadline."""
    batch = Batch(100, 50, ("oauth",), deadline=1.0, aims=frozenset({"shared/a.py:1:0 await", "commit before"}))
    assert Batch.load(batch.save(tmp_path, 7)) == Batch(100, 7, ("oauth",), aims=batch.aims)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_violation_that_is_not_repeated_names_the_file_of_its_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_repeatable: bool
) -> None:
    """If the trace of a world with a violation differs when it is repeated, the report names a file with its batch."""
    traces = iter(["first", "first" if is_repeatable else "second"])

    def simulate_world(seed: int, *_: object) -> Exploration:
        if seed != 12:
            return Exploration(seed, "", [], CrashPoints())
        return Exploration(seed, "a record is lost", [next(traces)], CrashPoints())

    monkeypatch.setattr(batch_module, "simulate_world", simulate_world)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    summary = simulate_batch(Batch(10, 5, ("oauth",)))
    file = tmp_path / "simulation-batch-10.json"
    expected = "SEED=12 COMPONENTS=oauth" + ("" if is_repeatable else f" (not repeated; BATCH={file} repeats all)")
    assert (summary.worlds, summary.violations) == (5, [(expected, "a record is lost")])
    assert file.exists() is not is_repeatable
    if not is_repeatable:
        assert Batch.load(file) == Batch(10, 3, ("oauth",))
