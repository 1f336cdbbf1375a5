"""Tests that the synchronous client is generated from the asyncio client."""

import subprocess
import sys
from pathlib import Path

from tests.service.local_service import ROOT


def test_the_generated_synchronous_client_is_up_to_date() -> None:
    """The committed package oi._sync equals the output of its generator."""
    command: list[str | Path] = [sys.executable, ROOT / "client" / "scripts" / "make_sync.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"run client/scripts/make_sync.py: {run.stdout}{run.stderr}"
