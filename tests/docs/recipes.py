"""Helpers that read the code blocks of a page and run them."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.service.local_service import ROOT, Service

PAGES = ROOT / "docs" / "how-to" / "connect"
CLIENTS = ROOT / ".venv-clients" / "bin" / "python"
"""Python with the packages of requirements/clients.txt."""


def explain_missing_programs() -> str:
    """Return the reason why the programs of API users cannot run, or an empty text if they can."""
    return "" if CLIENTS.exists() else "the programs of API users are not installed: run `make .venv-clients/installed`"


def read_blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in one language, in order."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def read_token(plant: Service, member: str = "editor@plant-a.example") -> str:
    """Return a token of a member of the sample workspace."""
    return plant.create_client(member).headers["Authorization"].removeprefix("Bearer ")


def run_program(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run a program in a folder and return its output; fail if the program fails."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **(variables or {})}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
