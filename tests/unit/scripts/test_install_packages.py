"""Tests of the script that installs packages into a virtual environment."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "install-packages"
VERSION = (ROOT / "requirements" / "constraints-uv.txt").read_text(encoding="utf-8").strip().removeprefix("uv==")
WITH_UV = "uv pip install --quiet --compile-bytecode --python {python} --no-compile -r some.txt"
WITH_PIP = "python -m pip install --quiet --disable-pip-version-check --no-compile -r some.txt"
UV = f"""#!/bin/sh
if [ "$1" = --version ]; then echo "uv {VERSION} (x86_64)"; else echo "uv $*"; exit $UV_EXIT_CODE; fi
"""
PYTHON = """#!/bin/sh
case "$*" in
  "-m pip config list") echo "$PIP_CONFIGURATION" ;;
  *without-pip*) exit 1 ;;
  *) echo "python $*" ;;
esac
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a folder whose ``bin/python`` prints its arguments and cannot create virtual environments."""
    write_program(tmp_path / "environment" / "bin" / "python", PYTHON)
    return tmp_path / "environment"


def write_program(path: Path, text: str) -> None:
    """Write an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def install(environment: Path, *, uv: str = UV, uv_exit_code: int = 0, pip_configuration: str = "") -> str:
    """Install a package with the script; return the last line of its output.

    Args:
        environment: folder of the virtual environment.
        uv: text of the program uv; empty if uv is missing.
        uv_exit_code: exit code of uv.
        pip_configuration: output of ``pip config list``.
    """
    folder = environment.parent / "uv"
    if uv:
        write_program(folder / "bin" / "uv", uv)
    settings = {
        "INSTALLER_FOLDER": str(folder),
        "UV_EXIT_CODE": str(uv_exit_code),
        "PIP_CONFIGURATION": pip_configuration,
    }
    done = subprocess.run(
        [SCRIPT, environment, "--no-compile", "-r", "some.txt"],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.splitlines()[-1]


def test_uv_installs_the_packages(environment: Path) -> None:
    """If uv succeeds, pip is not started."""
    assert install(environment) == WITH_UV.format(python=environment / "bin" / "python")


def test_pip_installs_the_packages_if_uv_fails(environment: Path) -> None:
    """If uv fails, pip installs the packages."""
    assert install(environment, uv_exit_code=2) == WITH_PIP


def test_pip_installs_the_packages_if_uv_cannot_be_installed(environment: Path) -> None:
    """If uv is missing and cannot be installed, pip installs the packages."""
    assert install(environment, uv="") == WITH_PIP


def test_another_version_of_uv_is_not_used(environment: Path) -> None:
    """If the installed uv does not have the pinned version, and cannot be replaced, pip installs the packages."""
    assert install(environment, uv=UV.replace(VERSION, "0.0.1")) == WITH_PIP


@pytest.mark.parametrize("setting", ["index-url='https://mirror.example/simple'", "no-index='true'", "proxy='x:1'"])
def test_a_configured_package_index_is_used(environment: Path, setting: str) -> None:
    """If pip is configured for another package index or a proxy, pip installs the packages: uv would use PyPI."""
    assert install(environment, pip_configuration=f"global.{setting}") == WITH_PIP


def test_an_additional_package_index_does_not_prevent_the_use_of_uv(environment: Path) -> None:
    """If pip only knows a package index in addition to PyPI, uv installs the packages: all pins are on PyPI."""
    configuration = "global.extra-index-url='file:///opt/simple'"
    assert install(environment, pip_configuration=configuration).startswith("uv ")
