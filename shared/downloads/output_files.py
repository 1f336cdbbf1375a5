"""Output files of a download, with their hashes and row counts; at a size limit, a new file begins."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

FILE_BYTES: Final = 256_000_000
"""Maximum file size in bytes; a file that has a single larger slice of rows may exceed it."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """Finished file of a download, in the scratch folder.

    Attributes:
        path: path of the file.
        rows: number of rows without the header.
        size: size in bytes.
        sha256: hash of the file's bytes, lowercase hex.
    """

    path: Path
    rows: int
    size: int
    sha256: str


class HashingFile:
    """Binary file that computes the size and the hash of the bytes that are written to it.

    Attributes:
        rows: number of rows; the code that writes the rows counts them.
        size: number of bytes written so far.
    """

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self.size = 0
        self._path = path
        self._digest = hashlib.sha256()
        self._file = path.open("wb")

    @property
    def closed(self) -> bool:
        """True if the file is closed; pyarrow reads this property."""
        return self._file.closed

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes to the file, and update its size and hash."""
        self._digest.update(data)
        written = self._file.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        """Flush buffers to the operating system; called by pyarrow."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def to_written_file(self) -> WrittenFile:
        """Return path, row count, size and hash of this file, which must be closed."""
        return WrittenFile(self._path, self.rows, self.size, self._digest.hexdigest())


class RollingFiles:
    """Output files, each with a size limit; at least one file is written, so that an empty download has a header.

    Args:
        folder: target folder; files are named by number.
        begin_file: called with each new file, for instance to write a header.
        end_file: called with each file before the file is closed.
        limit: maximum file size in bytes.
    """

    def __init__(
        self,
        folder: Path,
        begin_file: Callable[[HashingFile], None],
        end_file: Callable[[HashingFile], None] = lambda _: None,
        limit: int = FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._open_writer = begin_file
        self._close_writer = end_file
        self._limit = limit
        self._current: HashingFile | None = None
        self._finished: list[WrittenFile] = []

    def get_file_with_space(self, required_bytes: int) -> HashingFile:
        """Return the current file if it has no rows yet or enough space; otherwise a new file."""
        if self._current is not None and self._current.rows and self._current.size + required_bytes > self._limit:
            self._finish_file(self._current)
        return self._current or self._open_next_file()

    def close_and_list_files(self) -> tuple[WrittenFile, ...]:
        """Close the last file and return all files."""
        self._finish_file(self._current or self._open_next_file())
        return tuple(self._finished)

    def close_after_failure(self) -> None:
        """Close the open output file after a failure, without finishing its content."""
        if self._current is not None:
            self._current.close()

    def _open_next_file(self) -> HashingFile:
        self._current = HashingFile(self._folder / f"{len(self._finished):05d}")
        self._open_writer(self._current)
        return self._current

    def _finish_file(self, file: HashingFile) -> None:
        self._close_writer(file)
        file.close()
        self._finished.append(file.to_written_file())
        self._current = None


SCHEMA: Final = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("connection", pa.string(), nullable=False),
        pa.field("deviceId", pa.string(), nullable=False),
        pa.field("messageId", pa.string(), nullable=False),
        pa.field("payload", pa.string(), nullable=False),
    ]
)
ROW_GROUP_ROWS: Final = 262_144
ROW_GROUP_BYTES: Final = 32 * 1024 * 1024


class ParquetFiles:
    """Parquet files of one connection, written batch by batch.

    Args:
        connection: lookup (id in URLs) of the connection.
        folder: target folder.
        limit: maximum file size in bytes.
    """

    def __init__(self, connection: str, folder: Path, limit: int) -> None:
        self._connection = connection
        self._files = RollingFiles(folder, self._open_writer, self._close_writer, limit)
        self._writer: Any = None
        self._pending: list[pa.RecordBatch] = []

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows to the Parquet file; they are written to the disk as soon as a row group is complete."""
        self._pending.append(rows)
        if (
            sum(batch.num_rows for batch in self._pending) >= ROW_GROUP_ROWS
            or self._count_pending_bytes() >= ROW_GROUP_BYTES
        ):
            self._write_row_group()

    def close_and_list_files(self) -> tuple[WrittenFile, ...]:
        """Close the last file and return all files."""
        self._write_row_group()
        return self._files.close_and_list_files()

    def close_after_failure(self) -> None:
        """Close the open output files after a failure."""
        self._files.close_after_failure()

    def _count_pending_bytes(self) -> int:
        return sum(batch.nbytes for batch in self._pending)

    def _write_row_group(self) -> None:
        if not self._pending:
            return
        rows = pa.Table.from_batches(self._pending)
        connection = pa.repeat(self._connection, rows.num_rows)
        group = rows.append_column("connection", connection).select(SCHEMA.names).cast(SCHEMA)
        file = self._files.get_file_with_space(self._count_pending_bytes())
        self._writer.write_table(group, row_group_size=group.num_rows)
        file.rows += group.num_rows
        self._pending.clear()

    def _open_writer(self, file: HashingFile) -> None:
        self._writer = pq.ParquetWriter(
            file, SCHEMA, compression="zstd", compression_level=1, use_dictionary=["connection", "deviceId"]
        )

    def _close_writer(self, _: HashingFile) -> None:
        self._writer.close()
