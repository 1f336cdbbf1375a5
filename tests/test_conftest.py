"""Tests of the summary line about skipped tests and of the option that makes them fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PASSES = "def test_a(): pass\n"
SKIPS = """import pytest
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.skipif(True, reason="Tool A is not installed (get it)")
def test_b(number): pass
def test_c():
    pytest.skip("Tool B is not installed (fetch it)")
"""


def run_pytest(folder: Path, source: str, *options: str) -> tuple[int, str]:
    """Run pytest with this test source in a separate process; return the exit code and the output."""
    path = folder / "test_some.py"
    path.write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-c", str(folder / "pytest.ini"), "-q", "-p", "xdist.plugin"]
    command += ["-p", "tests.conftest", "-p", "no:cacheprovider", *options, str(path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [("-n", "0"), ("-n", "2")], ids=["one process", "workers"])
def test_skipped_tests_are_counted_by_reason(tmp_path: Path, workers: tuple[str, str]) -> None:
    """One summary line says how many tests were skipped and how to install the missing tools."""
    code, output = run_pytest(tmp_path, PASSES + SKIPS, *workers)
    lines = [line for line in output.splitlines() if line.startswith("tests left out")]
    assert lines == ["tests left out: 2 (Tool A is not installed (get it)); 1 (Tool B is not installed (fetch it))"]
    assert code == 0
    assert run_pytest(tmp_path, PASSES + SKIPS, *workers, "--require-all")[0] == 1


def test_a_run_without_skipped_tests_prints_no_line(tmp_path: Path) -> None:
    """With --require-all, a run without skipped tests succeeds and prints no line about skipped tests."""
    code, output = run_pytest(tmp_path, PASSES, "--require-all")
    assert code == 0
    assert "left out" not in output
