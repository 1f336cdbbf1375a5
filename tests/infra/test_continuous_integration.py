"""The script of continuous integration, with stand-ins for its tools."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(folder: Path, *, chromium: str = "", installs: bool = True) -> tuple[int, list[str]]:
    """Run ``.ci/run`` where only some tools exist; return the exit code and the calls of tools, in order."""
    calls = folder / "calls"
    calls.touch()
    for tool in ("bash", "env", "dirname"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    stand_ins = {"make": 0, "apt-get": 0 if installs else 100, "id": 0, **({chromium: 0} if chromium else {})}
    for tool, code in stand_ins.items():
        (folder / tool).write_text(
            f'#!/bin/bash\n[ {tool} = id ] && echo 0 || echo "{tool} $*" >> {calls}\nexit {code}\n'
        )
        (folder / tool).chmod(0o755)
    done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(folder)}, check=False, timeout=60)
    return done.returncode, calls.read_text().splitlines()


@pytest.mark.parametrize("chromium", ["chromium", "chromium-browser", "google-chrome"])
def test_every_test_is_required(tmp_path: Path, chromium: str) -> None:
    """With a browser, checks and tests run, and a skipped test is a failure."""
    assert run(tmp_path, chromium=chromium) == (
        0,
        ["make check", "make test ARGS=--require-all", "make package-test"],
    )


def test_browser_is_installed_or_the_run_fails(tmp_path: Path) -> None:
    """Without a browser it is installed first; if that fails, the run fails."""
    (tmp_path / "with").mkdir()
    code, calls = run(tmp_path / "with")
    assert (code, calls[1].split()[-1], calls[2]) == (0, "chromium", "make check")
    (tmp_path / "without").mkdir()
    code, calls = run(tmp_path / "without", installs=False)
    assert code != 0
    assert all(call.startswith("apt-get") for call in calls)
