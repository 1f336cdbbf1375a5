"""Python functions that compute series with NumPy and are called by the generated SQL.

DuckDB calls a function with the values of up to 2048 rows. The function computes the rows one by one. If the query has
been stopped, the function ends before the next row, so that a cancelled query does not run for seconds.
"""

import contextlib
import importlib
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

PREFIX = "series_python_"
"""Start of the SQL name of every function."""
EXECUTION = "getvariable('series_execution')"
"""SQL for the first argument of every function, the number of the execution (see `track_execution`)."""

_SQL_TYPES = {
    "series": "DOUBLE[]", "integers": "BIGINT[]", "texts": "VARCHAR[]", "real": "DOUBLE", "long": "BIGINT",
    "text": "VARCHAR",
}  # fmt: skip
_ARROW_TYPES = {
    "series": pa.float64(), "integers": pa.int64(), "texts": pa.string(), "real": pa.float64(), "long": pa.int64(),
    "text": pa.string(),
}  # fmt: skip
_LISTS = ("series", "integers", "texts")
_NUMBERS = itertools.count(1)
_STOPPED: dict[int, threading.Event] = {}
_CURRENT = threading.local()
_CONVERTED = 8192
"""Number of texts that are converted at once."""

type Row = Mapping[str, Any] | None
"""Outputs of one row by name; None if all outputs are null."""


class ExecutionStoppedError(Exception):
    """The query that called a Python function has been stopped."""


@dataclass(frozen=True)
class SeriesFunction:
    """Python function that computes its outputs for one row.

    Attributes:
        name: name of the function; its SQL name has the prefix ``series_python_``.
        parameters: SQL type of each parameter. A list of numbers arrives as a NumPy array of doubles, in which NaN
            represents null; null arrives as None.
        outputs: kind of each output (``series``, ``integers``, ``texts``, ``real``, ``long`` or ``text``), by name. In
            a series NaN becomes null.
        compute: ``module:function``; the module is imported at the first call.
    """

    name: str
    parameters: tuple[str, ...]
    outputs: Mapping[str, str]
    compute: str

    def render_call(self, *arguments: str) -> str:
        """Return SQL that calls the function; the result is a struct with all outputs."""
        values = ", ".join(f"CAST({sql} AS {kind})" for sql, kind in zip(arguments, self.parameters, strict=True))
        return f"{PREFIX}{self.name}({EXECUTION}, {values})"


def create_series_functions(connection: duckdb.DuckDBPyConnection, functions: Sequence[SeriesFunction]) -> None:
    """Create the functions in a database before it is locked, so that the SQL of every cursor can call them."""
    for function in functions:
        fields = ", ".join(f"{name} {_SQL_TYPES[kind]}" for name, kind in function.outputs.items())
        connection.create_function(
            PREFIX + function.name,
            _build_vectorized_function(function),
            ["BIGINT", *function.parameters],
            f"STRUCT({fields})",
            type=ARROW,
            null_handling=SPECIAL,
        )


def check_stopped() -> None:
    """Raise ExecutionStoppedError if the query that called the current function has been stopped.

    A function that can take more than a fraction of a second must call this from time to time.
    """
    stopped = getattr(_CURRENT, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise ExecutionStoppedError


@contextlib.contextmanager
def track_execution(cursor: duckdb.DuckDBPyConnection, sql: str, stopped: threading.Event) -> Iterator[None]:
    """Context manager: stop the Python functions called by ``sql`` on ``cursor`` as soon as ``stopped`` is set."""
    if PREFIX not in sql:
        yield
        return
    number = next(_NUMBERS)
    _STOPPED[number] = stopped
    try:
        cursor.execute(f"SET VARIABLE series_execution = CAST({number} AS BIGINT)")
        yield
    finally:
        del _STOPPED[number]


def _build_vectorized_function(function: SeriesFunction) -> Callable[..., pa.Array]:
    def compute_rows(execution: pa.ChunkedArray, *columns: pa.ChunkedArray) -> pa.Array:
        compute = _import_function(function.compute)
        _CURRENT.stopped = _STOPPED.get(execution[0].as_py()) if len(execution) else None
        rows: list[Row] = []
        with np.errstate(all="ignore"):  # an overflow is an infinite number of the result
            for arguments in zip(*map(_iterate_values, columns), strict=True):
                check_stopped()
                rows.append(compute(*arguments))
        return _to_struct_array(function.outputs, rows)

    # DuckDB compares the number of parameters with the declared types.
    names = ["execution", *(f"argument{index}" for index in range(len(function.parameters)))]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    compute_rows.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return compute_rows


def _import_function(path: str) -> Callable[..., Row]:
    module, _, name = path.partition(":")
    function: Callable[..., Row] = getattr(importlib.import_module(module), name)
    return function


def _iterate_values(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the values of a column; a list of numbers becomes a NumPy array."""
    for chunk in column.chunks:
        if not pa.types.is_list(chunk.type):
            yield from chunk.to_pylist()
            continue
        elements = _convert_elements(chunk.values)
        offsets = chunk.offsets.to_numpy()
        valid = chunk.is_valid().to_numpy(zero_copy_only=False)
        for index in range(len(chunk)):
            yield elements[offsets[index] : offsets[index + 1]] if valid[index] else None


def _convert_elements(values: pa.Array) -> Any:
    """Return the elements of lists: numbers as a NumPy array, other elements as a list."""
    if not pa.types.is_string(values.type):
        return values.to_numpy(zero_copy_only=False)
    parts = range(0, len(values), _CONVERTED)  # each conversion holds the interpreter
    return [element for start in parts for element in values.slice(start, _CONVERTED).to_pylist()]


def _to_struct_array(outputs: Mapping[str, str], rows: Sequence[Row]) -> pa.Array:
    missing = pa.array([row is None for row in rows], pa.bool_())
    arrays = [_to_array(kind, [None if row is None else row[name] for row in rows]) for name, kind in outputs.items()]
    fields = [pa.field(name, array.type) for name, array in zip(outputs, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)


def _to_array(kind: str, values: Sequence[Any]) -> pa.Array:
    if kind not in _LISTS:
        return pa.array(values, _ARROW_TYPES[kind])
    lengths = (0 if value is None else len(value) for value in values)
    offsets = pa.array(itertools.accumulate(lengths, initial=0), pa.int32())
    present = [pa.array(value, _ARROW_TYPES[kind], from_pandas=True) for value in values if value is not None]
    elements = pa.concat_arrays(present) if present else pa.array([], _ARROW_TYPES[kind])
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, elements, mask=missing)
