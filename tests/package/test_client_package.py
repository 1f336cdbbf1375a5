"""Tests that the client can be installed from its wheel without the packages of the service."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.test_package import OWN, list_server_packages
from tests.service.local_service import ROOT

pytestmark = pytest.mark.package

OLDEST = "3.11"


def find_pythons() -> list[str]:
    """Return this Python and, if installed, the oldest Python that the client supports."""
    oldest = shutil.which(f"python{OLDEST}")
    probe = [oldest or "false", "-c", "import ensurepip, venv"]
    return [sys.executable, *([oldest] if oldest and subprocess.run(probe, check=False).returncode == 0 else [])]


def run_command(*command: str | Path) -> str:
    """Run a command outside of the checkout; return its output."""
    done = subprocess.run(list(map(str, command)), cwd="/", capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the client's wheel, built from a copy of the repository that contains only the client's files."""
    folder = tmp_path_factory.mktemp("client")
    copy = folder / "source"
    shutil.copytree(ROOT / "client", copy, ignore=shutil.ignore_patterns("__pycache__"))
    run_command(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy)
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.parametrize("python", find_pythons(), ids=lambda path: Path(path).name)
def test_all_commands_work_with_only_the_wheel_installed(client_wheel: Path, tmp_path: Path, python: str) -> None:
    """In an empty environment, the wheel installs only the client's requirements, and all `oi` commands work."""
    run_command(python, "-m", "venv", tmp_path / "venv")
    installed = tmp_path / "venv" / "bin"
    run_command(installed / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", client_wheel)
    listed = json.loads(
        run_command(installed / "python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check")
    )
    names = {each["name"].lower() for each in listed}
    assert "oi-client" in names
    assert not (names & list_server_packages()) - OWN
    assert "pydantic" not in names
    assert "verify-file" in run_command(installed / "oi", "--help")
    assert "--checkpoint" in run_command(installed / "oi", "verify-file", "--help")
    run_command(installed / "python", "-c", "from oi import *; import oi.models, oi.replay.sending, oi.cli.replay")
