"""Cancellation of functions in Python that SQL calls: between two rows, they check whether the query has been stopped.

DuckDB calls such a function in any of its threads, with the values of up to 2048 rows, and cannot interrupt the calls.
Therefore the SQL passes the number of the execution to each function, and the number leads to the query's stop event.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

EXECUTION = "getvariable('python_execution')"
"""SQL for the first argument of every function in Python, the number of the execution (see `bind_stop_event`)."""

_NUMBERS = itertools.count(1)
_STOPPED: dict[int, threading.Event] = {}
_CURRENT = threading.local()


class ExecutionStoppedError(Exception):
    """The query that called a Python function has been stopped."""


@contextlib.contextmanager
def bind_stop_event(cursor: "duckdb.DuckDBPyConnection", sql: str, stopped: threading.Event) -> Iterator[None]:
    """Context manager: stop the Python functions called by ``sql`` on ``cursor`` as soon as ``stopped`` is set."""
    if EXECUTION not in sql:
        yield
        return
    number = next(_NUMBERS)
    _STOPPED[number] = stopped
    try:
        cursor.execute(f"SET VARIABLE python_execution = CAST({number} AS BIGINT)")
        yield
    finally:
        del _STOPPED[number]


def select_execution(execution_number: int | None) -> None:
    """Select the execution that `raise_if_stopped` checks in the current thread; None selects no execution."""
    _CURRENT.stopped = None if execution_number is None else _STOPPED.get(execution_number)


def raise_if_stopped() -> None:
    """Raise ExecutionStoppedError if the query that called the current function has been stopped.

    A function that can take more than a fraction of a second must call this from time to time.
    """
    stopped = getattr(_CURRENT, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise ExecutionStoppedError
