"""Worker threads for slow work on large texts and imports, so that the event loop serves other requests meanwhile."""

import asyncio
import contextvars
import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from importlib import import_module
from typing import Final

LARGE: Final = 16_384
"""Minimum size, in characters or bytes, of a text whose processing runs in a worker thread.

For a smaller text, the thread would cost more than the processing.
"""

LARGE_VALUES: Final = 65_536
"""Minimum size, in characters or bytes, of a JSON text whose values make a garbage collection slow."""

_LONGEST_PAUSE_SECONDS: Final = 10.0
_WORKERS: Final = 2


async def run_in_worker[**P, T](size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function, in a worker thread if its text is large, and return the result.

    Args:
        size: size of the text, in characters or bytes.
        work: function to call; it must not use objects of the event loop.
        args: positional arguments of the function.
        kwargs: named arguments of the function.
    """
    if size < LARGE:
        return work(*args, **kwargs)
    call = partial(contextvars.copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_get_thread_pool(), call)


@cache
def _get_thread_pool() -> ThreadPoolExecutor:
    """Return the thread pool for large texts. It is small, because each busy thread delays the event loop."""
    return ThreadPoolExecutor(_WORKERS, "large texts")


async def load_modules(*names: str) -> None:
    """Import modules in a worker thread; return at once if they are already imported.

    Large libraries take up to a second to import, so the first request that needs them loads them.

    Args:
        names: full names of modules.

    Raises:
        ImportError: a module cannot be imported.
    """
    missing = [name for name in names if name not in _loaded]
    if missing:
        await asyncio.to_thread(_import_all, missing)


def _import_all(names: list[str]) -> None:
    for name in names:
        import_module(name)
        # sys.modules cannot be used for this check: it contains a module before its import is complete.
        _loaded.add(name)


_loaded: Final = set[str]()


class _GarbageCollection:
    """Switch that pauses Python's cyclic garbage collection.

    A collection examines every object, and all other threads wait meanwhile.
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


def pause_garbage_collection(size: int) -> AbstractContextManager[None]:
    """Pause the cyclic garbage collection while the values of a large text are in use.

    JSON values have no cycles, but a collection would examine all of them, and there may be a million.

    Args:
        size: size of the text, in characters or bytes; below :data:`LARGE_VALUES` the collection is not paused.
    """
    return _COLLECTION.pause() if size >= LARGE_VALUES else nullcontext()


_COLLECTION: Final = _GarbageCollection()
