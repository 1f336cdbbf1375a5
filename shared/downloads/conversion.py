"""Archived rows of one connection turned into files of one format, streaming.

Rows come as record batches with ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON
text). The same rows in the same batches give the same bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from typing import Self

import pyarrow as pa

from shared.downloads.flattening import Flattener, Path, check_column_count
from shared.downloads.models import Format
from shared.downloads.output_files import FILE_BYTES, HashingFile, ParquetFiles, RollingFiles, WrittenFile
from shared.downloads.row_feed import map_in_order, slice_batches
from shared.downloads.row_formats import format_csv_lines, format_header, format_json_lines, name_columns

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
    try:
        match form:
            case Format.CSV:
                return write_csv(connection, rows, folder, known)
            case Format.JSONL:
                return write_jsonl(connection, rows, folder), frozenset()
            case Format.PARQUET:
                return write_parquet(connection, rows, folder), frozenset()
    finally:
        pa.default_memory_pool().release_unused()


def write_csv(
    connection: str, rows: Rows, folder: FilePath, known: frozenset[Path], limit: int = FILE_BYTES
) -> tuple[tuple[WrittenFile, ...], frozenset[Path]]:
    """Write CSV files whose columns are the known leaves and those of the rows; return the files and the leaves.

    Most data have the leaves of their first rows throughout, so that one pass is enough. Where others turn up later,
    all rows are looked through before a second pass.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    with FlattenerPool() as flatteners:
        first = next(slice_batches(rows()), None)
        leaves = known if first is None else known | flatteners.leaves(first)
        check_column_count(leaves)
        files = _csv_files(flatteners, connection, rows, folder, leaves, limit)
        if files is None:
            for found in map_in_order(flatteners.leaves, slice_batches(rows())):
                leaves |= found
                check_column_count(leaves)
            files = _csv_files(flatteners, connection, rows, folder, leaves, limit)
        assert files is not None  # noqa: S101  every leaf is known by now
        return files, leaves


def write_jsonl(connection: str, rows: Rows, folder: FilePath, limit: int = FILE_BYTES) -> tuple[WrittenFile, ...]:
    """Write files of one JSON object a line."""
    files = RollingFiles(folder, lambda _: None, limit=limit)
    try:
        for lines in map_in_order(
            lambda batch: Lines(format_json_lines(connection, batch), batch.num_rows), slice_batches(rows())
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
class Lines:
    """The text of some rows."""

    data: memoryview
    rows: int

    def append_to(self, files: RollingFiles) -> None:
        """Write it to the file that has room for it."""
        file = files.room_for(len(self.data))
        file.write(self.data)
        file.rows += self.rows


class FlattenerPool:
    """As many flatteners as threads ask for at once."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[Flattener] = SimpleQueue()
        self._made = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def leaves(self, rows: pa.RecordBatch) -> frozenset[Path]:
        """Return the leaves of some rows."""
        with self.one() as flattener:
            return flattener.leaves(rows.column("payload"))

    @contextmanager
    def one(self) -> Iterator[Flattener]:
        """Lend one."""
        try:
            flattener = self._idle.get_nowait()
        except Empty:
            flattener = self._made.enter_context(Flattener())
        try:
            yield flattener
        finally:
            self._idle.put(flattener)


def _csv_files(
    flatteners: FlattenerPool, connection: str, rows: Rows, folder: FilePath, leaves: frozenset[Path], limit: int
) -> tuple[WrittenFile, ...] | None:
    """Write the files; None when a row has a leaf that is not among the given ones."""
    columns = name_columns(leaves)
    head = format_header([name for name, _ in columns])
    paths = [path for _, path in columns]

    def lines(batch: pa.RecordBatch) -> Lines | None:
        payloads = batch.column("payload")
        with flatteners.one() as flattener:
            values = flattener.values(payloads, paths)
        if values is None:
            return None
        return Lines(format_csv_lines(connection, batch, values if paths else None), batch.num_rows)

    files = RollingFiles(folder, lambda file: _write(file, head), limit=limit)
    try:
        for some in map_in_order(lines, _narrow(slice_batches(rows()), len(paths))):
            if some is None:
                return None
            some.append_to(files)
        return files.close()
    finally:
        files.abandon()


def _narrow(batches: Iterator[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, CELLS // max(1, columns))
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def _write(file: HashingFile, data: bytes) -> None:
    file.write(data)
