"""Conversion of archived rows of one connection to files of one format, as a stream.

Rows are record batches with ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
Equal batches produce equal bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from typing import Self

import pyarrow as pa

from shared.downloads.flattening import Flattener, KeyPath, check_column_count
from shared.downloads.models import Format
from shared.downloads.output_files import FILE_BYTES, HashingFile, ParquetFiles, RollingFiles, WrittenFile
from shared.downloads.row_feed import map_in_order, slice_batches
from shared.downloads.row_formats import format_csv_lines, format_header, format_json_lines, name_columns

type Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Function that reads the rows from the beginning at each call."""

CSV_CELLS_PER_BATCH: int = 2_000_000
"""Cells of a CSV file that are converted together."""


def write_files(
    file_format: Format, connection: str, rows: Rows, folder: FilePath, known: frozenset[KeyPath]
) -> tuple[tuple[WrittenFile, ...], frozenset[KeyPath]]:
    """Write the files of a connection; return them with the payload paths that have their own columns.

    Args:
        file_format: format of the files.
        connection: lookup of the connection.
        rows: reads the rows.
        folder: target folder.
        known: payload paths that always get columns.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    try:
        match file_format:
            case Format.CSV:
                return write_csv(connection, rows, folder, known)
            case Format.JSONL:
                return write_jsonl(connection, rows, folder), frozenset()
            case Format.PARQUET:
                return write_parquet(connection, rows, folder), frozenset()
    finally:
        pa.default_memory_pool().release_unused()


def write_csv(
    connection: str, rows: Rows, folder: FilePath, known: frozenset[KeyPath], limit: int = FILE_BYTES
) -> tuple[tuple[WrittenFile, ...], frozenset[KeyPath]]:
    """Write CSV files with columns for the known leaves and those of the rows; return files and leaves.

    One pass suffices if all rows have the leaves of the first rows, which is usual. Otherwise all rows are scanned for
    leaves before a second pass.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    with FlattenerPool() as flatteners:
        first = next(slice_batches(rows()), None)
        leaves = known if first is None else known | flatteners.leaves(first)
        check_column_count(leaves)
        files = _try_write_csv(flatteners, connection, rows, folder, leaves, limit)
        if files is None:
            for found in map_in_order(flatteners.leaves, slice_batches(rows())):
                leaves |= found
                check_column_count(leaves)
            files = _try_write_csv(flatteners, connection, rows, folder, leaves, limit)
        assert files is not None  # noqa: S101  all leaves are known after the scan
        return files, leaves


def write_jsonl(connection: str, rows: Rows, folder: FilePath, limit: int = FILE_BYTES) -> tuple[WrittenFile, ...]:
    """Write files with one JSON object per line."""
    files = RollingFiles(folder, lambda _: None, limit=limit)
    try:
        for lines in map_in_order(
            lambda batch: EncodedRows(format_json_lines(connection, batch), batch.num_rows), slice_batches(rows())
        ):
            lines.append_to(files)
        return files.close()
    finally:
        files.abandon()


def write_parquet(connection: str, rows: Rows, folder: FilePath, limit: int = FILE_BYTES) -> tuple[WrittenFile, ...]:
    """Write Parquet files."""
    files = ParquetFiles(connection, folder, limit)
    try:
        for batch in slice_batches(rows()):
            files.append(batch)
        return files.close()
    finally:
        files.abandon()


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Encoded text of encoded rows."""

    data: memoryview
    rows: int

    def append_to(self, files: RollingFiles) -> None:
        """Append the text to the current file."""
        file = files.select_file(len(self.data))
        file.write(self.data)
        file.rows += self.rows


class FlattenerPool:
    """Pool with one flattener per concurrent thread."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[Flattener] = SimpleQueue()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def leaves(self, rows: pa.RecordBatch) -> frozenset[KeyPath]:
        """Return the leaves of encoded rows."""
        with self.borrow() as flattener:
            return flattener.leaves(rows.column("payload"))

    @contextmanager
    def borrow(self) -> Iterator[Flattener]:
        """Lend an idle or new flattener."""
        try:
            flattener = self._idle.get_nowait()
        except Empty:
            flattener = self._open.enter_context(Flattener())
        try:
            yield flattener
        finally:
            self._idle.put(flattener)


def _try_write_csv(
    flatteners: FlattenerPool, connection: str, rows: Rows, folder: FilePath, leaves: frozenset[KeyPath], limit: int
) -> tuple[WrittenFile, ...] | None:
    """Write the files; return None if a row has a leaf without a column."""
    columns = name_columns(leaves)
    head = format_header([name for name, _ in columns])
    paths = [path for _, path in columns]

    def lines(batch: pa.RecordBatch) -> EncodedRows | None:
        payloads = batch.column("payload")
        with flatteners.borrow() as flattener:
            values = flattener.values(payloads, paths)
        if values is None:
            return None
        return EncodedRows(format_csv_lines(connection, batch, values if paths else None), batch.num_rows)

    files = RollingFiles(folder, lambda file: _write_bytes(file, head), limit=limit)
    try:
        for encoded in map_in_order(lines, _limit_cells(slice_batches(rows()), len(paths))):
            if encoded is None:
                return None
            encoded.append_to(files)
        return files.close()
    finally:
        files.abandon()


def _limit_cells(batches: Iterator[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, CSV_CELLS_PER_BATCH // max(1, columns))
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def _write_bytes(file: HashingFile, data: bytes) -> None:
    file.write(data)
