"""Reader of uploaded Parquet files, which returns their rows as messages step by step.

Separate from ``uploaded_file`` because each format has its own reader, and this one imports pyarrow, which is slow.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shared.imports.parquet_pages import (
    MAX_STEP_PAGES,
    BufferedSource,
    ColumnPages,
    TooManyPagesError,
    find_column_padding,
    read_column_pages,
)
from shared.imports.parquet_sizes import (
    compute_max_rows_per_batch,
    list_dictionary_column_paths,
    measure_nested_name_bytes,
    measure_row_bytes,
    require_row_group_within_limits,
)
from shared.imports.row_mapping import FileRejectedError, RowMapper, check_mapped_columns
from shared.imports.step_rows import RangeSource, RowCollector, StepRows
from shared.telemetry.message_parser import MAX_MESSAGE_BYTES

STEP_ROWS: Final = 20_000
STEP_BYTES: Final = 32 * 1024**2
"""Maximum size of the rows of a step, as ``_Part`` counts it; one row can be a whole step."""
_PART_BYTES: Final = 1024**2
"""Size of the rows that are Python objects at the same time, which need many times the memory."""


class _Part(NamedTuple):
    """Consecutive rows of a file: rows that can be converted, or rows that are too large for a message.

    Attributes:
        batch: the rows.
        size: sum of the row sizes from :func:`measure_row_bytes` and of the names of columns and nested properties that
            each row repeats; 0 for rows that are too large.
        is_too_large: whether each of the rows is too large for a message.
    """

    batch: pa.RecordBatch
    size: int
    is_too_large: bool


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
        self._page_source = BufferedSource(source)
        try:
            file = pa.PythonFile(_SeekableSource(source), mode="r")
            metadata = pq.read_metadata(file)
            # The decoder would repeat each text of a dictionary for each row that has the text.
            dictionaries = list_dictionary_column_paths(metadata)
            self._file = pq.ParquetFile(
                file,
                metadata=metadata,
                read_dictionary=dictionaries,
                # As nanoseconds, times before 1677 and after 2262 would silently become other times.
                coerce_int96_timestamp_unit="us",
            )
        except (pa.ArrowException, OSError) as error:
            raise FileRejectedError(f"The file is not a valid Parquet file: {_shorten_message(error)}.") from None
        self._columns = [str(name) for name in self._file.schema_arrow.names]
        check_mapped_columns(self._columns, mapper.mapping)
        wanted = mapper.mapping.columns
        special = {mapper.mapping.timestamp, mapper.mapping.device, mapper.mapping.message_id}
        self._wanted = None if wanted is None else sorted({*wanted, *filter(None, special)})
        self._next: tuple[int, Iterator[_Part]] | None = None
        self._remaining_pages = MAX_STEP_PAGES

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns."""
        return self._columns

    @property
    def end_position(self) -> int:
        """Number of rows of the file."""
        return int(self._file.metadata.num_rows)

    def read_step(self, position: int, first_row_number: int, max_rows: int | None = None) -> StepRows | None:
        """Convert the rows of one step (a part of the file) to messages; return None at the end of the file.

        Args:
            position: number of rows of the file before the step; 0 for the first step.
            first_row_number: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step.
        """
        collector = RowCollector(first_row_number - 1)
        self._remaining_pages = MAX_STEP_PAGES
        try:
            for part in self._iterate_parts_of_step(position, min(max_rows or STEP_ROWS, STEP_ROWS)):
                self._convert_rows(part, collector)
                if collector.is_full:
                    break
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            fault = f"The file is damaged at row {position + 1} or shortly after it: {_shorten_message(error)}."
            raise FileRejectedError(fault) from None
        rows = collector.number - (first_row_number - 1)
        if not rows:
            return None
        return StepRows(position + rows, rows, collector.build_message_table(), collector.rejected)

    def _convert_rows(self, part: _Part, collector: RowCollector) -> None:
        if part.is_too_large:
            for _ in range(part.batch.num_rows):
                collector.number += 1
                collector.reject_row(f"The message has more than {MAX_MESSAGE_BYTES} bytes.", "")
            return
        for row in _to_python_rows(part.batch):
            collector.number += 1
            try:
                _require_valid_cells(row)
                collector.add_message(self._mapper.convert_row(row))
            except ValueError as error:
                collector.reject_row(str(error), json.dumps(row, default=str, ensure_ascii=False))

    def _iterate_parts_of_step(self, skipped_rows: int, max_rows: int) -> Iterator[_Part]:
        """Yield the rows of one step in parts, beginning after the file's first ``skipped_rows`` rows.

        After its first part, a step continues only up to ``max_rows`` rows and ``STEP_BYTES``.
        """
        is_next = self._next is not None and self._next[0] == skipped_rows
        parts = self._next[1] if self._next is not None and is_next else self._iterate_parts(skipped_rows, max_rows)
        self._next = None
        rows = total = 0
        for part in parts:
            if rows and (rows + part.batch.num_rows > max_rows or total + part.size > STEP_BYTES):
                self._next = (skipped_rows + rows, chain([part], parts))
                break
            rows += part.batch.num_rows
            total += part.size
            # The caller can end the step after any part.
            self._next = (skipped_rows + rows, parts)
            yield part

    def _iterate_parts(self, skipped_rows: int, max_batch_rows: int) -> Iterator[_Part]:
        for batch in self._iterate_batches(skipped_rows, max_batch_rows):
            yield from _split_batch_into_parts(batch)

    def _iterate_batches(self, skipped_rows: int, max_batch_rows: int) -> Iterator[pa.RecordBatch]:
        before = 0
        for number in range(self._file.num_row_groups):
            group = self._file.metadata.row_group(number)
            if skipped_rows < before + group.num_rows:
                # First without the pages, because reading their headers takes longer.
                require_row_group_within_limits(self._file.metadata, number)
                pages = self._read_pages_of_wanted_columns(number)
                require_row_group_within_limits(self._file.metadata, number, pages)
                limit = min(max_batch_rows, compute_max_rows_per_batch(self._file.metadata, number, pages))
                skipped = max(0, skipped_rows - before)
                for batch in self._file.iter_batches(limit, row_groups=[number], columns=self._wanted):
                    if skipped < batch.num_rows:
                        yield batch.slice(skipped)
                    skipped = max(0, skipped - batch.num_rows)
            before += group.num_rows

    def _read_pages_of_wanted_columns(self, group_number: int) -> dict[int, ColumnPages]:
        """Return the pages of the columns that are decoded in a row group, by column number."""
        group = self._file.metadata.row_group(group_number)
        pages: dict[int, ColumnPages] = {}
        padding = find_column_padding(self._file.metadata)
        is_first_of_step = self._remaining_pages == MAX_STEP_PAGES
        for index in range(group.num_columns):
            column = group.column(index)
            if self._is_wanted(column.path_in_schema):
                try:
                    pages[index] = read_column_pages(self._page_source, column, self._remaining_pages, padding)
                except TooManyPagesError:
                    raise _build_too_many_pages_error(group_number, is_first_of_step=is_first_of_step) from None
                self._remaining_pages -= pages[index].page_count
        return pages

    def _is_wanted(self, path: str) -> bool:
        return self._wanted is None or any(path == name or path.startswith(f"{name}.") for name in self._wanted)


