"""Python functions that compute series with NumPy and are called by the generated SQL.

DuckDB calls a function with the values of up to 2048 rows. The function computes the rows one by one. If the query has
been stopped, the function ends before the next row, so that a cancelled query does not run for seconds.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulators.kusto.python_functions import build_positional_signature
from emulators.kusto.stop_events import EXECUTION, raise_if_stopped, select_execution

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

PREFIX = "series_python_"
"""Start of the SQL name of every function."""

_SQL_TYPES = {
    "series": "DOUBLE[]", "integers": "BIGINT[]", "texts": "VARCHAR[]", "real": "DOUBLE", "long": "BIGINT",
    "text": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class SeriesFunction:
    """Python function that SQL calls; it computes named outputs from the arguments of one row.

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

    def render_call_sql(self, *arguments_sql: str) -> str:
        """Return SQL that calls the function; the result is a struct with all outputs."""
        values = ", ".join(f"CAST({sql} AS {kind})" for sql, kind in zip(arguments_sql, self.parameters, strict=True))
        return f"{PREFIX}{self.name}({EXECUTION}, {values})"


def register_series_functions(connection: "duckdb.DuckDBPyConnection", functions: Sequence[SeriesFunction]) -> None:
    """Register the functions in a database, so that SQL can call them; call this before the database is locked."""
    from duckdb.func import ARROW, SPECIAL  # noqa: PLC0415  translator processes do not load DuckDB

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


def _build_vectorized_function(function: SeriesFunction) -> Callable[..., "pa.Array"]:
    # Translator processes load neither NumPy nor Arrow.
    import numpy as np  # noqa: PLC0415

    from emulators.kusto.row_values import iterate_python_values, to_struct_array  # noqa: PLC0415

    def compute_rows(execution: "pa.ChunkedArray", *columns: "pa.ChunkedArray") -> "pa.Array":
        compute = _import_function(function.compute)
        select_execution(execution[0].as_py() if len(execution) else None)
        rows: list[Mapping[str, Any] | None] = []
        with np.errstate(all="ignore"):  # an overflow is an infinite number of the result
            for arguments in zip(*map(iterate_python_values, columns), strict=True):
                raise_if_stopped()
                rows.append(compute(*arguments))
        return to_struct_array(function.outputs, rows)

    compute_rows.__signature__ = build_positional_signature(1 + len(function.parameters))  # type: ignore[attr-defined]
    return compute_rows


def _import_function(import_path: str) -> Callable[..., Mapping[str, Any] | None]:
    module, _, name = import_path.partition(":")
    function: Callable[..., Mapping[str, Any] | None] = getattr(importlib.import_module(module), name)
    return function
