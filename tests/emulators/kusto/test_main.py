"""Tests of the command ``python -m emulators.kusto``: its log level, and that it imports with little work."""

import subprocess
import sys
from pathlib import Path

import pytest

from emulators.kusto import process
from tests.service.local_service import ROOT


def test_an_unknown_log_level_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If LOG_LEVEL is not a log level, the emulator does not start, and names the setting."""
    monkeypatch.setenv("LOG_LEVEL", "Information")
    monkeypatch.setattr(sys, "argv", ["emulators.kusto", "--data", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"LOG_LEVEL must be DEBUG, INFO, .* not 'Information'"):
        process.main(None)


def test_garbage_collection_ignores_the_imported_emulator() -> None:
    """When the emulator runs, garbage collection is enabled, and ignores the objects of imported modules."""
    code = (
        "import gc, sys, types, emulators.kusto.__main__ as command; "
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000, flush=True); gc.unfreeze(); "
        "process = types.ModuleType('process'); "
        "process.main = lambda forked: print(gc.isenabled(), gc.get_freeze_count() > 10_000); "
        "sys.modules['emulators.kusto.process'] = process; command.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "True True\nTrue True\n"
