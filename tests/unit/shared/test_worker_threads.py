"""Work on large texts leaves the event loop."""

import asyncio
import gc
import importlib
import sys
import threading
from pathlib import Path

import pytest

from shared.worker_threads import LARGE, LARGE_VALUES, load_modules, pause_garbage_collection, run_in_worker


def test_small_work_stays_and_large_work_leaves() -> None:
    """A function of a large text runs in another thread, that of a small one at once."""

    async def threads() -> tuple[int, int]:
        return await run_in_worker(LARGE - 1, threading.get_ident), await run_in_worker(LARGE, threading.get_ident)

    small, large = asyncio.run(threads())
    assert small == threading.get_ident() != large


def test_the_arguments_and_the_error_are_those_of_the_function() -> None:
    """Arguments reach the function, and what it raises reaches the caller."""
    assert asyncio.run(run_in_worker(LARGE, int, "ff", base=16)) == 255
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(run_in_worker(LARGE, int, "x"))


def test_garbage_is_collected_again_after_the_last_of_some_pauses() -> None:
    """While any large text is in use nothing is collected; a small text pauses nothing."""
    with pause_garbage_collection(LARGE_VALUES - 1):
        assert gc.isenabled()
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_pauses_without_end_do_not_keep_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pauses overlap for too long, garbage is collected although another one goes on."""
    monkeypatch.setattr("shared.worker_threads._LONGEST_PAUSE_SECONDS", -1.0)
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert gc.isenabled()


async def test_module_is_imported_outside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is imported by another thread than the event loop's, once, and a failed import may be repeated."""
    source = tmp_path / "module_of_a_test.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError):
        await load_modules("module_of_a_test")
    source.write_text("import threading\nTHREAD = threading.get_ident()\n")
    importlib.invalidate_caches()
    await asyncio.gather(load_modules("module_of_a_test"), load_modules("module_of_a_test"))
    assert threading.get_ident() != sys.modules["module_of_a_test"].THREAD
    del sys.modules["module_of_a_test"]
