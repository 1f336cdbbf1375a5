"""Tests of imports in threads, of pauses of the garbage collector, and of releasing memory."""

import asyncio
import gc
import importlib
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from shared.interpreter import LARGE_VALUES, load_modules, pause_garbage_collection, release_unused_memory
from shared.runtime import SYSTEM_RUNTIME


def test_garbage_collection_resumes_after_the_last_pause() -> None:
    """While a large text is used, garbage collection is paused; a small text pauses nothing."""
    with pause_garbage_collection(LARGE_VALUES - 1):
        assert gc.isenabled()
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collection_resumes_during_long_overlapping_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """If pauses overlap for too long, garbage collection runs again before they end."""
    monkeypatch.setattr("shared.interpreter._LONGEST_PAUSE_SECONDS", -1.0)
    with pause_garbage_collection(LARGE_VALUES):
        with pause_garbage_collection(LARGE_VALUES):
            assert not gc.isenabled()
        assert gc.isenabled()


async def test_module_is_imported_outside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is imported once, in another thread, and garbage collection ignores the objects of imported modules."""
    source = tmp_path / "module_of_a_test.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError):
        await load_modules(SYSTEM_RUNTIME, "module_of_a_test")
    source.write_text("import threading\nTHREAD = threading.get_ident()\n")
    importlib.invalidate_caches()
    gc.unfreeze()
    await asyncio.gather(
        load_modules(SYSTEM_RUNTIME, "module_of_a_test"), load_modules(SYSTEM_RUNTIME, "module_of_a_test")
    )
    assert threading.get_ident() != sys.modules["module_of_a_test"].THREAD
    assert gc.get_freeze_count() > 0
    del sys.modules["module_of_a_test"]


def test_memory_of_arrow_is_released_only_if_arrow_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unused memory of Arrow is released only if the process has imported Arrow."""
    arrow = Mock()
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    release_unused_memory()
    arrow.default_memory_pool().release_unused.assert_called_once_with()
    monkeypatch.delitem(sys.modules, "pyarrow")
    release_unused_memory()
    assert "pyarrow" not in sys.modules


def test_system_without_trimming_releases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems other than Linux, the C library is not loaded and no memory is released."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=AssertionError))
    release_unused_memory()
