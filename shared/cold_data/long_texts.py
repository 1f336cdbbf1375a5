"""Rows with long texts, in bounded memory.

DuckDB works on 2,048 rows at a time, and holds several such vectors for each thread: with texts of 256 KiB gigabytes.
So long texts are laid aside, in a file of their own, and the engine sorts short rows that say where theirs lie.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from shared.cold_data.scratch import require_space
from shared.cold_data.tables import COLUMNS, GROUP_BYTES, LONG, measure_longest_row, to_text_array

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SHORT: Final = 1024
"""Bytes of a row's long texts up to which the engine may hold them: a vector of them takes 2 MiB."""
TABLE: Final = "laid"
"""Temporary table of the short rows: the columns that are kept, ``place`` and a length for each text laid aside."""
ROWS: Final = 16_384
"""Short rows that are handed over at a time."""
UNKNOWN_ROWS: Final = 32
"""Rows that are read at a time where nothing tells how much a row group holds."""
BATCH_BYTES: Final = GROUP_BYTES // 2


def is_short(length: int | None) -> bool:
    """Return whether the engine may hold the texts of rows, the longest of which has this length."""
    return length is not None and length <= SHORT


def reference_columns(laid: Sequence[str]) -> list[str]:
    """Return the columns that stand in the table in place of those laid aside."""
    return ["place", *(f"{name}_length" for name in laid)]


def stream_rows(file: Path, columns: Sequence[str], length: int | None) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a blob as they lie, in batches of bounded size.

    Args:
        file: the blob.
        columns: to be read.
        length: what the blob says of its longest row; where it says something, its row groups are bounded.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415  loading it takes long

    with pq.ParquetFile(file, pre_buffer=False) as blob:
        for number in range(blob.num_row_groups):
            group = blob.metadata.row_group(number)
            rows = group.num_rows if length is not None or _is_bounded(group) else UNKNOWN_ROWS
            yield from blob.iter_batches(rows, row_groups=[number], columns=[*columns], use_threads=False)


def _is_bounded(group: Any) -> bool:
    """Return whether a row group of unknown origin is small; a dictionary may hold one long payload for many rows."""
    columns = [group.column(number) for number in range(group.num_columns)]
    long = [column.encodings for column in columns if column.path_in_schema == "payload"]
    return group.total_byte_size <= GROUP_BYTES and not any("DICTIONARY" in name for names in long for name in names)


class LongTextSpill:
    """The long texts of some blobs in a file, and their other columns in a table of an engine.

    Args:
        engine: gets the table anew.
        folder: where the file goes; removed when this is closed.
        laid: which columns are laid aside.
        kept: which others are needed.
    """

    def __init__(
        self, engine: "duckdb.DuckDBPyConnection", folder: Path, laid: Sequence[str], kept: Sequence[str]
    ) -> None:
        self.longest = 0
        """Bytes that the texts of a row take together, of the row where they are longest."""
        self._engine = engine
        self._folder = folder
        self._laid = laid
        self._kept = kept
        self._path = folder / "long-texts"
        self._file = self._path.open("w+b")
        self._size = 0
        self._waiting: list[pa.RecordBatch] = []
        self._made = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def add(self, file: Path, length: int | None) -> None:
        """Add the rows of a blob.

        Raises:
            WorkspaceError: UNPROCESSABLE ``SCRATCH_FULL``.
        """
        for rows in stream_rows(file, [*self._kept, *self._laid], length):
            self._waiting.append(self._short(rows))
            if sum(each.num_rows for each in self._waiting) >= ROWS:
                self._insert()

    def rows(self, query: str) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of a query over the table, with the texts in place of where they lie, in bounded batches.

        Args:
            query: gives ``place`` and the lengths last.
        """
        self._insert()
        if not self._made:
            return
        self._file.flush()
        for batch in self._engine.sql(query).to_arrow_reader(ROWS):
            for first, last in self._bounded(batch):
                yield self._whole(batch.slice(first, last - first))

    def _short(self, rows: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415  loading it takes long
        import pyarrow.compute as pc  # noqa: PLC0415  as above

        columns = [rows.column(name).cast(pa.binary()) for name in self._laid]
        sizes = [pc.binary_length(column) for column in columns]
        self.longest = max(self.longest, measure_longest_row(rows, self._laid))
        joined = pc.binary_join_element_wise(*columns, b"")
        require_space(self._folder, joined.nbytes)
        # A fresh array begins at its buffers' begin, so that a row's place is its offset.
        offsets = pa.Int32Array.from_buffers(pa.int32(), len(joined) + 1, [None, joined.buffers()[1]])
        places = pc.add(offsets.cast(pa.int64())[:-1], self._size)
        self._size += self._file.write(memoryview(joined.buffers()[2])[: offsets[-1].as_py()])
        kept = [rows.column(name) for name in self._kept]
        names = [*self._kept, *reference_columns(self._laid)]
        return pa.RecordBatch.from_arrays([*kept, places, *sizes], names=names)

    def _insert(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  loading it takes long

        if not self._waiting:
            return
        self._engine.register("arrived", pa.Table.from_batches(self._waiting))
        begin = f"INSERT INTO {TABLE}" if self._made else f"CREATE OR REPLACE TEMP TABLE {TABLE} AS"
        self._engine.execute(f"{begin} SELECT * FROM arrived")  # noqa: S608  our own names
        self._engine.unregister("arrived")
        self._waiting.clear()
        self._made = True

    def _bounded(self, batch: "pa.RecordBatch") -> Iterator[tuple[int, int]]:
        """Yield the ends of list_hours of a batch whose texts have a bounded size; a single row may be larger."""
        first, size = 0, 0
        for number, its in enumerate(self._sizes(batch)):
            if size + its > BATCH_BYTES and number > first:
                yield first, number
                first, size = number, 0
            size += its
        yield first, batch.num_rows

    def _sizes(self, batch: "pa.RecordBatch") -> list[int]:
        columns = [batch.column(f"{name}_length").to_pylist() for name in self._laid]
        return [sum(row) for row in zip(*columns, strict=True)]

    def _whole(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415  loading it takes long

        found = self._read(batch.column("place").to_pylist(), self._sizes(batch))
        columns = {name: batch.column(name) for name in batch.schema.names if name not in reference_columns(self._laid)}
        begins = [0] * batch.num_rows
        for name in self._laid:
            ends = [
                begin + size for begin, size in zip(begins, batch.column(f"{name}_length").to_pylist(), strict=True)
            ]
            columns[name] = to_text_array(
                [text[begin:end] for text, begin, end in zip(found, begins, ends, strict=True)]
            )
            begins = ends
        return pa.RecordBatch.from_pydict(columns)

    def _read(self, places: Sequence[int], sizes: Sequence[int]) -> list[bytes]:
        """Return the texts at some places; those that lie side by side are read at once."""
        found: list[bytes] = []
        first = 0
        for number in range(1, len(places) + 1):
            if number == len(places) or places[number] != places[number - 1] + sizes[number - 1]:
                ends = [*accumulate(sizes[first:number])]
                data = os.pread(self._file.fileno(), ends[-1], places[first])
                found += [data[end - size : end] for end, size in zip(ends, sizes[first:number], strict=True)]
                first = number
        return found


ALL_KEPT: Final = tuple(name for name in COLUMNS if name not in LONG)
"""The columns that are kept in the table when all are needed."""
