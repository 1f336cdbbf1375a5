"""Tests of the reader of Parquet files."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.downloads.import_request import ImportFormat
from shared.imports import parquet_reader, parquet_sizes, step_rows
from shared.imports.parquet_reader import ParquetReader
from shared.imports.row_mapping import FileRejectedError
from shared.telemetry.message_parser import MAX_MESSAGE_BYTES
from tests.unit.shared.imports.files import (
    MemorySource,
    build_row_mapper,
    list_messages,
    list_rejected_rows,
    read_all_steps,
)

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def build_file(**changed: Any) -> bytes:
    """Return a file of ten rows with a dictionary and a nested column."""
    columns = {
        "time": pa.array([START + timedelta(seconds=n) for n in range(10)], pa.timestamp("ns", "UTC")),
        "state": pa.array(["on", "off"] * 5).dictionary_encode(),
        "nested": pa.array([{"a": [n]} for n in range(10)]),
        **changed,
    }
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target, row_group_size=4)
    return target.getvalue()


def open_file(content: bytes, **mapping: Any) -> ParquetReader:
    """Return a reader of a Parquet file with the given content."""
    return ParquetReader(MemorySource(content), build_row_mapper(ImportFormat.PARQUET, **mapping))


@pytest.mark.parametrize("size", [100, 3, 1])
def test_rows_become_messages_in_steps_of_any_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Rows with dictionary and nested columns become messages; a step (part of a file) can end after any row."""
    monkeypatch.setattr(parquet_reader, "STEP_ROWS", size)
    messages = list_messages(open_file(build_file()))
    assert [each["payload"] for each in messages[:2]] == [
        '{"state":"on","nested":{"a":[0]}}',
        '{"state":"off","nested":{"a":[1]}}',
    ]
    assert [each["number"] for each in messages] == list(range(1, 11))
    continued = open_file(build_file()).read_step(7, 8)
    assert continued is not None
    assert continued.messages.column("number")[0].as_py() == 8


def test_only_mapped_columns_are_read() -> None:
    """Only the columns that the mapping selects are read."""
    assert list_messages(open_file(build_file(), columns=("state",)))[0]["payload"] == '{"state":"on"}'


def test_local_parquet_times_need_a_zone() -> None:
    """Rows with times without a zone are rejected, unless the mapping states a zone."""
    content = build_file(time=pa.array([START.replace(tzinfo=None)] * 10, pa.timestamp("ms")))
    assert "set `mapping.timeZone`" in list_rejected_rows(open_file(content))[0][1]
    zoned = list_messages(open_file(content, time_zone="Europe/Berlin"))
    assert zoned[0]["timestamp"] == START - timedelta(hours=1)


def build_numbers(numbers: list[int], kind: pa.DataType) -> pa.Array:
    """Return an array of a temporal type from the numbers that represent its values."""
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


LONGEST = 2**63 - 1
YEARS = "times must be within the years 1 to 9999."


@pytest.mark.parametrize(
    ("kind", "number", "rule"),
    [
        (pa.timestamp("ms", "UTC"), LONGEST, YEARS),
        (pa.timestamp("ms", "UTC"), 2**62, YEARS),
        (pa.timestamp("ms"), 253_402_300_800_000, YEARS),
        (pa.timestamp("ms", "UTC"), -62_135_596_800_001, YEARS),
        (pa.timestamp("us", "UTC"), 2**62, YEARS),
        (pa.timestamp("us"), -(2**63), YEARS),
        (pa.date32(), 2**30, YEARS),
        (pa.date32(), -(2**30), YEARS),
        (pa.duration("s"), 2**62, "durations must be at most 999,999,999 days."),
        (pa.duration("ms"), -(2**62), "durations must be at most 999,999,999 days."),
        (pa.time64("us"), 2**62, "times of day must be less than 24 hours."),
        (pa.time32("ms"), -5, "times of day must be less than 24 hours."),
    ],
    ids=str,
)
@pytest.mark.parametrize("column", ["time", "value"])
def test_a_value_beyond_the_range_of_times_rejects_its_row(
    kind: pa.DataType, number: int, rule: str, column: str
) -> None:
    """A row with a time, date or duration that Python does not have is rejected; no row gets another time."""
    numbers = [0] * 10
    numbers[3] = number
    reader = open_file(build_file(**{column: build_numbers(numbers, kind)}), time_zone="UTC")
    rejected = dict(list_rejected_rows(reader))
    assert rejected[4] == f"Column `{column}` has the invalid value {number}: {rule}"
    if column == "value":
        assert list(rejected) == [4]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.date32(), pa.duration("ms"), pa.time64("us")], ids=str
)
@pytest.mark.parametrize("shape", ["list", "struct", "map"])
def test_a_nested_value_beyond_the_range_of_times_rejects_its_row(kind: pa.DataType, shape: str) -> None:
    """A time that Python does not have is found in lists, objects and maps, too."""
    values = build_numbers([0, 2**30 if kind.bit_width == 32 else 2**62] + [0] * 8, kind)
    nested = {
        "list": lambda: pa.ListArray.from_arrays(list(range(11)), values),
        "struct": lambda: pa.StructArray.from_arrays([values], ["at"]),
        "map": lambda: pa.MapArray.from_arrays(list(range(11)), pa.array(["at"] * 10), values),
    }[shape]()
    [(number, reason)] = list_rejected_rows(open_file(build_file(nested=nested)))
    assert number == 2
    assert reason.startswith("Column `nested` has the invalid value (nested): times must be within the years 1 to 9999")


