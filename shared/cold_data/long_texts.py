"""Sorting of archived rows with long texts in limited memory.

DuckDB processes 2,048 rows at a time and allocates several such vectors per thread: gigabytes, if texts have 256 KiB.
Its sort fails instead of using the disk if many rows have texts of a few hundred bytes. Therefore long texts are
written (spilled) to a file, and the engine sorts short rows that refer to these texts.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from shared.cold_data.scratch import require_scratch_space
from shared.cold_data.tables import COLUMNS, GROUP_BYTES, LONG, measure_longest_row_bytes, to_text_array

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_SHORT_BYTES: Final = 1024
"""Maximum size of a row's texts (columns ``LONG``) that DuckDB may process; a vector of such rows takes 2 MiB."""
MAX_SORTED_ROW_BYTES: Final = 128
"""Maximum size of a row's texts that DuckDB may sort, if the texts of all rows can exceed ``MAX_SORTED_BYTES``.

With more rows of 256 bytes than fit into its memory, its sort fails instead of using the disk.
"""
MAX_SORTED_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of the texts of all rows that DuckDB may sort, if a row can exceed ``MAX_SORTED_ROW_BYTES``."""
TABLE: Final = "short_rows"
"""Temporary table of short rows: the columns that are not spilled, ``place`` (offset in the file), and text lengths."""
ROWS: Final = 16_384
"""Number of short rows that are inserted into the table together."""
ROWS_OF_UNKNOWN_SIZE: Final = 32
"""Number of rows that are read together if the size of a row group is unknown."""
BATCH_BYTES: Final = GROUP_BYTES // 2


def can_stream_in_memory(longest_row_bytes: int | None) -> bool:
    """Return whether DuckDB has enough memory to read rows in stored order.

    Args:
        longest_row_bytes: maximum size of a row's texts in bytes; None if it is unknown.
    """
    return longest_row_bytes is not None and longest_row_bytes <= MAX_SHORT_BYTES


def can_sort_in_memory(row_count: int, longest_row_bytes: int | None) -> bool:
    """Return whether DuckDB has enough memory to sort rows together with their texts.

    Args:
        row_count: number of rows.
        longest_row_bytes: maximum size of a row's texts in bytes; None if it is unknown.
    """
    if longest_row_bytes is None or not can_stream_in_memory(longest_row_bytes):
        return False
    return longest_row_bytes <= MAX_SORTED_ROW_BYTES or row_count * longest_row_bytes <= MAX_SORTED_BYTES


def list_text_reference_columns(spilled_columns: Sequence[str]) -> list[str]:
    """Return the columns that refer to spilled texts: the offset in the file, and the length of each text."""
    return ["place", *(f"{name}_length" for name in spilled_columns)]


def stream_rows(file: Path, columns: Sequence[str], longest_row_bytes: int | None) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of an archive blob in stored order, in batches of limited size.

    Args:
        file: local copy of the blob.
        columns: columns to read.
        longest_row_bytes: size of the longest row from the blob's summary; if None, large row groups are read in small
            batches.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415  loading it takes long

    with pq.ParquetFile(file, pre_buffer=False) as blob:
        for number in range(blob.num_row_groups):
            group = blob.metadata.row_group(number)
            rows = (
                group.num_rows if longest_row_bytes is not None or _can_load_row_group(group) else ROWS_OF_UNKNOWN_SIZE
            )
            yield from blob.iter_batches(rows, row_groups=[number], columns=[*columns], use_threads=False)


def _can_load_row_group(row_group_metadata: "pq.RowGroupMetaData") -> bool:
    """Return whether a Parquet row group fits into memory if the length of its longest text is unknown.

    The result is False if a dictionary encodes the payloads, because rows that share a payload are larger in memory
    than in the file.
    """
    columns = [row_group_metadata.column(number) for number in range(row_group_metadata.num_columns)]
    long = [column.encodings for column in columns if column.path_in_schema == "payload"]
    return row_group_metadata.total_byte_size <= GROUP_BYTES and not any(
        "DICTIONARY" in name for names in long for name in names
    )


class LongTextSpill:
    """Context manager that stores rows of blobs: long texts in a file, the other columns in a table of a DuckDB engine.

    The file (spill file) is deleted at the end of the ``with`` block.

    Args:
        engine: DuckDB engine in which the table is created.
        folder: folder of the file.
        spilled_columns: names of the columns whose texts are written to the file.
        other_columns: names of the columns that the table contains unchanged.
    """

    def __init__(
        self,
        engine: "duckdb.DuckDBPyConnection",
        folder: Path,
        spilled_columns: Sequence[str],
        other_columns: Sequence[str],
    ) -> None:
        self.longest = 0
        """Size of the longest row's texts in bytes."""
        self._engine = engine
        self._folder = folder
        self._spilled = spilled_columns
        self._others = other_columns
        self._path = folder / "long-texts"
        self._file = self._path.open("w+b")
        self._size = 0
        self._pending: list[pa.RecordBatch] = []
        self._has_table = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def add_blob(self, file: Path, longest_row_bytes: int | None) -> None:
        """Store the rows of an archive blob: long texts in the file, other columns in the table.

        Args:
            file: local copy of the blob.
            longest_row_bytes: size of the longest row from the blob's summary; None if it is unknown.

        Raises:
            WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL`` if the disk has no space for the long texts.
        """
        for rows in stream_rows(file, [*self._others, *self._spilled], longest_row_bytes):
            self._pending.append(self._replace_texts_by_references(rows))
            if sum(each.num_rows for each in self._pending) >= ROWS:
                self._insert_pending_rows()

    def read_rows(self, query_sql: str) -> Iterator["pa.RecordBatch"]:
        """Run a query over the table of short rows; yield its rows with their long texts, in batches of limited size.

        Args:
            query_sql: SQL whose last columns are ``place`` (the offset in the file) and the lengths of the texts.
        """
        self._insert_pending_rows()
        if not self._has_table:
            return
        self._file.flush()
        for batch in self._engine.sql(query_sql).to_arrow_reader(ROWS):
            for rows in self._iterate_row_ranges(batch):
                yield self._replace_references_by_texts(batch.slice(rows.start, len(rows)))

    def _replace_texts_by_references(self, rows: "pa.RecordBatch") -> "pa.RecordBatch":
        """Append the long texts of rows to the file; return the rows with references to the texts instead."""
        import pyarrow as pa  # noqa: PLC0415  loading it takes long
        import pyarrow.compute as pc  # noqa: PLC0415  as above

        columns = [rows.column(name).cast(pa.binary()) for name in self._spilled]
        sizes = [pc.binary_length(column) for column in columns]
        self.longest = max(self.longest, measure_longest_row_bytes(rows, self._spilled))
        joined = pc.binary_join_element_wise(*columns, b"")
        require_scratch_space(self._folder, joined.nbytes)
        # The joined array starts at offset 0 of its buffer, so a row's offset is its position.
        offsets = pa.Int32Array.from_buffers(pa.int32(), len(joined) + 1, [None, joined.buffers()[1]])
        places = pc.add(offsets.cast(pa.int64())[:-1], self._size)
        self._size += self._file.write(memoryview(joined.buffers()[2])[: offsets[-1].as_py()])
        others = [rows.column(name) for name in self._others]
        names = [*self._others, *list_text_reference_columns(self._spilled)]
        return pa.RecordBatch.from_arrays([*others, places, *sizes], names=names)

    def _insert_pending_rows(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  loading it takes long

        if not self._pending:
            return
        self._engine.register("arrived", pa.Table.from_batches(self._pending))
        begin = f"INSERT INTO {TABLE}" if self._has_table else f"CREATE OR REPLACE TEMP TABLE {TABLE} AS"
        self._engine.execute(f"{begin} SELECT * FROM arrived")  # noqa: S608  our own names
        self._engine.unregister("arrived")
        self._pending.clear()
        self._has_table = True

    def _iterate_row_ranges(self, batch: "pa.RecordBatch") -> Iterator[range]:
        """Yield ranges of row numbers whose texts have a limited total size.

        A single long row may exceed the limit.
        """
        first, size = 0, 0
        for number, its in enumerate(self._measure_text_bytes_per_row(batch)):
            if size + its > BATCH_BYTES and number > first:
                yield range(first, number)
                first, size = number, 0
            size += its
        yield range(first, batch.num_rows)

    def _measure_text_bytes_per_row(self, batch: "pa.RecordBatch") -> list[int]:
        columns = [batch.column(f"{name}_length").to_pylist() for name in self._spilled]
        return [sum(row) for row in zip(*columns, strict=True)]

    def _replace_references_by_texts(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415  loading it takes long

        found = self._read_texts(batch.column("place").to_pylist(), self._measure_text_bytes_per_row(batch))
        columns = {
            name: batch.column(name)
            for name in batch.schema.names
            if name not in list_text_reference_columns(self._spilled)
        }
        begins = [0] * batch.num_rows
        for name in self._spilled:
            ends = [
                begin + size for begin, size in zip(begins, batch.column(f"{name}_length").to_pylist(), strict=True)
            ]
            columns[name] = to_text_array(
                [text[begin:end] for text, begin, end in zip(found, begins, ends, strict=True)]
            )
            begins = ends
        return pa.RecordBatch.from_pydict(columns)

    def _read_texts(self, offsets: Sequence[int], sizes: Sequence[int]) -> list[bytes]:
        """Read the long texts at the given positions of the spill file; adjacent texts are read together."""
        found: list[bytes] = []
        first = 0
        for number in range(1, len(offsets) + 1):
            if number == len(offsets) or offsets[number] != offsets[number - 1] + sizes[number - 1]:
                ends = [*accumulate(sizes[first:number])]
                data = os.pread(self._file.fileno(), ends[-1], offsets[first])
                found += [data[end - size : end] for end, size in zip(ends, sizes[first:number], strict=True)]
                first = number
        return found


UNSPILLED_COLUMNS: Final = tuple(name for name in COLUMNS if name not in LONG)
"""All archive columns except those with long texts."""
