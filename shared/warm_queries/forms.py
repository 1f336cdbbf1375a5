"""A query's rows as CSV (RFC 4180) and as Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from shared.timestamps import parse_rfc3339
from shared.warm_queries.run import QueryRun

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


def csv_bytes(run: QueryRun) -> bytes:
    """Return the rows as UTF-8 CSV with a header line; null is an empty cell, a dynamic value JSON text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    names = [column.name for column in run.columns]
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in run.rows)
    return text.getvalue().encode("utf-8")


def parquet_bytes(run: QueryRun) -> bytes:
    """Return the rows as a Parquet file: numbers, booleans and instants typed, the rest text; dynamic is JSON text."""
    import pyarrow as pa  # noqa: PLC0415  costs a start that never needs it 0.1 s
    from pyarrow import parquet  # noqa: PLC0415  the same

    types = {
        "bool": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    arrays = [
        pa.array(_values(column.type, (row[column.name] for row in run.rows)), types.get(column.type, pa.string()))
        for column in run.columns
    ]
    sink = io.BytesIO()
    table = pa.Table.from_arrays(arrays, names=[column.name for column in run.columns])
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _json(value) if isinstance(value, dict | list) else value


def _values(kind: str, cells: Iterable[Any]) -> list[Any]:
    convert: Callable[[Any], Any] = _CONVERTERS.get(kind, _text)
    return [None if cell is None else convert(cell) for cell in cells]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "long": int,
    "real": float,
    "datetime": parse_rfc3339,
    "dynamic": _json,
}
