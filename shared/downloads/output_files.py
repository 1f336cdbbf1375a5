"""The files of a download while they are written: counted, hashed, and rolled before they grow too large."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

FILE_BYTES: Final = 256_000_000
"""No file is larger, as long as one slice of rows fits into it."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file.

    Attributes:
        path: where it lies.
        rows: without the header.
        size: in bytes.
        sha256: lowercase hex, over all its bytes.
    """

    path: Path
    rows: int
    size: int
    sha256: str


class HashingFile:
    """A binary file being written."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self.size = 0
        self._path = path
        self._digest = hashlib.sha256()
        self._file = path.open("wb")

    @property
    def closed(self) -> bool:
        """Whether the file is closed; pyarrow asks."""
        return self._file.closed

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes."""
        self._digest.update(data)
        written = self._file.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        """Hand what is buffered to the operating system; pyarrow calls it."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def written(self) -> WrittenFile:
        """Return what the closed file is."""
        return WrittenFile(self._path, self.rows, self.size, self._digest.hexdigest())


class RollingFiles:
    """One file after another in a folder; at least one, so that an empty download has its header.

    Args:
        folder: where the files go, named by their number.
        begin: called with each new file.
        end: called with each file before it is closed.
        limit: bytes that a file may hold.
    """

    def __init__(
        self,
        folder: Path,
        begin: Callable[[HashingFile], None],
        end: Callable[[HashingFile], None] = lambda _: None,
        limit: int = FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._begin = begin
        self._end = end
        self._limit = limit
        self._current: HashingFile | None = None
        self._finished: list[WrittenFile] = []

    def room_for(self, size: int) -> HashingFile:
        """Return the file that takes this many bytes more: the current one, or the next."""
        if self._current is not None and self._current.rows and self._current.size + size > self._limit:
            self._finish(self._current)
        return self._current or self._next()

    def close(self) -> tuple[WrittenFile, ...]:
        """Return all files, finished."""
        self._finish(self._current or self._next())
        return tuple(self._finished)

    def abandon(self) -> None:
        """Close what is open, after a failure."""
        if self._current is not None:
            self._current.close()

    def _next(self) -> HashingFile:
        self._current = HashingFile(self._folder / f"{len(self._finished):05d}")
        self._begin(self._current)
        return self._current

    def _finish(self, file: HashingFile) -> None:
        self._end(file)
        file.close()
        self._finished.append(file.written())
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
    """Parquet files of one connection, filled batch by batch.

    Args:
        connection: whose rows they hold.
        folder: where they go.
        limit: bytes that a file may hold.
    """

    def __init__(self, connection: str, folder: Path, limit: int) -> None:
        self._connection = connection
        self._files = RollingFiles(folder, self._begin, self._end, limit)
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def append(self, rows: pa.RecordBatch) -> None:
        """Add some rows."""
        self._waiting.append(rows)
        if sum(batch.num_rows for batch in self._waiting) >= ROW_GROUP_ROWS or self._bytes() >= ROW_GROUP_BYTES:
            self._write_row_group()

    def close(self) -> tuple[WrittenFile, ...]:
        """Return all files, finished."""
        self._write_row_group()
        return self._files.close()

    def abandon(self) -> None:
        """Close what is open, after a failure."""
        self._files.abandon()

    def _bytes(self) -> int:
        return sum(batch.nbytes for batch in self._waiting)

    def _write_row_group(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        connection = pa.repeat(self._connection, rows.num_rows)
        group = rows.append_column("connection", connection).select(SCHEMA.names).cast(SCHEMA)
        file = self._files.room_for(self._bytes())
        self._writer.write_table(group, row_group_size=group.num_rows)
        file.rows += group.num_rows
        self._waiting.clear()

    def _begin(self, file: HashingFile) -> None:
        self._writer = pq.ParquetWriter(
            file, SCHEMA, compression="zstd", compression_level=1, use_dictionary=["connection", "deviceId"]
        )

    def _end(self, _: HashingFile) -> None:
        self._writer.close()
