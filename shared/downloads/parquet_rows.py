"""Parquet: the fixed columns, and the payload as JSON text."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shared.downloads.output import HashingFile, RollingFiles, WrittenFile

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
