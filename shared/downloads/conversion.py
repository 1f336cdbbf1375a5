"""Conversion of archived rows of one connection to files of one format, as a stream.

Rows are record batches with ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
Equal batches produce equal bytes.

CSV (RFC 4180) has a header and a column for each leaf (value that is not an object with properties) of the JSON
payload. The column is named by the keys of the leaf, joined with dots. A column name or text that a spreadsheet would
run as a formula gets a leading apostrophe. Numbers do not change, even if they are negative.

This module is separate from ``work``, which manages jobs, quotas and blobs.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from shared.downloads.flattening import Flattener, KeyPath, require_allowed_column_count
from shared.downloads.models import DownloadFormat
from shared.downloads.output_files import FILE_BYTES, HashingFile, ParquetFiles, RollingFiles, WrittenFile
from shared.downloads.row_feed import FIXED_COLUMNS, call_in_threads, format_timestamps, resize_batches
from shared.text_formats.csv_cells import FORMULA_STARTS, escape_csv_formula

type Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Function that reads all rows from the beginning at each call."""

CSV_CELLS_PER_BATCH: int = 2_000_000
"""Maximum number of cells of a CSV file that are converted together."""
LINE_END: Final = "\r\n"
COLLISION_PREFIX: Final = "payload."
_NEEDS_QUOTES: Final = '^$|[",\r\n]'
"""Pattern of CSV cells that need quotes; it matches empty text, because an unquoted empty cell means null."""
_FORMULA_STARTS: Final = tuple(start.encode() for start in FORMULA_STARTS)
_NEGATIVE_NUMBER: Final = r"^-(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Negative JSON numbers; other JSON numbers start with a digit."""
_SPECIAL_CHARACTERS: Final = (b'"', b",", b"\r", b"\n")


class ConvertedRows(NamedTuple):
    """Files with the rows of a connection, and the payload paths that are columns of CSV files (else empty)."""

    files: tuple[WrittenFile, ...]
    column_paths: frozenset[KeyPath]


def write_files(
    file_format: DownloadFormat, connection: str, rows: Rows, folder: FilePath, known_paths: frozenset[KeyPath]
) -> ConvertedRows:
    """Write the download files of a connection; return the files, and the payload paths that became CSV columns.

    Args:
        file_format: format of the files.
        connection: lookup (id in URLs) of the connection.
        rows: reads the archived rows of the connection.
        folder: target folder.
        known_paths: payload paths that always get columns.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE`` if there are too many paths for the columns of a CSV file.
    """
    try:
        match file_format:
            case DownloadFormat.CSV:
                return write_csv(connection, rows, folder, known_paths)
            case DownloadFormat.JSONL:
                return ConvertedRows(write_jsonl(connection, rows, folder), frozenset())
            case DownloadFormat.PARQUET:
                return ConvertedRows(write_parquet(connection, rows, folder), frozenset())
    finally:
        pa.default_memory_pool().release_unused()


def write_csv(
    connection: str, rows: Rows, folder: FilePath, known_paths: frozenset[KeyPath], max_file_bytes: int = FILE_BYTES
) -> ConvertedRows:
    """Write CSV files with a column for each known payload path and each path in the rows.

    Return the files and the paths.

    Usually, all rows have the same paths as the first rows, and the rows are read once. Otherwise, all rows are read to
    find their paths, and then read again.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE`` if there are too many paths for the columns of a CSV file.
    """
    with FlattenerPool() as flatteners:
        with closing(resize_batches(rows())) as batches:
            first = next(batches, None)
            leaves = known_paths if first is None else known_paths | flatteners.find_leaf_paths(first)
            require_allowed_column_count(leaves)
            all_batches = batches if first is None else chain([first], batches)
            files = _try_write_csv(flatteners, connection, all_batches, folder, leaves, max_file_bytes)
        if files is None:
            for found in call_in_threads(flatteners.find_leaf_paths, resize_batches(rows())):
                leaves |= found
                require_allowed_column_count(leaves)
            files = _try_write_csv(flatteners, connection, resize_batches(rows()), folder, leaves, max_file_bytes)
        assert files is not None  # noqa: S101  all leaves are known after the scan
        return ConvertedRows(files, leaves)


