"""Reader of uploaded Parquet files, which returns their rows as messages step by step.

Separate from ``uploaded_file`` because each format has its own reader, and this one loads slowly.
"""

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shared.imports.row_mapping import FileRejectedError, RowMapper, check_columns
from shared.imports.step_rows import RangeSource, RowCollector, StepRows

STEP_ROWS: Final = 20_000
MAX_GROUP_BYTES: Final = 1024**3
"""Maximum unpacked size of a row group; parts of a row group are unpacked together."""


class ParquetReader:
    """Reader of a Parquet file.

    Args:
        source: the uploaded file.
        mapper: converts rows to telemetry messages.

    Raises:
        FileRejectedError: the file is not a Parquet file, or lacks a column that the mapping names.
    """

    def __init__(self, source: RangeSource, mapper: RowMapper) -> None:
        self._mapper = mapper
        try:
            self._file = pq.ParquetFile(pa.PythonFile(_SeekableSource(source), mode="r"))
        except (pa.ArrowException, OSError) as error:
            raise FileRejectedError(f"The file is not a valid Parquet file: {_shorten_message(error)}.") from None
        self._columns = [str(name) for name in self._file.schema_arrow.names]
        check_columns(self._columns, mapper.mapping)
        wanted = mapper.mapping.columns
        special = {mapper.mapping.timestamp, mapper.mapping.device, mapper.mapping.message_id}
        self._wanted = None if wanted is None else sorted({*wanted, *filter(None, special)})
        self._next: tuple[int, Iterator[pa.RecordBatch]] | None = None

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns."""
        return self._columns

    def read(self, position: int, first_row: int, max_rows: int | None = None) -> StepRows | None:
        """Convert the rows of one step (a part of the file) to messages; return None at the end of the file.

        Args:
            position: number of rows of the file before the step; 0 for the first step.
            first_row: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step.
        """
        try:
            batch = self._read_batch(position, min(max_rows or STEP_ROWS, STEP_ROWS))
            rows = [] if batch is None else _to_rows(batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            fault = f"The file is damaged at row {position + 1} or shortly after it: {_shorten_message(error)}."
            raise FileRejectedError(fault) from None
        if batch is None:
            return None
        collector = RowCollector(first_row - 1)
        for row in rows:
            collector.number += 1
            try:
                collector.add(self._mapper.convert_row(row))
            except ValueError as error:
                collector.reject(str(error), json.dumps(row, default=str, ensure_ascii=False))
        return StepRows(position + len(rows), len(rows), collector.build_table(), collector.rejected)

    def _read_batch(self, position: int, size: int) -> pa.RecordBatch | None:
        """Read up to ``size`` rows of one row group, after the file's first ``position`` rows.

        Return None at the end of the file.
        """
        if self._next is None or self._next[0] != position:
            self._next = (position, self._iterate_batches(position, size))
        batch = next(self._next[1], None)
        self._next = None if batch is None else (position + batch.num_rows, self._next[1])
        return batch

    def _iterate_batches(self, position: int, size: int) -> Iterator[pa.RecordBatch]:
        before = 0
        for number in range(self._file.num_row_groups):
            group = self._file.metadata.row_group(number)
            if position < before + group.num_rows:
                if group.total_byte_size > MAX_GROUP_BYTES:
                    fault = f"Row group {number + 1} unpacks to {group.total_byte_size} bytes; the limit is"
                    raise FileRejectedError(f"{fault} {MAX_GROUP_BYTES}. Write the file with smaller row groups.")
                skipped = max(0, position - before)
                for batch in self._file.iter_batches(size, row_groups=[number], columns=self._wanted):
                    if skipped < batch.num_rows:
                        yield batch.slice(skipped)
                    skipped = max(0, skipped - batch.num_rows)
            before += group.num_rows


class _SeekableSource(io.RawIOBase):
    """Adapter that shows an uploaded file to pyarrow as a seekable Python file."""

    def __init__(self, source: RangeSource) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        """Return True, as the file interface of pyarrow requires."""
        return True

    def seekable(self) -> bool:
        """Return True, as the file interface of pyarrow requires."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the read position, like ``io.IOBase.seek``."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        """Return the read position in the file, like ``io.IOBase.tell``."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes from the read position on; all remaining bytes if ``size`` is negative."""
        wanted = self._source.size - self._position if size < 0 else size
        data = self._source.read(self._position, wanted) if wanted > 0 else b""
        self._position += len(data)
        return data


def _to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Convert a batch to rows of Python values; times are cut to microseconds, as Python has no nanoseconds."""
    columns = [
        array.cast(pa.timestamp("us", array.type.tz), safe=False) if pa.types.is_timestamp(array.type) else array
        for array in batch.columns
    ]
    names = batch.schema.names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*(each.to_pylist() for each in columns), strict=True)]


def _shorten_message(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")[:200]
