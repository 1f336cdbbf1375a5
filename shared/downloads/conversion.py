"""Archived rows of one connection turned into files of one format, streaming.

Rows come as record batches with ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON
text). The same rows in the same batches give the same bytes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path as FilePath

import pyarrow as pa

from shared.downloads import csv_rows
from shared.downloads.flattening import Flattener, Path, check_width
from shared.downloads.json_rows import line_buffer
from shared.downloads.models import Format
from shared.downloads.output import FILE_BYTES, HashingFile, RollingFiles, WrittenFile
from shared.downloads.parquet_rows import ParquetFiles
from shared.downloads.rows import slices

type Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Reads the rows from their begin, each time it is called."""

CELLS: int = 2_000_000
"""Cells of a CSV file that are made at a time."""


def write(
    form: Format, connection: str, rows: Rows, folder: FilePath, known: frozenset[Path]
) -> tuple[tuple[WrittenFile, ...], frozenset[Path]]:
    """Write the files of a connection; return them and the payload paths that have columns of their own.

    Args:
        form: of the files.
        connection: its lookup.
        rows: gives its rows.
        folder: where the files go.
        known: payload paths that get columns in any case.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    match form:
        case Format.CSV:
            return write_csv(connection, rows, folder, known)
        case Format.JSONL:
            return write_jsonl(connection, rows, folder), frozenset()
        case Format.PARQUET:
            return write_parquet(connection, rows, folder), frozenset()


def write_csv(
    connection: str, rows: Rows, folder: FilePath, known: frozenset[Path], limit: int = FILE_BYTES
) -> tuple[tuple[WrittenFile, ...], frozenset[Path]]:
    """Write CSV files whose columns are the known leaves and those of the rows; return the files and the leaves.

    Most data have the leaves of their first rows throughout, so that one pass is enough. Where others turn up later,
    all rows are looked through before a second pass.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    with Flattener() as flattener:
        first = next(slices(rows()), None)
        leaves = known if first is None else known | flattener.leaves(first.column("payload"))
        check_width(leaves)
        files = _csv_files(flattener, connection, rows, folder, leaves, limit)
        if files is None:
            for batch in slices(rows()):
                leaves |= flattener.leaves(batch.column("payload"))
                check_width(leaves)
            files = _csv_files(flattener, connection, rows, folder, leaves, limit)
        assert files is not None  # noqa: S101  every leaf is known by now
        return files, leaves


def write_jsonl(connection: str, rows: Rows, folder: FilePath, limit: int = FILE_BYTES) -> tuple[WrittenFile, ...]:
    """Write files of one JSON object a line."""
    files = RollingFiles(folder, lambda _: None, limit=limit)
    try:
        for batch in slices(rows()):
            _append(files, batch, line_buffer(connection, batch))
        return files.close()
    finally:
        files.abandon()


def write_parquet(connection: str, rows: Rows, folder: FilePath, limit: int = FILE_BYTES) -> tuple[WrittenFile, ...]:
    """Write Parquet files."""
    files = ParquetFiles(connection, folder, limit)
    try:
        for batch in slices(rows()):
            files.append(batch)
        return files.close()
    finally:
        files.abandon()


def _csv_files(
    flattener: Flattener, connection: str, rows: Rows, folder: FilePath, leaves: frozenset[Path], limit: int
) -> tuple[WrittenFile, ...] | None:
    """Write the files; None when a row has a leaf that is not among the given ones."""
    columns = csv_rows.columns(leaves)
    head = csv_rows.header([name for name, _ in columns])
    paths = [path for _, path in columns]
    files = RollingFiles(folder, lambda file: _write(file, head), limit=limit)
    try:
        for batch in _narrow(slices(rows()), len(paths)):
            payloads = batch.column("payload")
            values = flattener.values(payloads, paths)
            if not flattener.complete(payloads, leaves, values):
                return None
            _append(files, batch, csv_rows.lines(connection, batch, values if paths else None))
        return files.close()
    finally:
        files.abandon()


def _narrow(batches: Iterator[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, CELLS // max(1, columns))
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def _append(files: RollingFiles, batch: pa.RecordBatch, data: memoryview) -> None:
    file = files.room_for(len(data))
    file.write(data)
    file.rows += batch.num_rows


def _write(file: HashingFile, data: bytes) -> None:
    file.write(data)
