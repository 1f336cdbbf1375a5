"""Conversion of archived rows of one connection to files of one format, as a stream.

Rows are record batches with ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
Equal batches produce equal bytes.

CSV (RFC 4180) has a header and a column per leaf of the payload, named by its keys joined with dots. Column names and
text cells that a spreadsheet would run as a formula get a leading apostrophe. Numbers remain unchanged, including
negative ones.

Separate from ``work`` because it converts rows and knows nothing of jobs, quotas or blobs.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from shared.downloads.flattening import Flattener, KeyPath, check_column_count
from shared.downloads.models import Format
from shared.downloads.output_files import FILE_BYTES, HashingFile, ParquetFiles, RollingFiles, WrittenFile
from shared.downloads.row_feed import FIXED_COLUMNS, format_timestamps, map_in_order, slice_batches
from shared.text_formats.csv_cells import FORMULA_STARTS, escape_formula

type Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Function that reads the rows from the beginning at each call."""

CSV_CELLS_PER_BATCH: int = 2_000_000
"""Cells of a CSV file that are converted together."""
LINE_END: Final = "\r\n"
COLLISION_PREFIX: Final = "payload."
_NEEDS_QUOTES: Final = '^$|[",\r\n]'
"""Also matches empty text: an unquoted empty cell means null."""
_FORMULA_BYTES: Final = pa.array([start.encode() for start in FORMULA_STARTS], pa.binary())
_NEGATIVE_NUMBER: Final = r"^-(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Negative JSON numbers; other JSON numbers start with a digit."""
_SPECIAL_CHARACTERS: Final = (b'"', b",", b"\r", b"\n")


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


def name_columns(paths: Collection[KeyPath]) -> list[tuple[str, KeyPath]]:
    """Return the names and paths of the payload's columns in order; names are unique."""
    named: dict[str, KeyPath] = {}
    for path in sorted(paths, key=lambda one: (".".join(one), one)):
        name = escape_formula(".".join(path))
        while name in FIXED_COLUMNS or name in named:
            name = COLLISION_PREFIX + name
        named[name] = path
    return sorted(named.items())


def format_header(names: Sequence[str]) -> bytes:
    """Return the header line."""
    cells = _format_cells(pa.array([*FIXED_COLUMNS, *names], pa.string()))
    return (",".join(cells.to_pylist()) + LINE_END).encode()


def format_csv_lines(connection: str, rows: pa.RecordBatch, values: pa.Array | None) -> memoryview:
    """Return the CSV lines of some rows.

    Args:
        connection: lookup of the connection.
        rows: batch with ``timestamp``, ``deviceId`` and ``messageId``.
        values: list of payload values per row, in the order of the columns; None without columns.
    """
    parts = [
        format_timestamps(rows.column("timestamp")),
        f"Z,{connection},",
        _format_cells(rows.column("deviceId")),
        ",",
        _format_cells(rows.column("messageId")),
    ]
    if values is not None:
        listed = pa.ListArray.from_arrays(values.offsets, _format_cells(values.values))
        parts += [",", pc.binary_join(listed, ",")]
    return concatenate_texts(pc.binary_join_element_wise(*parts, LINE_END, ""))


def concatenate_texts(texts: pa.Array) -> memoryview:
    """Return the concatenated bytes of all texts without copying them."""
    bounds = texts.offset, texts.offset + len(texts)
    first, last = (memoryview(texts.buffers()[1]).cast("i")[bound] for bound in bounds)
    return memoryview(texts.buffers()[2])[first:last]


def _format_cells(texts: pa.Array) -> pa.Array:
    texts = _escape_formulas(texts)
    if _may_need_quotes(texts):
        to_quote = pc.match_substring_regex(texts, _NEEDS_QUOTES)
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        texts = pc.if_else(to_quote, quoted, texts)
    return pc.fill_null(texts, "")


def _escape_formulas(texts: pa.Array) -> pa.Array:
    """Return the cells with an apostrophe before each text that starts like a formula and is not a number."""
    suspects = pc.is_in(pc.binary_slice(texts.cast(pa.binary()), 0, 1), _FORMULA_BYTES)
    # Nearly all suspects are negative numbers; checking only the suspects is fast.
    if pc.all(pc.match_substring_regex(texts.filter(suspects), _NEGATIVE_NUMBER), min_count=0).as_py():
        return texts
    formulas = pc.and_(suspects, pc.invert(pc.match_substring_regex(texts, _NEGATIVE_NUMBER)))
    return pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)


def _may_need_quotes(texts: pa.Array) -> bool:
    """Return whether a text contains a special character or is empty; checking all bytes together is fast."""
    data = bytes(concatenate_texts(texts))
    return any(mark in data for mark in _SPECIAL_CHARACTERS) or pc.min(pc.binary_length(texts)).as_py() == 0


_ESCAPED_CHARACTERS: Final = bytes(range(0x20)) + b'"\\'


def format_json_lines(connection: str, rows: pa.RecordBatch) -> memoryview:
    """Return the JSON lines of a connection's rows: ``timestamp``, ``deviceId``, ``messageId``, ``payload``."""
    lines = pc.binary_join_element_wise(
        '{"timestamp":"',
        format_timestamps(rows.column("timestamp")),
        f'Z","connection":{json.dumps(connection)},"deviceId":',
        _to_json_strings(rows.column("deviceId")),
        ',"messageId":',
        _to_json_strings(rows.column("messageId")),
        ',"payload":',
        _remove_line_breaks(rows.column("payload")),
        "}\n",
        "",
    )
    return concatenate_texts(lines)


def _to_json_strings(texts: pa.Array) -> pa.Array:
    data = bytes(concatenate_texts(texts))
    if len(data.translate(None, _ESCAPED_CHARACTERS)) < len(data):
        return pa.array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


def _remove_line_breaks(payloads: pa.Array) -> pa.Array:
    # A raw line break in JSON text is white space; in strings it is always escaped.
    data = bytes(concatenate_texts(payloads))
    for line_break in ("\n", "\r"):
        if line_break.encode() in data:
            payloads = pc.replace_substring(payloads, line_break, " ")
    return payloads
