"""Tests of query results as CSV and Parquet, and of the parts that all formats share."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from functions import query_reply
from functions.query_reply import RowFormat, build_query_reply, is_reply_columnar, to_arrow, to_csv, to_parquet
from shared.http.messages import Request
from shared.runtime import LARGE
from shared.warm_queries.ports import Column
from shared.warm_queries.results import QueryResult, to_column_values, to_row_objects

COLUMNS = tuple(Column(kind, kind) for kind in ("datetime", "real", "long", "bool", "dynamic", "string"))
WIRE: list[list[Any]] = [
    ["2026-01-05T08:00:00.1234567Z", 1, 2**62, 1, {"a": [1]}, "x"],
    ["0001-01-01T00:00:00Z", "NaN", None, None, None, ""],
]
BY_ROW = QueryResult("q", datetime.now(UTC), COLUMNS, to_row_objects(COLUMNS, WIRE), False, 1.0, None)
BY_COLUMN = replace(BY_ROW, rows=[], values=to_column_values(COLUMNS, WIRE))


def test_results_by_column_and_by_row_give_equal_files() -> None:
    """The same result gives the same files and row count whether its values are stored by column or by row."""
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


@pytest.mark.parametrize("wire", [[], [[], []]], ids=["no-rows", "rows-without-cells"])
def test_a_result_without_columns_is_an_empty_table_in_each_format(wire: list[list[Any]]) -> None:
    """A result without columns is an empty table in each format; Data Explorer returns one for an empty bag_unpack."""
    by_row = replace(BY_ROW, columns=(), rows=to_row_objects((), wire))
    by_column = replace(by_row, rows=[], values=to_column_values((), wire))
    assert by_row.row_count == by_column.row_count == by_column.convert_to_rows().row_count == 0
    assert to_arrow(by_column) == to_arrow(by_row)
    assert pa.ipc.open_stream(to_arrow(by_column)).read_all().shape == (0, 0)
    assert pq.read_table(io.BytesIO(to_parquet(by_column))).shape == (0, 0)
    assert to_csv(by_row) == b"\r\n"


KINDS = ("string", "long", "real", "bool", "datetime", "timespan", "dynamic", "decimal", "guid", "int")
ROW: list[Any] = [
    'a "quoted", line\nbreak ü',
    2**53 + 1,
    0.1,
    True,
    "2026-01-01T00:00:00.123456Z",
    "1.02:03:04",
    {"a": [1, None]},
    "1.50",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    -5,
]


def build_result(*rows: list[Any]) -> QueryResult:
    """Return a result with a column of each type."""
    columns = tuple(Column(kind, kind) for kind in KINDS)
    return QueryResult(
        "q", datetime.now(UTC), columns, [dict(zip(KINDS, row, strict=True)) for row in rows], False, 1.0, None
    )


def test_a_csv_reader_gets_each_cell_back() -> None:
    """A CSV reader gets each cell back; null is an empty cell, and line ends follow RFC 4180."""
    written = to_csv(build_result(ROW, [None] * len(KINDS)))
    header, first, second = csv.reader(io.StringIO(written.decode(), newline=""))
    assert tuple(header) == KINDS
    assert first == [ROW[0], str(2**53 + 1), "0.1", "true", ROW[4], ROW[5], '{"a":[1,null]}', *ROW[7:9], "-5"]
    assert second == [""] * len(KINDS)
    assert written.count(b"\r\n") == 3


def test_formula_text_is_escaped_in_csv() -> None:
    """A text cell or column name that begins like a formula gets an apostrophe; other types do not."""
    columns = (Column("string", "string"), Column("dynamic", "dynamic"), Column("=1+1", "string"))
    texts = ["=cmd()", "+1", "-1", "@a", "\ta", "\ra", "a=b", " =a", ""]
    rows: list[list[Any]] = [[text, text, text] for text in texts]
    rows += [[None, -5, "x"], [None, -0.5, "x"], [None, [-1], "x"]]
    names = [column.name for column in columns]
    escaped = QueryResult(
        "q", datetime.now(UTC), columns, [dict(zip(names, row, strict=True)) for row in rows], False, 1.0, None
    )
    header, *cells = csv.reader(io.StringIO(to_csv(escaped).decode(), newline=""))
    assert header == ["string", "dynamic", "'=1+1"]
    for (first, second, third), text in zip(cells, texts, strict=False):
        assert {first, second, third} == {f"'{text}" if text[:1] in {*"=+-@\t\r"} else text}
    assert cells[len(texts) :] == [["", "-5", "x"], ["", "-0.5", "x"], ["", "[-1]", "x"]]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("long", -5, "-5"),
        ("int", -5, "-5"),
        ("real", -1.5e-7, "-1.5e-07"),
        ("decimal", "-1.50", "-1.50"),
        ("timespan", "-1.02:03:04", "-1.02:03:04"),
    ],
)
def test_negative_numbers_and_durations_are_not_escaped_in_csv(kind: str, value: Any, cell: str) -> None:
    """Negative numbers and durations are not escaped, even as text."""
    columns = (Column("value", kind),)
    answer = QueryResult("q", datetime.now(UTC), columns, [{"value": value}], False, 1.0, None)
    assert to_csv(answer).decode() == f"value\r\n{cell}\r\n"


def test_parquet_columns_keep_their_types() -> None:
    """In Parquet, numbers, booleans, times and nulls keep their types."""
    table = pq.read_table(io.BytesIO(to_parquet(build_result(ROW, [None] * len(KINDS)))))
    assert {field.name: str(field.type) for field in table.schema} == {
        "string": "string",
        "long": "int64",
        "real": "double",
        "bool": "bool",
        "datetime": "timestamp[us, tz=UTC]",
        "timespan": "string",
        "dynamic": "string",
        "decimal": "string",
        "guid": "string",
        "int": "int32",
    }
    first, second = table.to_pylist()
    assert first["long"] == 2**53 + 1
    assert first["datetime"] == datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)
    assert first["dynamic"] == '{"a":[1,null]}'
    assert set(second.values()) == {None}


def test_long_csv_cells_are_written_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with a long text has the same CSV text as the CSV writer writes for it."""
    texts = ["plain", 'with "quotes"', "a,b", "two\r\nlines", "", "ä", [1, "x"]]
    results = [build_result([text] * len(KINDS), [None] * len(KINDS)) for text in texts]
    written = [to_csv(result) for result in results]
    monkeypatch.setattr(query_reply, "_LONG_CELL", 0)
    assert [to_csv(result) for result in results] == written


