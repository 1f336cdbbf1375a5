"""Tests of the script that installs packages into a virtual environment."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "install-packages"


def write_program(path: Path, exit_code: int = 0) -> Path:
    """Write a program that prints its name and arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{path.name} $*"\nexit {exit_code}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def install(folder: Path, uv: Path) -> list[str]:
    """Install a package with the script; return its output by lines."""
    done = subprocess.run(
        [SCRIPT, folder, "--no-compile", "-r", "some.txt"],
        env={**os.environ, "UV": str(uv)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.splitlines()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a folder whose ``bin/python`` prints its arguments."""
    write_program(tmp_path / "environment" / "bin" / "python")
    return tmp_path / "environment"


def test_uv_installs_the_packages(environment: Path, tmp_path: Path) -> None:
    """If uv succeeds, pip is not started."""
    uv = write_program(tmp_path / "uv")

    assert install(environment, uv) == [
        f"uv pip install --quiet --compile-bytecode --python {environment}/bin/python --no-compile -r some.txt"
    ]


def test_pip_installs_the_packages_if_uv_fails(environment: Path, tmp_path: Path) -> None:
    """If uv fails, for example because only pip knows the package index, pip installs the packages."""
    uv = write_program(tmp_path / "uv", exit_code=2)

    assert install(environment, uv)[-1] == (
        "python -m pip install --quiet --disable-pip-version-check --no-compile -r some.txt"
    )


def test_pip_installs_the_packages_without_uv(environment: Path, tmp_path: Path) -> None:
    """Without uv, pip installs the packages."""
    assert install(environment, tmp_path / "uv") == [
        "python -m pip install --quiet --disable-pip-version-check --no-compile -r some.txt"
    ]
