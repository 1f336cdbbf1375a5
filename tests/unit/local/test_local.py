"""Tests that the command ``python -m local`` imports the host with little work."""

import subprocess
import sys

from tests.service.local_service import ROOT


def test_garbage_collection_ignores_the_imported_host() -> None:
    """When the host runs, garbage collection is enabled, and ignores the objects of imported modules."""
    code = (
        "import gc, local.__main__, local.command; "
        "local.command.main = lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000); local.__main__.main()"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "True True\n"
