"""Tests of query results as Parquet and Arrow."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from functions.columnar_formats import to_arrow, to_parquet
from shared.warm_queries.ports import Column
from shared.warm_queries.results import QueryResult, to_column_values, to_row_objects

COLUMNS = tuple(Column(kind, kind) for kind in ("datetime", "real", "long", "bool", "dynamic", "string"))
WIRE: list[list[Any]] = [
    ["2026-01-05T08:00:00.1234567Z", 1, 2**62, 1, {"a": [1]}, "x"],
    ["0001-01-01T00:00:00Z", "NaN", None, None, None, ""],
]
BY_ROW = QueryResult("q", datetime.now(UTC), COLUMNS, to_row_objects(COLUMNS, WIRE), False, 1.0, None)
BY_COLUMN = replace(BY_ROW, rows=[], values=to_column_values(COLUMNS, WIRE))


def test_values_by_column_equal_rows() -> None:
    """A result with values by column gives the same files and row count as a result with rows."""
    assert to_arrow(BY_COLUMN) == to_arrow(BY_ROW)
    assert to_parquet(BY_COLUMN) == to_parquet(BY_ROW)
    assert BY_COLUMN.row_count == BY_ROW.row_count == 2


def test_parquet_and_arrow_have_the_same_typed_table() -> None:
    """In Parquet and Arrow, numbers, booleans and times are typed, and dynamic values are JSON text."""
    table = pa.ipc.open_stream(to_arrow(BY_COLUMN)).read_all()
    assert pq.read_table(io.BytesIO(to_parquet(BY_COLUMN))).equals(table)
    assert [str(field.type) for field in table.schema] == [
        *("timestamp[us, tz=UTC]", "double", "int64", "bool", "string", "string"),
    ]
    assert table.to_pylist()[0] == {
        "datetime": datetime(2026, 1, 5, 8, 0, 0, 123456, UTC),
        "real": 1.0,
        "long": 2**62,
        "bool": True,
        "dynamic": '{"a":[1]}',
        "string": "x",
    }


def test_an_empty_result_keeps_its_columns() -> None:
    """The file of a result without rows has all columns with their types."""
    empty = replace(BY_ROW, rows=[], values=to_column_values(COLUMNS, []))
    assert pa.ipc.open_stream(to_arrow(empty)).read_all().schema == pa.ipc.open_stream(to_arrow(BY_ROW)).schema
    assert empty.row_count == 0