def _build_too_many_pages_error(group_number: int, *, is_first_of_step: bool) -> FileRejectedError:
    name = f"Row group {group_number + 1}"
    groups = f"{name} has" if is_first_of_step else f"{name} and the row groups shortly before it have"
    advice = "smaller row groups" if is_first_of_step else "fewer row groups"
    rule = f"{groups} more than {MAX_STEP_PAGES:,} pages in the imported columns"
    return FileRejectedError(f"{rule}; write the file with larger pages or {advice}.")


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


def _split_batch_into_parts(batch: pa.RecordBatch) -> Iterator[_Part]:
    """Split a batch into parts of up to ``_PART_BYTES``, and separate the rows that are too large for a message."""
    start = total = 0
    was_too_large = False
    # They do not make a row too large, because the message omits the names of missing values.
    name_bytes = sum(len(name.encode()) for name in batch.schema.names)
    sizes = zip(measure_row_bytes(batch), measure_nested_name_bytes(batch), strict=True)
    for number, (size, nested_name_bytes) in enumerate(sizes):
        # Converting even one row must not need gigabytes, although nearly all of its properties may be missing.
        is_too_large = size > MAX_MESSAGE_BYTES or nested_name_bytes > STEP_BYTES
        counted = 0 if is_too_large else size + name_bytes + nested_name_bytes
        if number > start and (is_too_large != was_too_large or total + counted > _PART_BYTES):
            yield _Part(batch.slice(start, number - start), total, was_too_large)
            start, total = number, 0
        was_too_large = is_too_large
        total += counted
    yield _Part(batch.slice(start), total, was_too_large)


_YEARS: Final = "times must be within the years 1 to 9999"
_TIMES_OF_DAY: Final = "times of day must be less than 24 hours"
_DURATIONS: Final = "durations must be at most 999,999,999 days"


@dataclass(frozen=True, slots=True)
class _InvalidCell:
    """Cell with a time, time of day or duration that Python cannot represent.

    Attributes:
        stored: the number that the file contains; for a nested value, a placeholder.
        rule: the rule that the value breaks.
    """

    stored: str
    rule: str

    def __str__(self) -> str:
        return self.stored


