"""Reader of uploaded CSV files (RFC 4180), which returns their rows as messages step by step."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from shared.imports.bulk_csv import MAX_COLUMNS, BulkConverter, is_plain_csv, open_conversion_engine
from shared.imports.csv_records import CsvRecords, remove_quoted_cells
from shared.imports.row_mapping import FileRejectedError, RowMapper, check_mapped_columns
from shared.imports.step_rows import MAX_ROW_BYTES, MAX_STEP_MESSAGE_BYTES, RangeSource, RowCollector, StepRows
from shared.imports.text_encoding import TextEncoding, detect_encoding, find_next_line

HEAD_BYTES: Final = 2 * 1024 * 1024
"""Number of bytes that are read from the start of a file, for its header and for a preview."""
STEP_BYTES: Final = 1024 * 1024
"""Bytes of the file per step if rows are converted one by one, for UTF-16 twice as many.

As UTF-8 these are at least twice ``MAX_ROW_BYTES``, so that each step ends after many rows. The rows take about 20
times as much memory; if the names of the columns are long, ``MAX_STEP_MESSAGE_BYTES`` ends the step earlier.
"""
BULK_STEP_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the file per step if rows are converted in bulk."""
_LONE_CARRIAGE_RETURN: Final = re.compile(rb"\r(?![\r\n]|\Z)")
_EMPTY_LINE: Final = re.compile(rb"\r*\n")
_DELIMITERS: Final = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "|"}


