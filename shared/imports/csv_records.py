"""Division of CSV text (RFC 4180) into records.

Separate from ``csv_reader`` because these rules need neither files nor messages.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Final, NamedTuple

from shared.imports.step_rows import MAX_ROW_BYTES, ROW_TOO_LONG

_CELLS_AT_ONCE: Final = 1000
"""Maximum number of cells that a pattern matches at once, because other threads cannot run while it matches."""
# Possessive quantifiers keep the time linear: a part that has matched is never tried again.
_OPEN_CELL: Final = r'"[^"]*+(?:""[^"]*+)*+'
_TEXT_AFTER_QUOTE: Final = "The row is not CSV: a delimiter or the end of the line is expected after a closing quote."
_TOO_LONG: Final = f"The row has a quote that is not closed within {MAX_ROW_BYTES:,} bytes."
_AMBIGUOUS: Final = (
    "The row is one of several lines that can be one row or several rows, because the first has a quote that is not"
    " closed in its line. Close the quote in the first line, or remove the line breaks of its text."
)


class CsvRecord(NamedTuple):
    """Record (row) of a CSV file, or the reason why it is invalid.

    Attributes:
        cells: texts of the cells; None if the record is invalid.
        fault: the rule that an invalid record breaks, a sentence for the caller.
        text: original text of the record; of a line that is too long, its first ``MAX_ROW_BYTES``.
        is_ambiguous: whether each line of the invalid record can also be a row by itself.
    """

    cells: list[str] | None
    fault: str
    text: str
    is_ambiguous: bool = False


class CsvRecords:
    """Records of a CSV text, for one iteration; empty lines are skipped.

    A record is one line, unless a quoted cell is open at the end of the line. In this case, the next lines belong to
    the record, too, if the result is a valid record of at most ``MAX_ROW_BYTES`` with ``width`` cells. Otherwise, the
    first line alone is an invalid record, and the next line starts another record.

    A line of more than ``MAX_ROW_BYTES`` is an invalid record. A record over several lines is also invalid if each of
    its lines can be a row by itself, because a text inside a cell must not become rows. Quotes inside unquoted cells
    are ordinary characters.

    Args:
        text: CSV text in UTF-8 that starts with a record.
        delimiter: character between two cells.
        width: number of cells that a record over several lines must have; None for any number.
        is_row: returns whether the cells of one line can be a row; None if a line inside a longer record never can.
        is_last: whether the text is the end of the file; otherwise, a record at its end that is not complete is left
            out.
    """

    def __init__(
        self,
        text: bytes,
        delimiter: str,
        *,
        width: int | None = None,
        is_row: Callable[[list[str]], bool] | None = None,
        is_last: bool = True,
    ) -> None:
        self._text = text
        self._delimiter = delimiter
        self._patterns = _compile_patterns(delimiter)
        self._width = width
        self._is_row = is_row
        self._is_last = is_last
        self._lines = text.split(b"\n")
        incomplete_line = self._lines.pop()
        if incomplete_line and is_last:
            self._lines.append(incomplete_line)
        self._end = 0

    @property
    def end_offset(self) -> int:
        """Offset in the text after the records that were returned and the empty lines that were skipped."""
        return min(self._end, len(self._text))

    def __iter__(self) -> Iterator[CsvRecord]:
        index = 0
        while index < len(self._lines):
            line = self._lines[index]
            fault = ROW_TOO_LONG if len(line) > MAX_ROW_BYTES else ""
            if fault or b'"' not in line:
                index += 1
                self._end += len(line) + 1
                if raw := line[:MAX_ROW_BYTES] if fault else line.rstrip(b"\r"):
                    yield self._parse_record(raw, fault)
                continue
            span = self._find_span_of_record(index)
            if span is None:
                return
            raw = self._text[self._end : span.end].rstrip(b"\r\n")
            index, self._end = span.next_line, span.end
            yield self._parse_record(raw, span.fault)

    def _find_span_of_record(self, line_index: int) -> "_Span | None":
        """Find the end of the record that starts at a line with quotes; return None if the text ends before it."""
        line = self._lines[line_index]
        span = _Span(line_index + 1, self._end + len(line) + 1, "")
        match = self._match_last_cell(line)
        if match is None:
            return span._replace(fault=_TEXT_AFTER_QUOTE)
        return (
            span
            if match["open"] is None
            else self._find_span_of_record_over_lines(line_index, span, match.start("open"))
        )

    def _find_span_of_record_over_lines(
        self, line_index: int, first_line: "_Span", quote_offset: int
    ) -> "_Span | None":
        """Find the end of a record whose first line does not close the quoted cell that starts at ``quote_offset``.

        Return None if the text ends before the record.
        """
        remainder = self._remainders_by_line[line_index + 1]
        # The first record is never left out, so that each step of a file has one.
        if remainder is _AFTER_TEXT and self._end and len(self._text) - self._end < MAX_ROW_BYTES:
            return None
        if remainder.fault or remainder.end - self._end > MAX_ROW_BYTES:
            return first_line._replace(fault=remainder.fault or _TOO_LONG)
        cells = self._count_delimiters(self._lines[line_index]) + remainder.delimiters + 1
        if self._width not in (None, cells):
            fault = "The row has a quote that is not closed in its line. With the next lines, it has "
            return first_line._replace(fault=f"{fault}{cells} cells; the header has {self._width}.")
        is_ambiguous = self._is_each_line_a_row(line_index, remainder.next_line, quote_offset)
        return _Span(remainder.next_line, remainder.end, _AMBIGUOUS if is_ambiguous else "")

    def _is_each_line_a_row(self, line_index: int, next_line_index: int, quote_offset: int) -> bool:
        """Return whether each line of a record would be a row by itself if its open quote were an ordinary character.

        Args:
            line_index: index of the record's first line.
            next_line_index: index of the line after the record.
            quote_offset: offset of the open quote in the first line.
        """
        line = self._lines[line_index]
        delimiters = self._count_delimiters(line[:quote_offset]) + line.count(self._delimiter.encode(), quote_offset)
        if self._is_row is None or delimiters + 1 != self._width:
            return False
        return all(self._is_empty_or_row(each, self._is_row) for each in self._lines[line_index + 1 : next_line_index])

    def _is_empty_or_row(self, line: bytes, is_row: Callable[[list[str]], bool]) -> bool:
        raw = line.rstrip(b"\r")
        match = self._match_last_cell(raw)
        if match is None or match["open"] is not None:
            return False
        cells = self._parse_record(raw, "").cells
        return not raw or (cells is not None and is_row(cells))

    @cached_property
    def _remainders_by_line(self) -> "list[_Remainder]":
        """Remainder of a record from the start of each line, by index of the line, if a quoted cell is open there.

        Each line is examined once, from the last to the first. Otherwise the time would be quadratic for a text in
        which each line is the possible start of a record over many lines.
        """
        remainder = _NOT_CLOSED if self._is_last else _AFTER_TEXT
        remainders = [remainder] * (len(self._lines) + 1)
        end = sum(map(len, self._lines)) + len(self._lines)
        for index in range(len(self._lines) - 1, -1, -1):
            line = self._lines[index]
            if b'"' in line:
                remainder = self._compute_remainder_from_line(remainder, line, _Remainder(index + 1, end, 0))
            remainders[index] = remainder
            end -= len(line) + 1
        return remainders

    def _compute_remainder_from_line(
        self, following_remainder: "_Remainder", line: bytes, remainder_if_closed: "_Remainder"
    ) -> "_Remainder":
        """Return the remainder of a record from the start of a line that begins inside a quoted cell.

        Args:
            following_remainder: remainder from the start of the next line, used if the cell is still open there.
            line: text of the line.
            remainder_if_closed: remainder if the record ends in this line, without the number of its delimiters.
        """
        line = b'"' + line
        match = self._match_last_cell(line)
        if match is None:
            return _CLOSED_BEFORE_TEXT
        remainder = remainder_if_closed if match["open"] is None else following_remainder
        if remainder.fault:
            return remainder
        return remainder._replace(delimiters=remainder.delimiters + self._count_delimiters(line))

    def _count_delimiters(self, line: bytes) -> int:
        return remove_quoted_cells(line, self._delimiter).count(self._delimiter.encode())

    def _match_last_cell(self, line: bytes) -> re.Match[bytes] | None:
        """Return the match of the last cell of a line, or None if the quotes of the line are invalid."""
        start = 0
        while cells := self._patterns.cells.match(line, start):
            start = cells.end()
        return self._patterns.last_cell.match(line, start)

    def _parse_record(self, raw: bytes, fault: str) -> CsvRecord:
        text = raw.decode(errors="replace")
        if fault:
            return CsvRecord(None, fault, text, is_ambiguous=fault == _AMBIGUOUS)
        try:
            raw.decode()
        except UnicodeDecodeError:
            return CsvRecord(None, "The row is not valid UTF-8 or UTF-16 text.", text)
        if b'"' not in raw:
            return CsvRecord(text.split(self._delimiter), "", text)
        # The delimiter before the first cell makes all cells equal for the pattern. Other threads can run between them.
        found = self._patterns.cell.finditer(self._delimiter + text)
        cells = (match.groups("") for match in found)
        return CsvRecord([quoted.replace('""', '"') or plain for quoted, plain in cells], "", text)


class _Span(NamedTuple):
    """End of a record in the text, or the fault of an invalid record.

    Attributes:
        next_line: index of the line after the record.
        end: offset in the text after the record.
        fault: the rule that the record breaks, or an empty text.
    """

    next_line: int
    end: int
    fault: str


class _Remainder(NamedTuple):
    """Remainder of a record, from the start of a line that begins inside a quoted cell to the end of the record.

    Attributes:
        next_line: index of the line after the record.
        end: offset in the text after the record.
        delimiters: number of delimiters in the remainder that separate cells.
        fault: the rule that the record breaks, or an empty text.
    """

    next_line: int
    end: int
    delimiters: int
    fault: str = ""


_AFTER_TEXT: Final = _Remainder(0, 0, 0, _TOO_LONG)
"""Remainder of a record that continues after the text; the record is too long if it cannot be left out."""
_NOT_CLOSED: Final = _Remainder(0, 0, 0, "The row has a quote that is not closed.")
_CLOSED_BEFORE_TEXT: Final = _Remainder(
    0,
    0,
    0,
    "The row has a quote that is not closed in its line. The next quote that is not doubled is followed by neither a"
    " delimiter nor the end of its line.",
)


class _Patterns(NamedTuple):
    """Regular expressions that find the cells of CSV lines with a certain delimiter.

    Attributes:
        cells: one or more cells of a line, each with the delimiter after it.
        last_cell: the last cell of a line; its group ``open`` is a quoted cell that the line does not close.
        quoted_cell: a quoted cell of a line whose quotes are valid.
        cell: a delimiter and a cell of a complete record, the cell as the first group if it is quoted.
    """

    cells: re.Pattern[bytes]
    last_cell: re.Pattern[bytes]
    quoted_cell: re.Pattern[bytes]
    cell: re.Pattern[str]


@cache
def _compile_patterns(delimiter: str) -> _Patterns:
    mark = re.escape(delimiter)
    cell = rf'(?:{_OPEN_CELL}"|(?!")[^{mark}]*+)'
    cells = rf"(?:{cell}{mark}){{1,{_CELLS_AT_ONCE}}}+"
    last_cell = rf"{cell}\r*+\Z|(?P<open>{_OPEN_CELL})\Z"
    # The condition is behind the quote, because the search for the first character of a pattern is fast.
    quoted_cell = rf'"(?<![^{mark}]")[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
    parts = rf'{mark}(?:"([^"]*+(?:""[^"]*+)*+)"|([^{mark}]*+))'
    return _Patterns(
        re.compile(cells.encode()),
        re.compile(last_cell.encode()),
        re.compile(quoted_cell.encode()),
        re.compile(parts),
    )


def remove_quoted_cells(text: bytes, delimiter: str) -> bytes:
    """Return a CSV record without its quoted cells."""
    parts: list[bytes] = []
    end = 0
    for match in _compile_patterns(delimiter).quoted_cell.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
    return b"".join((*parts, text[end:]))