def write_jsonl(
    connection: str, rows: Rows, folder: FilePath, max_file_bytes: int = FILE_BYTES
) -> tuple[WrittenFile, ...]:
    """Write the rows of a connection to files with one JSON object per line; return the files."""
    files = RollingFiles(folder, lambda _: None, limit=max_file_bytes)
    try:
        for lines in call_in_threads(
            lambda batch: EncodedRows(format_json_lines(connection, batch), batch.num_rows), resize_batches(rows())
        ):
            lines.append_to(files)
        return files.close_and_list_files()
    finally:
        files.close_after_failure()


def write_parquet(
    connection: str, rows: Rows, folder: FilePath, max_file_bytes: int = FILE_BYTES
) -> tuple[WrittenFile, ...]:
    """Write the rows of a connection to Parquet files of limited size; return the files."""
    files = ParquetFiles(connection, folder, max_file_bytes)
    try:
        for batch in resize_batches(rows()):
            files.append(batch)
        return files.close_and_list_files()
    finally:
        files.close_after_failure()


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Telemetry rows, encoded in the format of a download file, and the number of these rows."""

    data: memoryview
    rows: int

    def append_to(self, files: RollingFiles) -> None:
        """Append these rows to the current file of a download."""
        file = files.get_file_with_space(len(self.data))
        file.write(self.data)
        file.rows += self.rows


class FlattenerPool:
    """Pool of ``Flattener`` objects, which convert JSON payloads to columns; each thread borrows its own."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[Flattener] = SimpleQueue()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def find_leaf_paths(self, rows: pa.RecordBatch) -> frozenset[KeyPath]:
        """Return the paths of all leaves (values that are not objects with properties) in the payloads of rows."""
        with self.borrow_flattener() as flattener:
            return flattener.find_leaf_paths(rows.column("payload"))

    @contextmanager
    def borrow_flattener(self) -> Iterator[Flattener]:
        """Context manager: yield an idle or new flattener, and return it to the pool afterwards."""
        try:
            flattener = self._idle.get_nowait()
        except Empty:
            flattener = self._open.enter_context(Flattener())
        try:
            yield flattener
        finally:
            self._idle.put(flattener)


def _try_write_csv(
    flatteners: FlattenerPool,
    connection: str,
    batches: Iterator[pa.RecordBatch],
    folder: FilePath,
    column_paths: frozenset[KeyPath],
    max_file_bytes: int,
) -> tuple[WrittenFile, ...] | None:
    """Write CSV files with a column for each payload path in ``column_paths``; return the files.

    Return None if a payload has a value at another path; the files are then incomplete.
    """
    columns = build_csv_columns(column_paths)
    head = format_csv_header([column.name for column in columns])
    paths = [column.path for column in columns]

    def encode_batch(batch: pa.RecordBatch) -> EncodedRows | None:
        payloads = batch.column("payload")
        with flatteners.borrow_flattener() as flattener:
            values = flattener.try_extract_values(payloads, paths)
        if values is None:
            return None
        return EncodedRows(format_csv_lines(connection, batch, values if paths else None), batch.num_rows)

    files = RollingFiles(folder, lambda file: _write_bytes(file, head), limit=max_file_bytes)
    try:
        for encoded in call_in_threads(encode_batch, _split_batches_by_cell_count(batches, len(paths))):
            if encoded is None:
                return None
            encoded.append_to(files)
        return files.close_and_list_files()
    finally:
        files.close_after_failure()


