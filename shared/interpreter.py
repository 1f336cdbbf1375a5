"""Imports of large modules, pauses of Python's cyclic garbage collection, and release of unused memory."""

import ctypes
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Final

from shared.runtime import Runtime

LARGE_VALUES: Final = 65_536
"""Minimum size, in characters or bytes, of a JSON text whose parsed values make a garbage collection slow."""

_LONGEST_PAUSE_SECONDS: Final = 10.0


async def load_modules(runtime: Runtime, *module_names: str) -> None:
    """Import modules in a worker thread; do nothing if all of them are already imported.

    Large libraries take up to a second to import, so the first request that needs them loads them.

    Args:
        runtime: source of the worker thread.
        module_names: fully qualified names of modules.

    Raises:
        ImportError: a module cannot be imported.
    """
    missing = [name for name in module_names if name not in _loaded]
    if missing:
        await runtime.run_in_thread(_import_modules, missing)
        exempt_objects_from_garbage_collection()


def _import_modules(module_names: list[str]) -> None:
    for name in module_names:
        import_module(name)
        # sys.modules cannot be used for this check: it contains a module before its import is complete.
        _loaded.add(name)


_loaded: Final = set[str]()


def exempt_objects_from_garbage_collection() -> None:
    """Exempt all existing objects from the cyclic garbage collection; call this function after an import.

    Imported modules have some hundred thousand objects that exist until the process ends. A full collection would
    examine all of them, and every request would wait for it.
    """
    gc.freeze()


class _GarbageCollection:
    """Switch that pauses Python's cyclic garbage collection.

    While a collection examines every object, all threads wait.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._paused_at = 0.0

    @contextmanager
    def pause(self) -> Iterator[None]:
        with self._lock:
            if self._pauses == 0:
                gc.disable()
                self._paused_at = time.monotonic()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                # Without the time limit, pauses that overlap continuously would prevent every collection.
                if self._pauses == 0 or time.monotonic() - self._paused_at > _LONGEST_PAUSE_SECONDS:
                    gc.enable()


_COLLECTION: Final = _GarbageCollection()


def pause_garbage_collection(json_size: int) -> AbstractContextManager[None]:
    """Context manager: pause the cyclic garbage collection while the block uses the values of a large JSON text.

    JSON values have no reference cycles, but a collection would examine each of up to a million values.

    Args:
        json_size: size of the JSON text, in characters or bytes; below :data:`LARGE_VALUES` the collection is not
            paused.
    """
    return _COLLECTION.pause() if json_size >= LARGE_VALUES else nullcontext()


def release_unused_memory() -> None:
    """Return freed memory of Arrow and of the C library to the operating system; call this in a worker thread.

    Both would keep the freed memory for later allocations, and long work on large tables would use more and more
    memory.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    # Only the GNU C library has this function.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