def test_the_first_and_last_times_are_read() -> None:
    """The first and the last microsecond of the years 1 to 9999 are read exactly, in any unit and zone."""
    for kind, numbers, texts in (
        (pa.timestamp("ms", "UTC"), [-62_135_596_800_000, 253_402_300_799_999], ["0001-01-01T00:00:00.000000Z"]),
        (pa.timestamp("us", "Europe/Berlin"), [-62_135_596_800_000_000, 253_402_300_799_999_999], []),
        (pa.timestamp("us", "No/Zone"), [0, 253_402_300_799_999_999], ["1970-01-01T00:00:00.000000Z"]),
        (pa.date32(), [-719_162, 2_932_896], ["0001-01-01", "9999-12-31"]),
    ):
        content = build_file(value=build_numbers(numbers * 5, kind))
        reader = open_file(content, columns=("value",))
        found = [json.loads(each["payload"])["value"] for each in list_messages(reader)[:2]]
        assert found[: len(texts)] == texts
        assert list_rejected_rows(reader) == []


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (pa.timestamp("ns", "UTC"), 1_999, "1970-01-01T00:00:00.000001Z"),
        (pa.timestamp("ns", "UTC"), -1, "1969-12-31T23:59:59.999999Z"),
        (pa.timestamp("ns", "UTC"), -1_000, "1969-12-31T23:59:59.999999Z"),
        (pa.timestamp("ns"), -(2**63), "1677-09-21T00:12:43.145224"),
        (pa.timestamp("ns"), 1_999, "1970-01-01T00:00:00.000001"),
        (pa.time64("ns"), 1_999, "00:00:00.000001"),
        (pa.duration("ns"), 1_999, "1e-06s"),
        (pa.duration("ns"), -1_999, "-1e-06s"),
    ],
    ids=str,
)
def test_nanoseconds_are_cut_in_nested_values_too(kind: pa.DataType, number: int, text: str) -> None:
    """Digits beyond microseconds are cut, before 1970, too, alone and in lists, objects and maps."""
    values = build_numbers([number] * 10, kind)
    content = build_file(
        alone=values,
        listed=pa.ListArray.from_arrays(list(range(11)), values),
        nested=pa.StructArray.from_arrays([values], ["at"]),
        mapped=pa.MapArray.from_arrays(list(range(11)), pa.array(["at"] * 10), values),
    )
    payload = json.loads(list_messages(open_file(content))[0]["payload"])
    assert payload | {"state": "on"} == {
        "state": "on",
        "alone": text,
        "listed": [text],
        "nested": {"at": text},
        "mapped": [["at", text]],
    }


@pytest.mark.parametrize("missing", [None, []], ids=str)
def test_lists_of_nanoseconds_are_separate_in_each_row(missing: list[int] | None) -> None:
    """Each row has the times of its own list, also after rows without times and in later row groups."""
    kind = pa.list_(pa.timestamp("ns"))
    listed = pa.array([*[missing] * 5, *([n * 1_000 - 1, None] for n in range(5))], kind)
    payloads = [json.loads(each["payload"]) for each in list_messages(open_file(build_file(listed=listed)))]
    assert payloads[4].get("listed") == missing
    assert [each["listed"] for each in payloads[5:7]] == [
        ["1969-12-31T23:59:59.999999", None],
        ["1970-01-01T00:00:00", None],
    ]


