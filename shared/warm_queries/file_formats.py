"""Query results as CSV (RFC 4180) and as Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from shared.text_formats.csv_cells import escape_formula
from shared.timestamps import parse_rfc3339
from shared.warm_queries.results import QueryResult

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
_TEXT_TYPES = frozenset({"string", "dynamic"})
"""Types whose values can be free text."""


def to_csv(result: QueryResult) -> bytes:
    """Return the rows as UTF-8 CSV with a header line.

    Null is an empty cell; a dynamic object or array is JSON text. Column names and text cells that begin like a formula
    get a leading apostrophe. Values of other types cannot be formulas and are not changed.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    cells = [
        (column.name, _format_text_cell if column.type in _TEXT_TYPES else _format_cell) for column in result.columns
    ]
    writer.writerow([escape_formula(name) for name, _ in cells])
    writer.writerows([cell(row[name]) for name, cell in cells] for row in result.rows)
    return text.getvalue().encode("utf-8")


def to_parquet(result: QueryResult) -> bytes:
    """Return the rows as a Parquet file.

    Numbers, booleans and instants are typed columns; other types are text, and dynamic values are JSON text.
    """
    import pyarrow as pa  # noqa: PLC0415  the import takes 0.1 s, and few processes need it
    from pyarrow import parquet  # noqa: PLC0415  as above

    types = {
        "bool": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    arrays = [
        pa.array(
            _convert_values(column.type, (row[column.name] for row in result.rows)), types.get(column.type, pa.string())
        )
        for column in result.columns
    ]
    sink = io.BytesIO()
    table = pa.Table.from_arrays(arrays, names=[column.name for column in result.columns])
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _format_text_cell(value: Any) -> Any:
    return escape_formula(value) if isinstance(value, str) else _format_cell(value)


def _format_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _to_json(value) if isinstance(value, dict | list) else value


def _convert_values(kind: str, cells: Iterable[Any]) -> list[Any]:
    convert: Callable[[Any], Any] = _CONVERTERS.get(kind, _to_text)
    return [None if cell is None else convert(cell) for cell in cells]


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "long": int,
    "real": float,
    "datetime": parse_rfc3339,
    "dynamic": _to_json,
}
