"""Tests that the command ``python -m emulators.kusto`` imports the emulator with little work."""

import subprocess
import sys

from tests.service.local_service import ROOT


def test_garbage_collection_ignores_the_imported_emulator() -> None:
    """When the emulator runs, garbage collection is enabled, and ignores the objects of imported modules."""
    code = (
        "import gc, sys, types, emulators.kusto.__main__ as command; "
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000, flush=True); gc.unfreeze(); "
        "process = types.ModuleType('process'); "
        "process.main = lambda forked: print(gc.isenabled(), gc.get_freeze_count() > 10_000); "
        "sys.modules['emulators.kusto.process'] = process; command.main()"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "True True\nTrue True\n"
