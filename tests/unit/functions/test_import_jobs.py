"""Tests of the orchestrator of imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions.import_jobs import history_import
from tests.unit.functions.orchestrations import Context, start_orchestrator

_SCRIPT = """
import asyncio, sys, threading
from contextlib import suppress
from types import SimpleNamespace
from functions import imports
from functions.import_jobs import import_fail, import_steps
from shared.wiring import services

loaded = {}

class Finder:
    def find_spec(self, name, path=None, target=None):
        loaded.setdefault(name, threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())

async def get_job(*_):
    return None

async def use_imports():
    services().imports.service = SimpleNamespace(get=get_job)
    call = SimpleNamespace(principal=None, path={"importId": "a1"}, body=imports.RemappingBody())
    calls = {"preview": lambda: imports.preview_import(call), "steps": lambda: import_steps("a1")}
    calls["fail"] = lambda: import_fail("a1")
    with suppress(Exception):
        await calls[sys.argv[1]]()
    await services().close()

asyncio.run(use_imports())
print(*(f"{name}:{loaded.get(name)}" for name in sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("call", "modules"),
    [
        ("preview", ("pyarrow", "shared.imports.preview")),
        ("steps", ("pyarrow", "shared.imports.work", "shared.imports.archive_writer", "shared.backends.azure.kusto")),
        ("fail", ("pyarrow", "shared.imports.work")),
    ],
)
def test_modules_of_imports_are_imported_outside_the_event_loop(
    tmp_path: Path, call: str, modules: tuple[str, ...]
) -> None:
    """A worker thread imports the modules of previews and steps, which use pyarrow, so that no request waits for it."""
    command = [sys.executable, "-c", _SCRIPT, call, *modules]
    environment = {**os.environ, "DATA_DIR": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [f"{name}:False" for name in modules]


def test_an_import_ends_after_its_last_step() -> None:
    """The orchestrator calls the activity until the job has ended, and waits while other jobs run."""
    context = Context()
    steps = start_orchestrator(history_import, context)
    assert next(steps) == "import_steps a1"
    assert steps.send("waiting") == "timer 0:00:02"
    assert steps.send(None) == "import_steps a1"
    assert steps.send("working") == "import_steps a1"
    with pytest.raises(StopIteration):
        steps.send("ended")
    assert not context.is_restarted


def test_a_failed_import_continues_until_its_open_step_is_complete() -> None:
    """After a failure the orchestrator restarts, so that an open step is completed."""
    context = Context()
    steps = start_orchestrator(history_import, context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the query table is not available")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.send(None)
    assert context.is_restarted


def test_an_import_continues_if_it_cannot_be_marked_as_failed() -> None:
    """If the job store is not available after a failure, the orchestrator restarts, so that the import continues."""
    context = Context()
    steps = start_orchestrator(history_import, context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the job store does not respond")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.throw(RuntimeError("the job store does not respond"))
    assert context.is_restarted
