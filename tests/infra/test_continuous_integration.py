"""Tests of the script for continuous integration, with fakes of its tools."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_ci(folder: Path, *tools: str, can_install: bool = True, can_check: bool = True) -> tuple[int, list[str]]:
    """Run ``.ci/run`` with fakes of only the given tools; return the exit code and the calls of tools in order."""
    calls = folder / "calls"
    calls.touch()
    for tool in ("bash", "env", "dirname"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    stand_ins = {
        "make": 0 if can_check else 2,
        "apt-get": 0 if can_install else 100,
        "id": 0,
        **dict.fromkeys(tools, 0),
    }
    for tool, code in stand_ins.items():
        (folder / tool).write_text(
            f'#!/bin/bash\n[ {tool} = id ] && echo 0 || echo "{tool} $*" >> {calls}\nexit {code}\n'
        )
        (folder / tool).chmod(0o755)
    done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(folder)}, check=False, timeout=60)
    return done.returncode, calls.read_text().splitlines()


TEST = "make test ARGS=--require-all"
SHELL = "chromium-headless-shell"
CHECKS = [
    "make -j 2 .venv/dev.installed console/node_modules/installed",
    "make -j 3 --output-sync=target check-code test-tools package-test",
    TEST,
]


@pytest.mark.parametrize("chromium", ["chromium", "chromium-browser", "google-chrome"])
def test_ci_fails_if_a_test_is_skipped(tmp_path: Path, chromium: str) -> None:
    """If a browser and a broker exist, checks and tests run, and each skipped test fails the run."""
    assert run_ci(tmp_path, chromium, SHELL, "mosquitto") == (0, CHECKS)


@pytest.mark.parametrize(
    ("present", "installed"),
    [
        ((), ["chromium mosquitto", SHELL]),
        (("chromium", SHELL), ["mosquitto"]),
        (("chromium", "mosquitto"), [SHELL]),
        (("mosquitto", SHELL), ["chromium"]),
    ],
)
def test_ci_installs_missing_tools(tmp_path: Path, present: tuple[str, ...], installed: list[str]) -> None:
    """The script installs a missing browser or broker before the tests."""
    code, calls = run_ci(tmp_path, *present)
    assert (code, [call for call in calls if call.startswith("make")]) == (0, CHECKS)
    assert not any(call.startswith("apt-get") for call in calls[calls.index(TEST) :])
    assert [text for call in calls if (text := call.partition("--no-install-recommends ")[2])] == installed


def test_without_a_headless_shell_the_tests_use_chromium(tmp_path: Path) -> None:
    """If the distribution has no headless shell, the tests use the complete Chromium."""
    code, calls = run_ci(tmp_path, "chromium", "mosquitto", can_install=False)
    assert (code, [call for call in calls if call.startswith("make")]) == (0, CHECKS)


def test_ci_fails_if_a_missing_tool_cannot_be_installed(tmp_path: Path) -> None:
    """The script fails before the tests if a missing tool cannot be installed."""
    code, calls = run_ci(tmp_path, can_install=False)
    assert code != 0
    assert TEST not in calls


def test_ci_waits_for_the_installation_if_a_check_fails(tmp_path: Path) -> None:
    """If a check fails, the script fails, but an installation that has begun is not left behind."""
    code, calls = run_ci(tmp_path, can_check=False)
    assert code != 0
    assert TEST not in calls
    assert f"apt-get install -y -qq --no-install-recommends {SHELL}" in calls
