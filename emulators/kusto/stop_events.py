"""Cancellation of Python functions that SQL calls; a function checks before each row whether its query was stopped.

DuckDB calls such a function in any of its threads, with the values of up to 2048 rows, and cannot interrupt the calls.
Therefore each execution of a query has a number, which the SQL passes to every Python function. The function finds the
stop event of the query by this number.
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
    """Select, for the current thread, the query execution whose stop event `raise_if_stopped` checks.

    ``execution_number`` is the number that `bind_stop_event` assigned; None to check no stop event.
    """
    _CURRENT.stopped = None if execution_number is None else _STOPPED.get(execution_number)


def raise_if_stopped() -> None:
    """Raise ExecutionStoppedError if the query that called the current function has been stopped.

    A function that can take more than a fraction of a second must call this from time to time.
    """
    stopped = getattr(_CURRENT, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise ExecutionStoppedError
