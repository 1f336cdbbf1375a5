"""Work on several threads whose results are taken in order."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

WORKERS: Final = min(4, os.cpu_count() or 1)


def in_order[T, R](work: Callable[[T], R], items: Iterator[T]) -> Iterator[R]:
    """Yield what the work makes of each item, in the items' order; a few are worked on at once, and no more are held.

    The work must leave the interpreter to other threads, as pyarrow and DuckDB do.
    """
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="convert") as pool:
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > WORKERS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