def _to_python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Convert a batch to rows of Python values; times are cut to microseconds, as Python has no nanoseconds."""
    columns = [_to_python_values(_reduce_column_to_microseconds(array)) for array in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _to_python_values(array: pa.Array) -> list[Any]:
    """Convert an array to Python values; a value that Python cannot represent becomes an :class:`_InvalidCell`.

    To find these values, the array is halved again and again.
    """
    try:
        cells: list[Any] = array.to_pylist()
    except OverflowError:
        cells = []
    if len(cells) == len(array) and _has_valid_times_of_day(array):
        return cells
    if len(array) == 1:
        return [_build_invalid_cell(array[0])]
    middle = len(array) // 2
    return _to_python_values(array[:middle]) + _to_python_values(array[middle:])


def _has_valid_times_of_day(array: pa.Array) -> bool:
    """Return whether all times of day are below 24 hours; otherwise, pyarrow would silently drop the whole days."""
    if not _has_time_of_day_type(array.type):
        return True
    if pa.types.is_nested(array.type):
        return all(map(_has_valid_times_of_day, _list_child_arrays(array)))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _list_child_arrays(array: pa.Array) -> list[pa.Array]:
    """Return the arrays inside a nested array: one for each property of objects, or one with all elements of lists."""
    if pa.types.is_struct(array.type):
        return list(array.flatten())
    if pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [array.values[first:last]]
    return [array.flatten()]


def _build_invalid_cell(scalar: pa.Scalar) -> _InvalidCell:
    types = pa.types
    if types.is_nested(scalar.type):
        return _InvalidCell("(nested)", f"{_YEARS}, {_TIMES_OF_DAY}, and {_DURATIONS}")
    is_duration, is_time = types.is_duration(scalar.type), types.is_time(scalar.type)
    return _InvalidCell(str(scalar.value), _DURATIONS if is_duration else _TIMES_OF_DAY if is_time else _YEARS)


def _require_valid_cells(row: Mapping[str, Any]) -> None:
    for name, cell in row.items():
        if type(cell) is _InvalidCell:
            raise ValueError(f"Column `{name[:64]}` has the invalid value {cell}: {cell.rule}.")


def _reduce_column_to_microseconds(array: pa.Array) -> pa.Array:
    """Convert the nanosecond times of a column to microseconds; first decode a column with dictionary encoding.

    Digits of nanoseconds are cut off, also from times before 1970. Times with a time zone are converted to UTC.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = _reduce_type_to_microseconds(array.type)
    if kind == array.type:
        return array
    if pa.types.is_nested(kind):
        return _reduce_nested_array_to_microseconds(array, kind)
    if pa.types.is_timestamp(kind) and array.type.unit == "ns":
        return _floor_to_thousands(array.view(pa.int64())).view(kind)
    # Only digits of nanoseconds can be lost: units longer than a microsecond remain, as their conversion can overflow.
    return array.cast(kind, safe=False)


def _reduce_nested_array_to_microseconds(array: pa.Array, kind: pa.DataType) -> pa.Array:
    # The copy omits the values of other rows, which a slice of an array contains, too.
    array = pa.concat_arrays([array])
    is_struct = pa.types.is_struct(kind)
    children = [array.field(index) for index in range(kind.num_fields)] if is_struct else [array.values]
    reduced = [
        child if child.type == kind.field(index).type else _reduce_column_to_microseconds(child)
        for index, child in enumerate(children)
    ]
    return pa.Array.from_buffers(kind, len(array), array.buffers()[: kind.num_buffers], children=reduced)


def _floor_to_thousands(numbers: pa.Array) -> pa.Array:
    """Divide whole numbers by 1,000 and round down; Arrow's division and its casts of times round towards zero."""
    quotients = pc.divide(numbers, 1000)
    is_above = pc.greater(pc.multiply(quotients, 1000), numbers)
    return pc.subtract(quotients, is_above.cast(pa.int64()))


def _reduce_type_to_microseconds(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, kind.tz and "UTC")
    if types.is_time64(kind):
        return pa.time64("us")
    if types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if types.is_dictionary(kind):
        value = _reduce_type_to_microseconds(kind.value_type)
        return kind if value == kind.value_type else value
    return _reduce_nested_type_to_microseconds(kind) if types.is_nested(kind) else kind


def _reduce_nested_type_to_microseconds(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_reduce_field_to_microseconds(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_reduce_field_to_microseconds(kind.key_field), _reduce_field_to_microseconds(kind.item_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_reduce_field_to_microseconds(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_reduce_field_to_microseconds(kind.value_field))
    return pa.list_(_reduce_field_to_microseconds(kind.value_field)) if types.is_list(kind) else kind


def _reduce_field_to_microseconds(field: pa.Field) -> pa.Field:
    return field.with_type(_reduce_type_to_microseconds(field.type))


def _has_time_of_day_type(kind: pa.DataType) -> bool:
    return pa.types.is_time(kind) or any(
        _has_time_of_day_type(kind.field(index).type) for index in range(kind.num_fields)
    )


def _shorten_message(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")[:200]
