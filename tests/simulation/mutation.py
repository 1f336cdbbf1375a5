"""Mutants: patches with known defects, applied to a copy of the code to prove that the simulation finds them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MUTANTS: Final = Path(__file__).parent / "mutants"
_COPIED: Final = ("shared", "emulators", "functions", "tests/simulation", "tests/virtual_time.py", "pyproject.toml")
_WORLDS: Final = re.compile(r"^worlds (\d+), violations [1-9]", re.MULTILINE)


def list_mutants() -> list[Path]:
    """Return all patches; the first line of a patch names its components and the defect that their worlds find."""
    return sorted(MUTANTS.glob("*.patch"))


def read_components(patch: Path) -> str:
    """Return the names of the components whose worlds find the mutant of a patch, separated by commas."""
    return patch.read_text(encoding="utf-8").split(maxsplit=1)[0].rstrip(":")


def apply_mutant(patch: Path, folder: Path, *, is_reverse: bool = False) -> bool:
    """Apply a patch to a copy of the code; return False if the code around a change differs from the patch.

    Args:
        patch: the patch.
        folder: folder of the copy.
        is_reverse: whether the change is taken back.
    """
    options = ["--strip=1", "--fuzz=0", "--batch", "--silent", "--no-backup-if-mismatch"]
    command = ["patch", *options, f"--input={patch}"]
    if is_reverse:
        command.append("--reverse")
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def copy_code(folder: Path) -> None:
    """Copy the code that the simulation needs, and its byte code, into a folder."""
    for name in _COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def find_mutants(max_worlds: int, only: str = "") -> int:
    """Simulate worlds with each mutant until a violation is found; print a summary and return the exit code.

    Args:
        max_worlds: number of worlds after which a mutant counts as not found.
        only: name of the only mutant to run; empty for all.
    """
    mutants = [patch for patch in list_mutants() if only in ("", patch.stem)]
    found = 0
    for patch in mutants:
        try:
            worlds = _run_mutant(patch, max_worlds)
        except RuntimeError as error:
            print(f"{patch.stem}: not simulated: {error}", flush=True)
            continue
        found += worlds > 0
        print(f"{patch.stem}: {f'found within {worlds} worlds' if worlds else 'not found'}", flush=True)
    print(f"mutants found {found} of {len(mutants)}")
    return int(found < len(mutants))


def _run_mutant(patch: Path, max_worlds: int) -> int:
    """Return how many worlds were simulated until a violation was found; 0 if none was found."""
    with tempfile.TemporaryDirectory(prefix="simulation-mutant-") as name:
        folder = Path(name)
        copy_code(folder)
        if not apply_mutant(patch, folder):
            raise RuntimeError("the patch does not apply to the current code")
        environment = {
            **os.environ,
            "COMPONENTS": read_components(patch),
            "PYTHONPATH": name,
            "STOP_AT_VIOLATION": "1",
            "WORLDS": str(max_worlds),
            "MINUTES": "60",
        }
        environment.pop("MUTANTS", None)
        command = [sys.executable, "-m", "tests.simulation"]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode and not _WORLDS.search(ended.stdout):
        raise RuntimeError(f"no world ended: {ended.stderr[-2000:]}")
    found = _WORLDS.search(ended.stdout)
    return int(found[1]) if found else 0
