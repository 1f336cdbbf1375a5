"""Tests of Python functions in SQL: conversion of values, and cancellation between rows."""

import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from emulators.kusto.sandbox import open_database
from emulators.kusto.series_functions import SeriesFunction, register_series_functions
from emulators.kusto.stop_events import bind_stop_event

STOPPED = threading.Event()
SEEN: list[int] = []


def double_values(values: Any, factor: float | None) -> Any:
    """Return an object with the doubled values, the number of values, and the factor, for tests of conversion."""
    return None if values is None else {"doubled": values * 2, "size": len(values), "factor": factor}


def stop_query_at_third_row(number: int) -> Any:
    """Record the number of a row, and stop the query at the third row."""
    SEEN.append(number)
    if len(SEEN) == 3:
        STOPPED.set()
    return {"size": number}


DOUBLE = SeriesFunction(
    "double",
    ("DOUBLE[]", "DOUBLE"),
    {"doubled": "series", "size": "long", "factor": "real"},
    f"{__name__}:double_values",
)
STOP = SeriesFunction("stop", ("BIGINT",), {"size": "long"}, f"{__name__}:stop_query_at_third_row")


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a database that has the functions of this module."""
    with open_database(None) as opened:
        register_series_functions(opened, [DOUBLE, STOP])
        yield opened


def test_arguments_of_python_functions_are_converted(connection: duckdb.DuckDBPyConnection) -> None:
    """A Python function gets lists as arrays, null as null, and NaN in a list as null."""
    call = DOUBLE.render_call_sql("x", "NULL")
    values = "(VALUES ([1, NULL, 3]), (NULL), ([]), ([0.5])) AS v(x)"
    rows = connection.execute(f"SELECT {call} FROM {values}").fetchall()
    assert [row[0] for row in rows] == [
        {"doubled": [2.0, None, 6.0], "size": 3, "factor": None},
        None,
        {"doubled": [], "size": 0, "factor": None},
        {"doubled": [1.0], "size": 1, "factor": None},
    ]


def test_a_python_function_accepts_an_empty_table(connection: duckdb.DuckDBPyConnection) -> None:
    """A Python function accepts an empty table."""
    assert connection.execute(f"SELECT {STOP.render_call_sql('range')} FROM range(0)").fetchall() == []


def test_a_stopped_query_calls_its_python_function_no_more(connection: duckdb.DuckDBPyConnection) -> None:
    """After a query is stopped, its Python function computes no more rows."""
    SEEN.clear()
    STOPPED.clear()
    cursor = connection.cursor()
    sql = f"SELECT {STOP.render_call_sql('range')} FROM range(1000)"
    with bind_stop_event(cursor, sql, STOPPED), pytest.raises(duckdb.Error, match="ExecutionStoppedError"):
        cursor.execute(sql).fetchall()
    assert len(SEEN) == 3


def test_numeric_arguments_of_python_functions_are_doubles(connection: duckdb.DuckDBPyConnection) -> None:
    """A Python function receives a numeric argument as a double."""
    assert connection.execute(f"SELECT {DOUBLE.render_call_sql('[1]', '2')}.factor").fetchall() == [(2.0,)]
    assert double_values(np.asarray([1.0]), 1.0)["size"] == 1
