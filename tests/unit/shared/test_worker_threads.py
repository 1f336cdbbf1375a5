"""Tests of work on large texts in worker threads."""

import asyncio
import gc
import importlib
import sys
import threading
from pathlib import Path

import pytest

from shared.worker_threads import LARGE, LARGE_VALUES, load_modules, pause_garbage_collection, run_in_worker


def test_large_work_runs_in_a_thread() -> None:
    """A function on a large text runs in another thread, on a small text in the event loop."""

    async def threads() -> tuple[int, int]:
        return await run_in_worker(LARGE - 1, threading.get_ident), await run_in_worker(LARGE, threading.get_ident)

    small, large = asyncio.run(threads())
    assert small == threading.get_ident() != large


def test_arguments_and_errors_are_passed_through() -> None:
    """The function receives all arguments, and its error reaches the caller."""
    assert asyncio.run(run_in_worker(LARGE, int, "ff", base=16)) == 255
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(run_in_worker(LARGE, int, "x"))


def test_garbage_collection_resumes_after_the_last_pause() -> None:
    """Garbage collection is paused while a large text is in use; a small text pauses nothing."""
    with pause_garbage_collection(LARGE_VALUES - 1):
        assert gc.isenabled()
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_long_overlapping_pauses_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """If pauses overlap for too long, garbage collection resumes during a pause."""
    monkeypatch.setattr("shared.worker_threads._LONGEST_PAUSE_SECONDS", -1.0)
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert gc.isenabled()


async def test_module_is_imported_outside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is imported once, in another thread, and a failed import can be repeated."""
    source = tmp_path / "module_of_a_test.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError):
        await load_modules("module_of_a_test")
    source.write_text("import threading\nTHREAD = threading.get_ident()\n")
    importlib.invalidate_caches()
    await asyncio.gather(load_modules("module_of_a_test"), load_modules("module_of_a_test"))
    assert threading.get_ident() != sys.modules["module_of_a_test"].THREAD
    del sys.modules["module_of_a_test"]
