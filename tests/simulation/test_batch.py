"""Tests of batches of simulated worlds: their files, and what they report about a violation."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.simulation import batch as batch_module
from tests.simulation.batch import Batch, simulate_batch
from tests.simulation.exploration import Exploration
from tests.simulation.world import CrashPoints


def test_a_saved_batch_is_loaded_with_the_worlds_up_to_the_violation(tmp_path: Path) -> None:
    """A loaded batch has the seeds, components and aims of the saved one, and no deadline."""
    batch = Batch(100, 50, ("oauth",), deadline=1.0, aims=frozenset({"shared/a.py:1:0 await", "commit before"}))
    assert Batch.load(batch.save(tmp_path, 7)) == Batch(100, 7, ("oauth",), aims=batch.aims)


def test_a_violation_names_the_file_of_its_batch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The report of a violation names a file with the worlds of its process up to this violation."""

    def simulate_world(seed: int, *_: object) -> Exploration:
        return Exploration(seed, "a record is lost" if seed == 12 else "", [], CrashPoints())

    monkeypatch.setattr(batch_module, "simulate_world", simulate_world)
    monkeypatch.setattr(batch_module, "gc", SimpleNamespace(set_threshold=lambda _: None))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    summary = simulate_batch(Batch(10, 5, ("oauth",)))
    file = tmp_path / "simulation-batch-10-3.json"
    assert summary.worlds == 5
    assert summary.violations == [(f"SEED=12 COMPONENTS=oauth (or BATCH={file})", "a record is lost")]
    assert Batch.load(file) == Batch(10, 3, ("oauth",))