class CsvReader:
    """Reader of a CSV file with a header line.

    Args:
        source: the uploaded file.
        mapper: converts rows to telemetry messages.

    Raises:
        FileRejectedError: the file has no valid header, or lacks a column that the mapping names.
    """

    def __init__(self, source: RangeSource, mapper: RowMapper) -> None:
        self._source = source
        self._mapper = mapper
        self._delimiter = mapper.mapping.delimiter
        self._bulk: BulkConverter | None = None
        head = source.read(0, HEAD_BYTES)
        self._encoding: TextEncoding = detect_encoding(head)
        is_whole_file = len(head) >= source.size
        text = self._encoding.to_utf8(head[self._encoding.start :], is_last=is_whole_file)
        header_size = self._read_columns_and_return_header_bytes(text, is_whole_file=is_whole_file)
        self._first = self._encoding.start + header_size

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns."""
        return self._columns

    @property
    def end_position(self) -> int:
        """Size of the file in bytes."""
        return self._source.size

    def read_step(self, position: int, first_row_number: int, max_rows: int | None = None) -> StepRows | None:
        """Convert the rows of one step (a part of the file) to messages; return None at the end of the file.

        Args:
            position: byte position in the file at which the step starts; 0 for the first step.
            first_row_number: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step. Lines that can be either one row or
                several rows count as one row.
        """
        start = max(position, self._first)
        if start >= self._source.size:
            return None
        if max_rows is None and (step := self._try_read_step_in_bulk(start, first_row_number)) is not None:
            return step
        step_bytes = STEP_BYTES * self._encoding.bytes_per_ascii_character
        raw = self._source.read(start, step_bytes if max_rows is None else HEAD_BYTES)
        is_last = start + len(raw) >= self._source.size
        text = self._encoding.to_utf8(raw, is_last=is_last)
        width = len(self._columns)
        records = CsvRecords(text, self._delimiter, width=width, is_row=self._can_be_row, is_last=is_last)
        collector = self._convert_records(records, first_row_number, max_rows)
        end = records.end_offset
        # At the end of the file, the text of an incomplete character has another size.
        used = len(raw) if end == len(text) and is_last else self._encoding.count_file_bytes(text[:end])
        next_position = start + used
        rows = collector.number - first_row_number + 1
        is_limited = collector.is_full or (max_rows is not None and rows >= max_rows)
        if not is_last and not is_limited and (not end or len(text) - end > MAX_ROW_BYTES):
            # A quote in the row does not matter, because a row of several lines cannot have as many bytes.
            rows += 1
            collector.reject_next_row_as_too_long(text[end:])
            if max_rows is None:
                next_position = find_next_line(self._source, self._encoding, next_position)
        return StepRows(next_position, rows, collector.build_message_table(), collector.rejected)

    def _try_read_step_in_bulk(self, start: int, first_row_number: int) -> StepRows | None:
        """Convert a step in bulk; return None if its rows must be converted one by one."""
        if (
            self._encoding.name != "utf-8"
            or len(self._columns) > MAX_COLUMNS
            or len(set(self._columns)) < len(self._columns)
        ):
            return None
        raw = self._source.read(start, BULK_STEP_BYTES)
        is_last = start + len(raw) >= self._source.size
        text = raw if is_last else raw[: raw.rfind(b"\n") + 1]
        del raw  # it takes as much memory as the text
        text = _cut_after_lines(text, max(1, MAX_STEP_MESSAGE_BYTES // self._measure_column_name_bytes()))
        if not text or not is_plain_csv(text, self._delimiter):
            return None
        if self._bulk is None:
            self._bulk = BulkConverter(self._columns, self._mapper, open_conversion_engine())
        found = self._bulk.try_convert(text, first_row_number)
        if found is None:
            return None
        collector = RowCollector(first_row_number - 1)
        for number, cells in found.others.items():
            collector.number = number
            self._convert_row(cells, self._delimiter.join(cells), collector)
        messages = (
            pa.concat_tables([found.messages, collector.build_message_table()]) if found.others else found.messages
        )
        return StepRows(start + len(text), found.rows, messages, collector.rejected)

    def _measure_column_name_bytes(self) -> int:
        """Return the approximate number of bytes that the names of the columns add to the payload of each row."""
        names = self._mapper.mapping.columns
        return sum(len(f'"{name}":,'.encode()) for name in (self._columns if names is None else names)) + 1

    def _can_be_row(self, cells: list[str]) -> bool:
        """Return whether the cells of one line can be a row: the header's number of cells, with a valid time."""
        if len(cells) != len(self._columns):
            return False
        return self._mapper.is_time(cells[self._columns.index(self._mapper.mapping.timestamp)])

    def _convert_row(self, cells: Sequence[str], record_text: str, collector: RowCollector) -> None:
        try:
            collector.add_message(self._mapper.convert_row(dict(zip(self._columns, cells, strict=True))))
        except ValueError as error:
            collector.reject_row(str(error), record_text)

    def _convert_records(self, records: CsvRecords, first_row_number: int, max_rows: int | None) -> RowCollector:
        collector = RowCollector(first_row_number - 1)
        for cells, fault, record, is_ambiguous in islice(records, max_rows):
            if is_ambiguous:
                _reject_each_line(fault, record, collector)
                continue
            collector.number += 1
            if cells is not None and len(cells) != len(self._columns):
                fault = f"The row has {len(cells)} cells; the header has {len(self._columns)}."  # noqa: PLW2901
            if fault or cells is None:
                collector.reject_row(fault, record)
                continue
            self._convert_row(cells, record, collector)
            if collector.is_full:
                break
        return collector

    def _read_columns_and_return_header_bytes(self, file_start: bytes, *, is_whole_file: bool) -> int:
        """Read the column names from the start of the file; return the size of the header in bytes."""
        records = CsvRecords(file_start, self._delimiter, is_last=is_whole_file)
        record = next(iter(records), None)
        header = file_start[: records.end_offset] or file_start
        if _LONE_CARRIAGE_RETURN.search(remove_quoted_cells(header, self._delimiter)):
            rule = "lines must end with a line feed, or with a carriage return and a line feed"
            raise FileRejectedError(f"The header has a carriage return without a line feed; {rule}.")
        if len(header.rstrip(b"\n")) > MAX_ROW_BYTES:
            raise FileRejectedError(f"The first line must be a header of at most {MAX_ROW_BYTES:,} bytes.")
        if record is None or _EMPTY_LINE.match(header):
            raise FileRejectedError("The first line must be a header with the names of the columns.")
        if record.cells is None:
            raise FileRejectedError(f"The header is invalid. {record.fault}")
        if any(map(self._has_line_with_time, record.cells)):
            raise FileRejectedError(
                "A quote in the header is not closed in its line, and a later line up to the closing quote contains a "
                "time, so it may be a row; close the quote in its line, or remove the line breaks of the column name."
            )
        names = [name.strip() for name in record.cells]
        self._columns = [name or f"column{number}" for number, name in enumerate(names, start=1)]
        self._require_mapped_columns_in_header(record.text)
        return self._encoding.count_file_bytes(header)

    def _has_line_with_time(self, column_name: str) -> bool:
        """Return whether a column name probably contains rows of data, because a quote in the header is not closed.

        This is the case if a line of the name, other than the first line, has several cells, and one is a valid time.
        """
        lines = [line.split(self._delimiter) for line in column_name.split("\n")[1:]]
        return any(len(cells) > 1 and any(map(self._mapper.is_time, cells)) for cells in lines)

    def _require_mapped_columns_in_header(self, header_line: str) -> None:
        try:
            check_mapped_columns(self._columns, self._mapper.mapping)
        except FileRejectedError as error:
            raise FileRejectedError(f"{error}{self._describe_likely_delimiter(header_line)}") from None

    def _describe_likely_delimiter(self, header_line: str) -> str:
        """Return a hint for the user if another delimiter would yield the timestamp column; else an empty text."""
        for delimiter, shown in _DELIMITERS.items():
            names = [name.strip(' "\r') for name in header_line.split(delimiter)]
            if delimiter != self._delimiter and self._mapper.mapping.timestamp in names:
                return f" The delimiter may be {shown}; set `mapping.delimiter`."
        return ""


def _cut_after_lines(text: bytes, max_lines: int) -> bytes:
    """Return the first ``max_lines`` lines of a text."""
    if text.count(b"\n") <= max_lines:
        return text
    end = 0
    for _ in range(max_lines):
        end = text.index(b"\n", end) + 1
    return text[:end]


def _reject_each_line(reason: str, record_text: str, collector: RowCollector) -> None:
    """Add each non-empty line of a record to the rejected rows, as a separate row with the same reason."""
    for line in record_text.split("\n"):
        if row := line.rstrip("\r"):
            collector.number += 1
            collector.reject_row(reason, row)
