"""Tests of functions in Python that SQL calls for each row."""

import threading

import duckdb
import pytest

from emulators.kusto.python_functions import PythonFunction, register_python_functions
from emulators.kusto.sandbox import open_database
from emulators.kusto.stop_events import EXECUTION, bind_stop_event


def test_a_stopped_query_computes_no_further_row() -> None:
    """After a query is stopped, its function in Python computes no further row."""
    stopped, computed = threading.Event(), []

    def stop_at_third_row(number: int) -> int:
        computed.append(number)
        if len(computed) == 3:
            stopped.set()
        return number

    sql = f"SELECT stop_at_third_row({EXECUTION}, range) FROM range(1000)"
    with open_database(None) as connection:
        register_python_functions(
            connection, [PythonFunction("stop_at_third_row", stop_at_third_row, ("BIGINT",), "BIGINT")]
        )
        with bind_stop_event(connection, sql, stopped), pytest.raises(duckdb.Error, match="ExecutionStoppedError"):
            connection.execute(sql).fetchall()
    assert len(computed) == 3


def test_a_python_function_can_be_called_without_an_execution() -> None:
    """A function in Python computes its result also if no query is registered for cancellation; it receives null."""
    with open_database(None) as connection:
        register_python_functions(
            connection, [PythonFunction("is_null", lambda value: value is None, ("VARCHAR",), "BOOLEAN")]
        )
        rows = connection.execute(f"SELECT is_null({EXECUTION}, v) FROM (VALUES (NULL), ('a')) AS t(v)").fetchall()
    assert rows == [(True,), (False,)]
