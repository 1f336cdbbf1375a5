"""Query results as Parquet files and Arrow IPC streams.

This module is separate from ``query_reply``, because these formats store columns and need no rows.
"""

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from shared.warm_queries.results import QueryResult


def to_parquet(result: QueryResult) -> bytes:
    """Convert a query's result to a Parquet file with the columns of :func:`_to_table`."""
    from pyarrow import parquet  # noqa: PLC0415  the import takes 0.1 s, and few processes need it

    sink = io.BytesIO()
    parquet.write_table(_to_table(result), sink, compression="zstd")
    return sink.getvalue()


def to_arrow(result: QueryResult) -> bytes:
    """Convert a query's result to an Arrow IPC stream with the columns of :func:`_to_table`."""
    import pyarrow as pa  # noqa: PLC0415  the import takes 0.1 s, and few processes need it

    table = _to_table(result)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _to_table(result: QueryResult) -> Any:
    """Convert a query's result to an Arrow table.

    Numbers, booleans and timestamps become typed columns. Dynamic values become JSON text, and all other types text.
    """
    import pyarrow as pa  # noqa: PLC0415  as above

    types = {
        "bool": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    arrays = [
        _to_times(cells, types["datetime"])
        if column.type == "datetime"
        else pa.array(_convert_values(column.type, cells), types.get(column.type, pa.string()))
        for column, cells in zip(result.columns, _list_columns(result), strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in result.columns])


def _list_columns(result: QueryResult) -> Sequence[list[Any]]:
    if result.values is not None:
        return result.values
    return [[row[column.name] for row in result.rows] for column in result.columns]


def _to_times(cells: list[Any], kind: Any) -> Any:
    """Convert a list of times in the service's format to an Arrow array.

    One call is ten times as fast as a call per time.
    """
    import pyarrow as pa  # noqa: PLC0415  as above

    return pa.array(cells, pa.string()).cast(kind)


def _convert_values(kind: str, cells: Iterable[Any]) -> list[Any]:
    convert: Callable[[Any], Any] = _CONVERTERS.get(kind, _to_text)
    return [None if cell is None else convert(cell) for cell in cells]


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else to_json_text(value)


def to_json_text(value: Any) -> str:
    """Convert a value of the Kusto type dynamic to JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "int": int,
    "long": int,
    "real": float,
    "dynamic": to_json_text,
}
