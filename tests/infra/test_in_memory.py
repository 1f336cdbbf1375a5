"""Tests of the script that keeps the temporary files of a command in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINT_FOLDER = "import os, tempfile; print(tempfile.gettempdir()); raise SystemExit(7)"
MOUNTS = Path("/proc/mounts")
HAS_MEMORY_FOLDER = MOUNTS.exists() and any(
    " /dev/shm " in line and "noexec" not in line for line in MOUNTS.read_text().splitlines()
)


def run_in_memory(folder: Path, shm: str, memory: str, **environment: str) -> Path:
    """Run a command that prints its temporary folder, on a machine with so many free gigabytes; return the folder."""
    for tool, printed in (("df", f"Avail\n{shm}"), ("awk", memory)):
        (folder / tool).write_text(f"#!/bin/sh\nprintf '%s\\n' '{printed}'\n")
        (folder / tool).chmod(0o755)
    names = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    done = subprocess.run(
        [ROOT / "scripts" / "in-memory", sys.executable, "-c", PRINT_FOLDER],
        env={**names, "PATH": f"{folder}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")
    return Path(done.stdout.strip())


@pytest.mark.skipif(not HAS_MEMORY_FOLDER, reason="the machine has no folder for programs in memory")
def test_temporary_files_are_in_memory_and_removed_at_the_end(tmp_path: Path) -> None:
    """With enough free memory, the temporary folder is in memory, and is removed when the command ends."""
    used = run_in_memory(tmp_path, shm=" 8", memory="12")
    assert used.parent == Path("/dev/shm")
    assert not used.exists()


@pytest.mark.parametrize(("shm", "memory"), [("7", "12"), ("8", "11"), ("", "12"), ("8", "")])
def test_temporary_files_are_on_disk_without_enough_memory(tmp_path: Path, shm: str, memory: str) -> None:
    """If memory is short or its size unknown, the command uses the usual folder."""
    assert Path("/dev/shm") not in run_in_memory(tmp_path, shm, memory).parents


def test_a_chosen_folder_is_used(tmp_path: Path) -> None:
    """If TMPDIR is set, the command uses that folder."""
    assert run_in_memory(tmp_path, "100", "100", TMPDIR=str(tmp_path)) == tmp_path
