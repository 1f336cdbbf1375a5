"""Tests of the sizes that the page headers of Parquet files state."""

import io
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.downloads.import_request import ImportFormat
from shared.imports import parquet_sizes
from shared.imports.parquet_pages import BufferedSource, ColumnPages, read_column_pages
from shared.imports.parquet_reader import ParquetReader
from shared.imports.parquet_sizes import compute_max_rows_per_batch, require_row_group_within_limits
from shared.imports.row_mapping import FileRejectedError
from tests.unit.shared.imports.files import MemorySource, build_row_mapper

TEXTS = pa.array([f"text {number % 100}" for number in range(5_000)])
REPEATED = {"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}}


def write_file(column: pa.Array, **options: Any) -> bytes:
    """Return a Parquet file with one column."""
    content = io.BytesIO()
    pq.write_table(pa.table({"v": column}), content, **{"compression": "zstd", **options})
    return content.getvalue()


def read_pages(content: bytes, metadata: pq.FileMetaData | None = None) -> ColumnPages:
    """Return the pages of the first column of a file."""
    metadata = metadata or pq.read_metadata(io.BytesIO(content))
    return read_column_pages(MemorySource(content), metadata.row_group(0).column(0))


def encode_varint(value: int, size: int = 0) -> bytes:
    """Encode an integer in the compact protocol of Thrift, with padding to a number of bytes."""
    value <<= 1
    parts = bytearray()
    while value > 127 or len(parts) + 1 < size:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def change_stated_size(content: bytes, size: int) -> bytes:
    """Return a file whose footer states another unpacked size of its only column."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, group = content[start:-8], pq.read_metadata(io.BytesIO(content)).row_group(0)
    for true_size in (group.total_byte_size, group.column(0).total_uncompressed_size):
        stated = encode_varint(true_size)
        footer = footer.replace(stated, encode_varint(size, len(stated)))
    return content[:start] + footer + content[-8:]


@pytest.mark.parametrize(
    ("column", "options", "encodings"),
    [
        (TEXTS, {}, {"RLE_DICTIONARY"}),
        (TEXTS, {"version": "1.0"}, {"PLAIN_DICTIONARY"}),
        (TEXTS, {"use_dictionary": False, "compression": "none"}, set()),
        (TEXTS, REPEATED, {"DELTA_BYTE_ARRAY"}),
        (TEXTS, {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"}, {"DELTA_LENGTH_BYTE_ARRAY"}),
        (TEXTS, {"data_page_version": "2.0", "data_page_size": 100, "write_batch_size": 100}, {"RLE_DICTIONARY"}),
        (TEXTS, {"data_page_size": 100, "write_batch_size": 10, "write_page_checksum": True}, {"RLE_DICTIONARY"}),
        (pa.array(["x" * 100_000] * 3), {"use_dictionary": False, "write_page_index": True}, set()),
        (pa.array([list(range(number % 5)) for number in range(5_000)]), {}, {"RLE_DICTIONARY"}),
        (pa.array([None, 1.5, None]), {"use_dictionary": False}, set()),
    ],
)
def test_page_headers_agree_with_an_honest_footer(
    column: pa.Array, options: dict[str, Any], encodings: set[str]
) -> None:
    """The headers of pages state the size, number of values and encodings that the footer of a usual file states."""
    content = write_file(column, **options)
    described = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    pages = read_pages(content)
    assert pages.value_count == described.num_values
    assert pages.unpacked_bytes == described.total_uncompressed_size
    assert pages.encodings == encodings <= {*described.encodings, "PLAIN_DICTIONARY"}


@pytest.mark.parametrize("stated_size", [None, 100])
def test_rows_are_decoded_in_small_batches_whatever_the_footer_states(
    monkeypatch: pytest.MonkeyPatch, stated_size: int | None
) -> None:
    """Rows of a small file that need much memory are decoded in small batches, also if the footer states less."""
    monkeypatch.setattr(parquet_sizes, "_BATCH_BYTES", 1_000_000)
    content = write_file(pa.array(["x" * 100_000] * 50), **REPEATED)
    if stated_size is not None:
        content = change_stated_size(content, stated_size)
        metadata = pq.read_metadata(io.BytesIO(content))
        assert metadata.row_group(0).column(0).total_uncompressed_size == stated_size
        assert compute_max_rows_per_batch(metadata, 0) > 50
    reader = ParquetReader(MemorySource(content), build_row_mapper(ImportFormat.PARQUET, timestamp="v"))
    assert next(reader._iterate_batches(0, 50)).num_rows == 9


class RecordingSource(MemorySource):
    """MemorySource that records the size of each read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads = list[int]()

    def read(self, start: int, size: int) -> bytes:
        """Return a range of the bytes."""
        self.reads.append(size)
        return super().read(start, size)


def test_columns_and_pages_are_read_together() -> None:
    """The page headers of many columns with large pages need few reads of the file, and agree with separate reads."""
    content = io.BytesIO()
    column = pa.array(range(100_000), pa.int64())
    table = pa.table({f"c{number}": column for number in range(10)})
    pq.write_table(table, content, use_dictionary=False, compression="none", data_page_size=100_000)
    group, source = pq.read_metadata(content).row_group(0), RecordingSource(content.getvalue())
    expected = [read_column_pages(source, group.column(number)) for number in range(10)]
    assert sum(pages.page_count for pages in expected) > 50
    source.reads.clear()
    buffered = BufferedSource(source)
    assert [read_column_pages(buffered, group.column(number)) for number in range(10)] == expected
    assert len(source.reads) == 2


def test_a_failed_read_leaves_the_buffer_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a read of the file failed, a repetition of this read returns the right bytes."""
    source = MemorySource(bytes(5 * 1024**2) + b"right")
    buffered = BufferedSource(source)
    buffered.read(0, 5)
    with monkeypatch.context() as patch:
        patch.setattr(source, "read", Mock(side_effect=OSError("unavailable")))
        with pytest.raises(OSError, match="unavailable"):
            buffered.read(5 * 1024**2, 5)
    assert buffered.read(5 * 1024**2, 5) == b"right"


def test_row_groups_are_read_together() -> None:
    """The page headers of many small row groups need one read of the file."""
    content = io.BytesIO()
    pq.write_table(pa.table({"v": range(50)}), content, row_group_size=5)
    source = RecordingSource(content.getvalue())
    reader = ParquetReader(source, build_row_mapper(ImportFormat.PARQUET, timestamp="v"))
    assert sum(batch.num_rows for batch in reader._iterate_batches(0, 50)) == 50
    assert source.reads.count(4 * 1024**2) == 1


def test_a_row_group_is_limited_by_its_pages() -> None:
    """A row group whose pages unpack to more than the limit is rejected, also if the footer states less."""
    metadata = pq.read_metadata(io.BytesIO(write_file(TEXTS)))
    require_row_group_within_limits(metadata, 0, {0: ColumnPages(2**30, 5_000, frozenset())})
    with pytest.raises(FileRejectedError, match="Row group 1 can unpack to 1073741825 bytes"):
        require_row_group_within_limits(metadata, 0, {0: ColumnPages(2**30 + 1, 5_000, frozenset())})


@pytest.mark.parametrize(("writer", "value_count"), [("parquet-mr", 5_000), ("Parquet-MR", 5_000), ("x", 0)])
def test_pages_after_a_column_of_an_early_writer_count(writer: str, value_count: int) -> None:
    """A page that begins after the stated end of a column counts if the decoder reads it: with early parquet-mr."""
    content = change_stated_size(write_file(TEXTS, use_dictionary=False, compression="none"), 0)
    created = pq.read_metadata(io.BytesIO(content)).created_by
    content = content.replace(created.encode(), f"{writer} version 1.2.8".ljust(len(created)).encode())
    assert pq.read_metadata(io.BytesIO(content)).row_group(0).column(0).total_compressed_size == 0
    reader = ParquetReader(MemorySource(content), build_row_mapper(ImportFormat.PARQUET, timestamp="v"))
    assert reader._read_pages_of_wanted_columns(0)[0].value_count == value_count


@pytest.mark.parametrize(("column", "value_bytes"), [(TEXTS, 32), (pa.array(range(100)), 12)])
def test_values_of_a_dictionary_count(monkeypatch: pytest.MonkeyPatch, column: pa.Array, value_bytes: int) -> None:
    """Each value of a dictionary counts the bytes that the decoder allocates for it, in addition to its page."""
    content = write_file(column)
    metadata, pages = pq.read_metadata(io.BytesIO(content)), read_pages(content)
    assert pages.dictionary_value_count == 100
    size = metadata.row_group(0).total_byte_size + 100 * value_bytes
    monkeypatch.setattr(parquet_sizes, "MAX_GROUP_BYTES", size)
    require_row_group_within_limits(metadata, 0, {0: pages})
    monkeypatch.setattr(parquet_sizes, "MAX_GROUP_BYTES", size - 1)
    with pytest.raises(FileRejectedError, match=f"can unpack to {size} bytes"):
        require_row_group_within_limits(metadata, 0, {0: pages})


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"\x15\x00\x15\x02\x15", id="cut"),
        pytest.param(b"\x00", id="empty"),
        pytest.param(b"\x15\x00\x15\x01\x15\x00\x00", id="negative size"),
        pytest.param(b"\x15\x00\x15\x00\x15\x01\x00", id="negative packed size"),
        pytest.param(b"\x15\x00\x15\x00\x15\x00\x2c\x15\x01\x00\x00", id="negative number of values"),
        pytest.param(b"\x25\x00\x15\x00\x00", id="no page type"),
        pytest.param(b"\x1c\x00\x15\x00\x15\x00\x00", id="page type is a structure"),
        pytest.param(b"\x15\x00\x15\x00\x15\x00\x25\x02\x00", id="header of the type is a number"),
        pytest.param(b"\x15\x00\x15\x00\x15\x00\x2c\x1c\x00\x00\x00", id="number of values is a structure"),
        pytest.param(b"\x19\x00\x00", id="list"),
        pytest.param(b"\x15" + b"\xff" * 11, id="long integer"),
        pytest.param(b"\x1c" * 20, id="deep nesting"),
        pytest.param(b"\x05\xff\x7f\x00", id="unknown field"),
    ],
)
def test_invalid_page_headers_are_rejected(header: bytes) -> None:
    """A page header that is cut, nested too deeply, or has negative, missing or wrongly typed fields is rejected."""
    content = write_file(TEXTS, use_dictionary=False)
    with pytest.raises(pa.ArrowInvalid, match="a page header is not valid"):
        read_pages(content[:4] + header, pq.read_metadata(io.BytesIO(content)))
