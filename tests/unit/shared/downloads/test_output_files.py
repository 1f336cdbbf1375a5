"""Tests of writing download files."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shared.downloads.output_files import SCHEMA, HashingFile, ParquetFiles, RollingFiles


def write_header(file: HashingFile) -> None:
    """Write the first line of each file."""
    file.write(b"h\n")


def write_rows(files: RollingFiles, *rows: bytes) -> None:
    """Write rows, each into the file that has space for it."""
    for row in rows:
        file = files.get_file_with_space(len(row))
        file.write(row)
        file.rows += 1


def test_a_new_file_begins_at_the_limit(tmp_path: Path) -> None:
    """Each file begins with the header; a row over the limit is alone in a file."""
    files = RollingFiles(tmp_path, write_header, limit=8)
    write_rows(files, b"aaa", b"bbb", b"ccc", b"d" * 20, b"e")
    found = files.close_and_list_files()
    assert [one.path.read_bytes() for one in found] == [b"h\naaabbb", b"h\nccc", b"h\n" + b"d" * 20, b"h\ne"]
    assert [(one.rows, one.size) for one in found] == [(2, 8), (1, 5), (1, 22), (1, 3)]
    assert [one.sha256 for one in found] == [hashlib.sha256(one.path.read_bytes()).hexdigest() for one in found]


def test_an_empty_download_has_a_header(tmp_path: Path) -> None:
    """A download without rows has one file with only the header."""
    [empty] = RollingFiles(tmp_path, write_header).close_and_list_files()
    assert (empty.path.read_bytes(), empty.rows) == (b"h\n", 0)


def test_a_failure_closes_the_open_file(tmp_path: Path) -> None:
    """If writing fails, the open file is closed, because Windows cannot delete open files."""
    files = RollingFiles(tmp_path, write_header)
    open_file = files.get_file_with_space(1)
    files.close_after_failure()
    assert open_file.closed
    RollingFiles(tmp_path, write_header).close_after_failure()


def test_parquet_files_have_all_columns(tmp_path: Path) -> None:
    """A Parquet file has a column for the connection and the rows of several batches."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    batch = pa.RecordBatch.from_pylist(
        [{"timestamp": at, "deviceId": "d", "messageId": "m", "payload": "{}"}],
        schema=pa.schema([SCHEMA.field(name) for name in ("timestamp", "deviceId", "messageId", "payload")]),
    )
    files = ParquetFiles("rig", tmp_path, 10**6)
    files.append(batch)
    files.append(batch)
    [written] = files.close_and_list_files()
    table = pq.read_table(written.path)
    assert (written.rows, table.schema.names) == (2, SCHEMA.names)
    assert table.to_pylist()[0] == {
        "timestamp": at,
        "connection": "rig",
        "deviceId": "d",
        "messageId": "m",
        "payload": "{}",
    }
