"""Records of CSV files (RFC 4180): boundaries of records, and their cells."""

import csv
import io
from collections.abc import Iterator
from typing import Final, NamedTuple

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


def find_last_boundary(text: bytes) -> int:
    """Return the offset after the last complete record of a CSV text; 0 if no record is complete.

    A record ends at a line break outside quotes. If a quote is not closed in the text, the last line break is the
    boundary.
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
                yield _split_line(line, delimiter)
            continue
        count = _count_lines_of_record(lines, index, delimiter)
        record = b"\n".join(lines[index : index + max(count, 1)])
        index += max(count, 1)
        if count:
            yield from _parse_record(record, delimiter)
        else:
            yield CsvRecord(None, "The row has a quote that is not closed.", record.decode(errors="replace"))


def _split_line(line: bytes, delimiter: str) -> CsvRecord:
    try:
        text = line.decode().rstrip("\r")
    except UnicodeDecodeError:
        return CsvRecord(None, "The row is not UTF-8 text.", line.decode(errors="replace"))
    return CsvRecord(text.split(delimiter), "", text)


def _count_lines_of_record(lines: list[bytes], start: int, delimiter: str) -> int:
    """Return the number of lines of the record that starts at a line; 0 if a quote is not closed."""
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


def _parse_record(record: bytes, delimiter: str) -> Iterator[CsvRecord]:
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
