"""Tests of a run of many simulated worlds: its reports, and the crash points that it must use."""

import pytest

from tests.simulation import __main__ as command
from tests.simulation.batch import BatchSummary
from tests.simulation.soak import Totals, find_coverage_faults

POINTS = {f"shared/module.py:{line}:0 await" for line in range(100)}


def test_a_long_run_that_used_all_crash_points_succeeds() -> None:
    """A run that used every crash point has no fault."""
    assert find_coverage_faults(POINTS, POINTS | {"commit before"}, set()) == []


def test_a_new_crash_point_without_a_crash_fails_a_long_run() -> None:
    """A crash point without a crash is a fault, unless it is listed as rare."""
    new = "shared/module.py:7:0 await"
    assert find_coverage_faults(POINTS, POINTS - {new}, {new}) == []
    faults = find_coverage_faults(POINTS, POINTS - {new}, {"shared/module.py:8:0 await"})
    assert faults == [f"{new} is not listed as rare, but no process died there"]


def test_a_long_run_uses_most_crash_points() -> None:
    """A run that used less than 95 % of the crash points has a fault, even if the others are listed as rare."""
    rare = set(sorted(POINTS)[:6])
    assert find_coverage_faults(POINTS, POINTS - set(sorted(rare)[:5]), rare) == []
    assert find_coverage_faults(POINTS, POINTS - rare, rare) == ["94 of 100 were used, which is less than 95%"]


def test_a_long_run_reports_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """A run prints the number of worlds so far after every 5,000 worlds, and each violation when it is found."""
    totals = Totals()
    for number in range(100):
        totals.add(BatchSummary(100, [("SEED=7", "a record is lost")] if number == 60 else [], set(), set()))
    assert capsys.readouterr().out.splitlines() == [
        "5000 worlds so far, 0 violations",
        "violation: make simulate SEED=7: a record is lost",
        "10000 worlds so far, 1 violations",
    ]


def test_the_command_rejects_arguments(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints its description for any argument, instead of starting a run of minutes."""
    monkeypatch.setattr("sys.argv", ["simulation", "--help"])
    assert command.main() == 2
    assert "MINUTES" in capsys.readouterr().out