def test_int96_times_are_read_in_all_years() -> None:
    """A time in the deprecated type INT96, which Spark writes, is read as it is, or its row is rejected."""
    texts = ["1600-01-01T00:00:00.000001", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999", "2600-01-01"]
    times = pa.array([datetime.fromisoformat(each) for each in texts], pa.timestamp("us"))
    target = io.BytesIO()
    pq.write_table(pa.table({"time": times, "value": times}), target, use_deprecated_int96_timestamps=True)
    reader = open_file(target.getvalue(), time_zone="UTC")
    assert [each["payload"] for each in list_messages(reader)] == [f'{{"value":"{texts[n]}"}}' for n in (0, 2)]
    assert [reason.split(",")[0] for _, reason in list_rejected_rows(reader)] == [
        "Column `time` has the time 9999-12-31T23:59:59.999999Z",
        "Column `time` has the time 2600-01-01T00:00:00.000000Z",
    ]


@pytest.mark.parametrize(
    "content", [b"PAR1", build_file()[:-20], b"", b"time,x\n1,2\n", build_file()[:-8] + b"\xff" * 4 + b"PAR1"]
)
def test_a_file_with_a_damaged_footer_is_rejected(content: bytes) -> None:
    """A file with an unreadable footer is rejected as no Parquet file."""
    with pytest.raises(FileRejectedError, match="not a valid Parquet file"):
        open_file(content)


def test_damaged_pages_are_rejected() -> None:
    """If data pages are damaged, the import fails with the position of the damage."""
    content = bytearray(build_file(state=pa.array([f"text {n}" for n in range(10)])))
    content[4:200] = b"\xff" * 196
    with pytest.raises(FileRejectedError, match="damaged at row 1"):
        list_messages(open_file(bytes(content)))


def test_steps_of_large_rows_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step ends before its rows have more than the maximum size; one row can be a whole step."""
    for size, rows in ((50, [2] * 5), (1, [1] * 10)):
        monkeypatch.setattr(parquet_reader, "_PART_BYTES", size)
        monkeypatch.setattr(parquet_reader, "STEP_BYTES", size)
        assert [step.rows for step in read_all_steps(open_file(build_file()))] == rows


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ({"n" * 900: [1] * 10}, [3, 1, 3, 3]),
        ({"nested": [[{"n" * 900: 1}]] * 10}, [3, 1, 3, 3]),
        ({"escaped": ["\x01" * 200] * 10}, [4, 4, 2]),
    ],
)
def test_steps_of_rows_with_long_messages_are_short(
    monkeypatch: pytest.MonkeyPatch, columns: dict[str, list[Any]], rows: list[int]
) -> None:
    """A step has limited messages although these repeat names of columns and of properties, and escape characters."""
    for module, name in ((parquet_reader, "_PART_BYTES"), (parquet_reader, "STEP_BYTES")):
        monkeypatch.setattr(module, name, 3_000)
    monkeypatch.setattr(step_rows, "MAX_STEP_MESSAGE_BYTES", 3_000)
    steps = read_all_steps(open_file(build_file(**{name: pa.array(values) for name, values in columns.items()})))
    assert [step.rows for step in steps] == rows
    numbers = [number for step in steps for number in step.messages.column("number").to_pylist()]
    assert numbers == list(range(1, 11))


@pytest.mark.parametrize("microseconds", [0, 2**62])
def test_rows_with_long_nested_names_need_limited_memory(monkeypatch: pytest.MonkeyPatch, microseconds: int) -> None:
    """A step has limited messages, and short texts of rejected rows, if the names of nested properties are long."""
    monkeypatch.setattr(parquet_reader, "STEP_BYTES", 2_000_000)
    target = io.BytesIO()
    times = pa.array([microseconds] * 40, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"time": times, "nested": pa.array([[{"n" * 100_000: 1}]] * 40)}), target)
    steps = read_all_steps(open_file(target.getvalue()))
    assert sum(step.rows for step in steps) == 40
    assert max(step.rows for step in steps) < 20
    assert [row for step in steps for row in step.rejected if len(row.record) > step_rows.MAX_RECORD_CHARACTERS] == []


def test_a_row_that_repeats_long_nested_names_too_often_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is too large if the names of its nested properties are larger than a step, although they are missing."""
    monkeypatch.setattr(parquet_reader, "STEP_BYTES", 50_000)
    kind = pa.list_(pa.struct([("n" * 1_000, pa.int8())]))
    lists = pa.array([[{}] * (60 if number == 4 else 1) for number in range(10)], kind)
    rejected = list_rejected_rows(open_file(build_file(nested=lists)))
    assert rejected == [(5, "The message has more than 262144 bytes.")]


def test_rows_that_are_too_large_are_rejected_among_others() -> None:
    """A row that is too large for a message is rejected; the rows before and after it become messages."""
    texts = ["small"] * 4 + ["x" * (MAX_MESSAGE_BYTES + 1)] * 2 + ["small"] * 4
    reader = open_file(build_file(state=pa.array(texts)), columns=("state",))
    assert list_rejected_rows(reader) == [(number, "The message has more than 262144 bytes.") for number in (5, 6)]
    assert [each["number"] for each in list_messages(reader)] == [1, 2, 3, 4, 7, 8, 9, 10]


@contextmanager
def measure_memory() -> Iterator[pa.MemoryPool]:
    """Context manager: yield a memory pool that measures the memory that Arrow allocates meanwhile."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


@pytest.mark.parametrize("encoding", ["RLE_DICTIONARY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("path", ["text", "nested.text"])
def test_repeated_texts_need_little_memory(encoding: str, path: str) -> None:
    """A small file that would unpack to 500 MB of repeated text is read with less than half of this memory."""
    texts = pa.array(["x" * 5_000_000]).take(pa.repeat(0, 100))
    content = io.BytesIO()
    options: dict[str, Any] = {}
    if encoding != "RLE_DICTIONARY":
        options = {"use_dictionary": False, "column_encoding": {"time": "PLAIN", path: encoding}}
    columns = {"text": texts} if path == "text" else {"nested": pa.StructArray.from_arrays([texts], ["text"])}
    table = pa.table({"time": pa.array([START] * 100, pa.timestamp("us", "UTC")), **columns})
    pq.write_table(table, content, compression="zstd", **options)
    assert len(content.getvalue()) < 100_000
    with measure_memory() as memory:
        assert len(list_rejected_rows(open_file(content.getvalue()))) == 100
        assert 0 < memory.max_memory() < 250_000_000


def test_a_list_with_too_many_values_is_rejected() -> None:
    """If a column has more values per row than a message has bytes, the file is rejected before it is unpacked."""
    content = build_file(nested=pa.array([[0] * (MAX_MESSAGE_BYTES + 1)] * 10))
    with pytest.raises(FileRejectedError, match=r"Column `nested\.list\.element` has more than 262144 values per row"):
        open_file(content).read_step(0, 1)


def test_a_long_list_is_rejected_among_short_ones() -> None:
    """A list with more values than fit into a message rejects its row; other rows become messages."""
    lists = [[0]] * 5 + [[0] * (MAX_MESSAGE_BYTES // 2 + 1)] + [[0]] * 4
    reader = open_file(build_file(nested=pa.array(lists)), columns=("nested",))
    assert [number for number, _ in list_rejected_rows(reader)] == [6]


def test_large_row_groups_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group over the size limit, after decompression, is rejected."""
    monkeypatch.setattr(parquet_sizes, "MAX_GROUP_BYTES", 10)
    with pytest.raises(FileRejectedError, match="smaller row groups"):
        list_messages(open_file(build_file()))


def test_a_row_group_that_is_too_large_is_rejected_before_its_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group whose footer exceeds a limit is rejected without reading the headers of its pages."""
    reads: list[object] = []
    monkeypatch.setattr(parquet_reader, "read_column_pages", lambda *args: reads.append(args))
    monkeypatch.setattr(parquet_sizes, "MAX_GROUP_BYTES", 10)
    with pytest.raises(FileRejectedError, match="smaller row groups"):
        list_messages(open_file(build_file()))
    assert reads == []


def test_the_pages_of_a_row_group_are_limited_over_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group is rejected if its columns together have more pages than the limit."""
    content = io.BytesIO()
    pq.write_table(pa.table({"time": ["2026-01-05T11:00:00Z"], "value": [1]}), content, use_dictionary=False)
    monkeypatch.setattr(parquet_reader, "MAX_STEP_PAGES", 2)
    assert len(list_messages(open_file(content.getvalue()))) == 1
    monkeypatch.setattr(parquet_reader, "MAX_STEP_PAGES", 1)
    with pytest.raises(FileRejectedError, match="Row group 1 has more than 1 pages in the imported columns"):
        list_messages(open_file(content.getvalue()))


def test_the_pages_of_a_step_are_limited_over_all_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is rejected if the row groups of a step together have more pages than the limit; each step has its own."""
    content = io.BytesIO()
    table = pa.table({"time": ["2026-01-05T11:00:00Z"] * 2, "value": [1, 2]})
    pq.write_table(table, content, use_dictionary=False, row_group_size=1)
    monkeypatch.setattr(parquet_reader, "MAX_STEP_PAGES", 3)
    reader = open_file(content.getvalue())
    with pytest.raises(FileRejectedError, match="Row group 2 and the row groups shortly before it have more than 3 p"):
        reader.read_step(0, 1)
    monkeypatch.setattr(parquet_reader, "MAX_STEP_PAGES", 4)
    step = reader.read_step(0, 1)
    assert step is not None
    assert step.rows == 2
