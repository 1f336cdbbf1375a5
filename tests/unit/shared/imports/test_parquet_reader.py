"""Tests of the reader of Parquet files."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.downloads.import_request import ImportFormat
from shared.imports import parquet_reader
from shared.imports.parquet_reader import ParquetReader
from shared.imports.row_mapping import FileRejectedError
from tests.unit.shared.imports.files import MemorySource, build_mapper, list_messages, list_rejected_rows

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
    return ParquetReader(MemorySource(content), build_mapper(ImportFormat.PARQUET, **mapping))


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
    continued = open_file(build_file()).read(7, 8)
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


def test_large_row_groups_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group over the size limit, after decompression, is rejected."""
    monkeypatch.setattr(parquet_reader, "MAX_GROUP_BYTES", 10)
    with pytest.raises(FileRejectedError, match="smaller row groups"):
        list_messages(open_file(build_file()))
