"""Runs work whose time grows with a text outside the event loop, so that other requests go on meanwhile."""

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
"""Characters or bytes from which work leaves the event loop; below, a change of threads takes longer than the work."""

LARGE_VALUES: Final = 65_536
"""Characters or bytes from which the values of a text are so many that a search for garbage among them takes long."""

_LONGEST_PAUSE_SECONDS: Final = 10.0
_WORKERS: Final = 2


async def run_in_worker[**P, T](size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a function, called in a worker thread where its text is large.

    Args:
        size: of the text, in characters or bytes.
        work: a function that uses nothing that belongs to the event loop.
        args: its arguments.
        kwargs: its named arguments.
    """
    if size < LARGE:
        return work(*args, **kwargs)
    call = partial(contextvars.copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_workers(), call)


@cache
def _workers() -> ThreadPoolExecutor:
    """Return the threads for large texts: few, because each thread that computes delays the event loop's next turn."""
    return ThreadPoolExecutor(_WORKERS, "large texts")


async def load_modules(*names: str) -> None:
    """Import modules in a worker thread; return at once when an earlier call has imported them.

    Large libraries take up to a second to import, and are loaded at the first request that needs them.

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
        # Only now: a module that is still being imported is in sys.modules already, and would block its importer.
        _loaded.add(name)


_loaded: Final = set[str]()


class _Collection:
    """The interpreter's search for cyclic garbage, which looks at every object and lets no other thread run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._paused_at = 0.0

    @contextmanager
    def paused(self) -> Iterator[None]:
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
                # Pauses that overlap without end must not keep garbage for ever.
                if self._pauses == 0 or time.monotonic() - self._paused_at > _LONGEST_PAUSE_SECONDS:
                    gc.enable()


def pause_garbage_collection(size: int) -> AbstractContextManager[None]:
    """Keep cyclic garbage from being collected while values of a large text are in use.

    The values of JSON have no cycles, but there may be a million of them, and each search would look at all.

    Args:
        size: of the text, in characters or bytes; below :data:`LARGE_VALUES` nothing is paused.
    """
    return _COLLECTION.paused() if size >= LARGE_VALUES else nullcontext()


_COLLECTION: Final = _Collection()
