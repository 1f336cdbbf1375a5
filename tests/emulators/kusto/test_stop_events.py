"""Tests of the stop events that functions in Python check."""

import threading

from emulators.kusto.sandbox import open_database
from emulators.kusto.stop_events import EXECUTION, bind_stop_event


def test_queries_without_python_functions_are_not_registered_for_cancellation() -> None:
    """A query that calls no Python function is not registered for cancellation."""
    with open_database(None) as connection, bind_stop_event(connection, "SELECT 1", threading.Event()):
        assert connection.execute(f"SELECT {EXECUTION}").fetchall() == [(None,)]