def _split_batches_by_cell_count(batches: Iterator[pa.RecordBatch], column_count: int) -> Iterator[pa.RecordBatch]:
    rows = max(1, CSV_CELLS_PER_BATCH // max(1, column_count))
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def _write_bytes(file: HashingFile, data: bytes) -> None:
    file.write(data)


class CsvColumn(NamedTuple):
    """Column of a CSV file: its unique name, and the payload path of its values."""

    name: str
    path: KeyPath


def build_csv_columns(paths: Collection[KeyPath]) -> list[CsvColumn]:
    """Return a CSV column for each payload path, sorted by the name of the column.

    The name is the keys of the path joined with dots: ``motor.speed``. A name that is already used gets the prefix
    ``payload.``.
    """
    named: dict[str, KeyPath] = {}
    for path in sorted(paths, key=lambda one: (".".join(one), one)):
        name = escape_csv_formula(".".join(path))
        while name in FIXED_COLUMNS or name in named:
            name = COLLISION_PREFIX + name
        named[name] = path
    return sorted(map(CsvColumn._make, named.items()))


def format_csv_header(column_names: Sequence[str]) -> bytes:
    """Return the header line of a CSV file: the fixed columns, then the given payload columns."""
    cells = _format_csv_cells(pa.array([*FIXED_COLUMNS, *column_names], pa.string()))
    return (",".join(cells.to_pylist()) + LINE_END).encode()


def format_csv_lines(connection: str, rows: pa.RecordBatch, payload_values: pa.Array | None) -> memoryview:
    """Format a batch of telemetry rows as CSV lines.

    Args:
        connection: lookup (id in URLs) of the connection.
        rows: batch with ``timestamp``, ``deviceId`` and ``messageId``.
        payload_values: for each row, its payload values in the order of the columns; None without payload columns.
    """
    parts = [
        format_timestamps(rows.column("timestamp")),
        f"Z,{connection},",
        _format_csv_cells(rows.column("deviceId")),
        ",",
        _format_csv_cells(rows.column("messageId")),
    ]
    if payload_values is not None:
        listed = pa.ListArray.from_arrays(payload_values.offsets, _format_csv_cells(payload_values.values))
        parts += [",", pc.binary_join(listed, ",")]
    return concatenate_texts(pc.binary_join_element_wise(*parts, LINE_END, ""))


def concatenate_texts(texts: pa.Array) -> memoryview:
    """Return the bytes of all texts of an Arrow array, one text after the other, without copying them."""
    bounds = texts.offset, texts.offset + len(texts)
    first, last = (memoryview(texts.buffers()[1]).cast("i")[bound] for bound in bounds)
    return memoryview(texts.buffers()[2])[first:last]


def _format_csv_cells(texts: pa.Array) -> pa.Array:
    if _contains_any(texts, _FORMULA_STARTS):
        texts = _escape_formulas(texts)
    if _contains_any(texts, _SPECIAL_CHARACTERS) or pc.min(pc.binary_length(texts)).as_py() == 0:
        to_quote = pc.match_substring_regex(texts, _NEEDS_QUOTES)
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        texts = pc.if_else(to_quote, quoted, texts)
    return pc.fill_null(texts, "")


def _escape_formulas(texts: pa.Array) -> pa.Array:
    """Put an apostrophe before each cell that a spreadsheet would run as a formula; leave numbers unchanged."""
    suspects = pc.is_in(pc.binary_slice(texts.cast(pa.binary()), 0, 1), pa.array(_FORMULA_STARTS, pa.binary()))
    # Nearly all suspects are negative numbers; checking only the suspects is fast.
    if pc.all(pc.match_substring_regex(texts.filter(suspects), _NEGATIVE_NUMBER), min_count=0).as_py():
        return texts
    formulas = pc.and_(suspects, pc.invert(pc.match_substring_regex(texts, _NEGATIVE_NUMBER)))
    return pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)


def _contains_any(texts: pa.Array, characters: Sequence[bytes]) -> bool:
    """Return whether any of the texts contains any of the characters; much faster than a check of each text."""
    data = bytes(concatenate_texts(texts))
    return any(character in data for character in characters)


_ESCAPED_CHARACTERS: Final = bytes(range(0x20)) + b'"\\'


def format_json_lines(connection: str, rows: pa.RecordBatch) -> memoryview:
    """Format rows as JSON lines with ``timestamp``, ``connection``, ``deviceId``, ``messageId`` and ``payload``."""
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