def test_an_empty_result_has_column_names_in_csv() -> None:
    """The CSV file of a result without rows has the column names."""
    assert to_csv(build_result()).decode() == ",".join(KINDS) + "\r\n"
    assert pq.read_table(io.BytesIO(to_parquet(build_result()))).column_names == list(KINDS)


SIZES: list[int] = []
"""Sizes of the replies that were built with :class:`CurrentThreadServices`."""


class CurrentThreadServices:
    """Fake services whose runtime calls functions in the current thread."""

    @property
    def runtime(self) -> "CurrentThreadServices":
        """Return this object, which is also the fake of the services' runtime."""
        return self

    async def run_in_thread_if_large(self, size: int, work: Callable[..., Any], *args: Any) -> Any:
        """Call a function in the current thread and return its result; record the size that it processes."""
        SIZES.append(size)
        return work(*args)


@pytest.mark.parametrize(
    ("row_format", "size", "in_thread"),
    [
        (RowFormat.JSON, 1000, False),
        (RowFormat.CSV, 1000, False),
        (RowFormat.JSON, LARGE, True),
        (RowFormat.PARQUET, 1000, True),
        (RowFormat.ARROW, 1000, True),
    ],
)
async def test_large_replies_are_built_in_a_worker_thread(
    monkeypatch: pytest.MonkeyPatch, row_format: RowFormat, size: int, *, in_thread: bool
) -> None:
    """Only a large reply, or one whose library is possibly not imported yet, is built in a worker thread."""
    monkeypatch.setattr(query_reply, "services", CurrentThreadServices)
    SIZES.clear()
    await build_query_reply(Request("GET", "/q", "", {}, b""), replace(build_result(ROW), size=size), row_format)
    assert {each >= LARGE for each in SIZES} == {in_thread}


async def test_long_column_names_count_for_the_size_of_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the columns count once for each row, because each row of a reply has them."""
    monkeypatch.setattr(query_reply, "services", CurrentThreadServices)
    SIZES.clear()
    column = Column("n" * 1000, "long")
    result = QueryResult("q", datetime.now(UTC), (column,), [{column.name: 1}] * 20, False, 1.0, None, size=2000)
    await build_query_reply(Request("GET", "/q", "", {}, b""), result, RowFormat.JSON)
    assert all(each >= LARGE for each in SIZES)


@pytest.mark.parametrize("row_format", list(RowFormat))
async def test_the_execution_time_does_not_change_the_reply_size(
    monkeypatch: pytest.MonkeyPatch, row_format: RowFormat
) -> None:
    """Results that differ only in execution time have bodies of equal length; a header has the execution time."""
    monkeypatch.setattr(query_reply, "services", CurrentThreadServices)
    request = Request("GET", "/q", "", {}, b"")
    fast = build_result(ROW)
    slow = replace(fast, execution_ms=12345.678)
    replies = [await build_query_reply(request, each, row_format) for each in (fast, slow)]
    assert len({len(reply.body) for reply in replies}) == 1
    assert len({reply.headers["ETag"] for reply in replies}) == 1
    assert [reply.headers["x-query-execution-time-ms"] for reply in replies] == ["1.0", "12345.678"]
    if row_format is RowFormat.JSON:
        assert [json.loads(reply.body)["executionTimeMs"] for reply in replies] == [1.0, 12345.678]
    cached = [replace(fast, from_cache=hit) for hit in (False, True)]
    assert len({len((await build_query_reply(request, each, row_format)).body) for each in cached}) == 1


@pytest.mark.parametrize(
    ("row_format", "accept", "expected"),
    [
        (None, "", False),
        (None, "text/csv", False),
        (None, "application/vnd.apache.parquet", True),
        (None, "application/json;q=0.5, application/vnd.apache.arrow.stream", True),
        (RowFormat.ARROW, "application/json", True),
        (RowFormat.JSON, "application/vnd.apache.arrow.stream", False),
    ],
)
def test_only_parquet_and_arrow_use_values_by_column(row_format: RowFormat | None, accept: str, expected: bool) -> None:  # noqa: FBT001  a case
    """Values by column are used only for Parquet and Arrow; the parameter `format` has priority over Accept."""
    assert is_reply_columnar(Request("GET", "/", "", {"accept": accept}, b""), row_format) is expected
