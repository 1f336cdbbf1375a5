"""Reader of uploaded CSV files (RFC 4180), which returns their rows as messages step by step."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa

from shared.imports.bulk_csv import MAX_COLUMNS, BulkConverter, is_plain_csv, open_conversion_engine
from shared.imports.row_mapping import FileRejectedError, RowMapper, check_mapped_columns
from shared.imports.step_rows import RangeSource, RowCollector, StepRows
from shared.imports.text_encoding import TextEncoding, detect_encoding

MAX_RECORD_BYTES: Final = 512 * 1024
"""Number of bytes in which a quote must be closed; otherwise only the line with the quote counts as invalid."""


class CsvRecord(NamedTuple):
    """Record (row) of a CSV file, or the reason why it is invalid.

    Attributes:
        cells: texts of the cells; None if the record is invalid.
        fault: the rule that an invalid record breaks, a sentence for the caller.
        text: original text of the record.
    """

    cells: list[str] | None
    fault: str
    text: str


def find_last_record_end(text: bytes) -> int:
    """Return the offset after the last complete record of a CSV text; 0 if the text has no line break.

    A record ends at a line break outside quotes. A quote that is open since the first line, or for more than
    ``MAX_RECORD_BYTES``, counts as an error: the result is then the offset after the last line break.
    """
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    cut = end
    while quotes % 2 and cut:
        before = text.rfind(b"\n", 0, cut - 1) + 1
        quotes -= text.count(b'"', before, cut)
        cut = before
    # A quote that stays open for long is a wrong line, not a long cell.
    return cut if cut and end - cut <= MAX_RECORD_BYTES else end


def iterate_records(text: bytes, delimiter: str) -> Iterator[CsvRecord]:
    """Yield the records of a CSV text without empty lines. An invalid line does not affect the next lines."""
    lines = text.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    index = 0
    while index < len(lines):
        line = lines[index]
        if b'"' not in line:
            index += 1
            if line.strip(b"\r"):
                yield _parse_unquoted_line(line, delimiter)
            continue
        count = _count_lines_of_record(lines, index, delimiter)
        record = b"\n".join(lines[index : index + max(count, 1)])
        index += max(count, 1)
        if count:
            yield from _iterate_records_in_quoted_text(record, delimiter)
        else:
            yield CsvRecord(None, "The row has a quote that is not closed.", record.decode(errors="replace"))


def _parse_unquoted_line(line: bytes, delimiter: str) -> CsvRecord:
    try:
        text = line.decode().rstrip("\r")
    except UnicodeDecodeError:
        return CsvRecord(None, "The row is not UTF-8 text.", line.decode(errors="replace"))
    return CsvRecord(text.split(delimiter), "", text)


def _count_lines_of_record(lines: list[bytes], start: int, delimiter: str) -> int:
    """Count the lines of the CSV record that starts at a line; 0 if a quote is not closed."""
    if _is_complete_record(lines[start], delimiter):
        return 1
    quotes = size = 0
    for index in range(start, len(lines)):
        quotes += lines[index].count(b'"')
        size += len(lines[index]) + 1
        if quotes % 2 == 0:
            return index - start + 1
        if size > MAX_RECORD_BYTES:
            return 0
    return 0


def _is_complete_record(line: bytes, delimiter: str) -> bool:
    """Return whether a line with quotes is a complete record; quotes inside unquoted cells are ordinary characters."""
    if line.count(b'"') % 2 == 0:
        return True
    try:
        list(csv.reader([line.decode(errors="replace")], delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _iterate_records_in_quoted_text(record: bytes, delimiter: str) -> Iterator[CsvRecord]:
    try:
        text = record.decode().rstrip("\r")
    except UnicodeDecodeError:
        yield CsvRecord(None, "The row is not UTF-8 text.", record.decode(errors="replace"))
        return
    try:
        # A quote inside an unquoted cell has no meaning, so that the text may have several rows.
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if cells:
                yield CsvRecord(cells, "", text)
    except csv.Error as error:
        yield CsvRecord(None, f"The row is not CSV: {error}.", text)


HEAD_BYTES: Final = 2 * 1024 * 1024
"""Number of bytes that are read from the start of a file, for its header and for a preview."""
STEP_BYTES: Final = 1024 * 1024
"""Bytes of the file per step if rows are converted one by one; the rows take about 20 times as much memory."""
BULK_STEP_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the file per step if rows are converted in bulk."""
_QUOTED_TEXT: Final = re.compile(rb'"[^"]*"')
_LONE_CARRIAGE_RETURN: Final = re.compile(rb"\r(?![\r\n]|\Z)")
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
        header_size = self._read_columns_and_header_size(self._encoding.to_utf8(head[self._encoding.start :]))
        self._first = self._encoding.start + header_size

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns."""
        return self._columns

    def read(self, position: int, first_row: int, max_rows: int | None = None) -> StepRows | None:
        """Convert the rows of one step (a part of the file) to messages; return None at the end of the file.

        Args:
            position: byte position in the file at which the step starts; 0 for the first step.
            first_row: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step.
        """
        start = max(position, self._first)
        if start >= self._source.size:
            return None
        if max_rows is None and (step := self._read_step_in_bulk(start, first_row)) is not None:
            return step
        raw = self._source.read(start, STEP_BYTES if max_rows is None else HEAD_BYTES)
        is_last = start + len(raw) >= self._source.size
        text = self._encoding.to_utf8(raw)
        end = len(text) if is_last else find_last_record_end(text)
        if not end:
            detail = f"Row {first_row} has more than {len(raw)} bytes. Each row must end with a line break."
            raise FileRejectedError(detail)
        # At the end of the file, an incomplete character is skipped.
        used = len(raw) if end == len(text) and is_last else self._encoding.count_file_bytes(text[:end])
        return self._convert_text_row_by_row(text[:end], start + used, first_row, max_rows)

    def _read_step_in_bulk(self, start: int, first_row: int) -> StepRows | None:
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
        if not text or not is_plain_csv(text, self._delimiter):
            return None
        if self._bulk is None:
            self._bulk = BulkConverter(self._columns, self._mapper, open_conversion_engine())
        found = self._bulk.convert(text, first_row)
        if found is None:
            return None
        collector = RowCollector(first_row - 1)
        for number, cells in found.others.items():
            collector.number = number
            self._convert_row(cells, self._delimiter.join(cells), collector)
        messages = pa.concat_tables([found.messages, collector.build_table()]) if found.others else found.messages
        return StepRows(start + len(text), found.rows, messages, collector.rejected)

    def _convert_row(self, cells: Sequence[str], record: str, collector: RowCollector) -> None:
        try:
            collector.add(self._mapper.convert_row(dict(zip(self._columns, cells, strict=True))))
        except ValueError as error:
            collector.reject(str(error), record)

    def _convert_text_row_by_row(self, text: bytes, position: int, first_row: int, max_rows: int | None) -> StepRows:
        collector = RowCollector(first_row - 1)
        for cells, fault, record in islice(iterate_records(text, self._delimiter), max_rows):
            collector.number += 1
            if cells is not None and len(cells) != len(self._columns):
                fault = f"The row has {len(cells)} cells; the header has {len(self._columns)}."  # noqa: PLW2901
            if fault or cells is None:
                collector.reject(fault, record)
                continue
            self._convert_row(cells, record, collector)
        rows = collector.number - first_row + 1
        return StepRows(position, rows, collector.build_table(), collector.rejected)

    def _read_columns_and_header_size(self, head: bytes) -> int:
        """Read the column names from the start of the file; return the size of the header in bytes."""
        end = head.find(b"\n") + 1
        while end and head.count(b'"', 0, end) % 2:
            end = head.find(b"\n", end) + 1
        if _LONE_CARRIAGE_RETURN.search(_QUOTED_TEXT.sub(b"", head[:end] if end else head)):
            rule = "lines must end with a line feed, or with a carriage return and a line feed"
            raise FileRejectedError(f"The header has a carriage return without a line feed; {rule}.")
        if not end:
            if len(head) >= HEAD_BYTES // 2:
                raise FileRejectedError(f"The first line must be a header of at most {HEAD_BYTES // 2} bytes.")
            end = len(head)
        record = next(iterate_records(head[:end], self._delimiter), None)
        if record is None or record.cells is None:
            fault = "The first line must be a header with the names of the columns."
            raise FileRejectedError(fault if record is None else f"The header is invalid. {record.fault}")
        names = [name.strip() for name in record.cells]
        self._columns = [name or f"column{number}" for number, name in enumerate(names, start=1)]
        self._check_header(record.text)
        return self._encoding.count_file_bytes(head[:end])

    def _check_header(self, line: str) -> None:
        try:
            check_mapped_columns(self._columns, self._mapper.mapping)
        except FileRejectedError as error:
            raise FileRejectedError(f"{error}{self._describe_likely_delimiter(line)}") from None

    def _describe_likely_delimiter(self, line: str) -> str:
        """Return a hint for the user if another delimiter would yield the timestamp column; else an empty text."""
        for delimiter, shown in _DELIMITERS.items():
            names = [name.strip(' "\r') for name in line.split(delimiter)]
            if delimiter != self._delimiter and self._mapper.mapping.timestamp in names:
                return f" The delimiter may be {shown}; set `mapping.delimiter`."
        return ""
