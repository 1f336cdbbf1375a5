"""Reader of uploaded NDJSON files (one JSON object for each line).

This module is separate from ``uploaded_file`` because each format has its own reader.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from shared.imports.csv_reader import HEAD_BYTES, STEP_BYTES
from shared.imports.row_mapping import RowMapper
from shared.imports.step_rows import MAX_ROW_BYTES, ROW_TOO_LONG, RangeSource, RowCollector, StepRows
from shared.imports.text_encoding import detect_encoding, find_next_line
from shared.text_formats.strict_json import parse_json


class JsonLinesReader:
    """Reader of an NDJSON file: one JSON object for each line; empty lines are skipped.

    Args:
        source: the uploaded file.
        mapper: converts rows to telemetry messages.

    Raises:
        FileRejectedError: the file is empty, or is not text in a supported encoding.
    """

    def __init__(self, source: RangeSource, mapper: RowMapper) -> None:
        self._source = source
        self._mapper = mapper
        self._encoding = detect_encoding(source.read(0, HEAD_BYTES))
        self._columns: dict[str, None] = {}

    @property
    def columns(self) -> Sequence[str]:
        """Names of the properties in the rows read so far; only :meth:`read_step` with ``max_rows`` collects names."""
        return list(self._columns)

    @property
    def end_position(self) -> int:
        """Size of the file in bytes."""
        return self._source.size

    def read_step(self, position: int, first_row_number: int, max_rows: int | None = None) -> StepRows | None:
        """Convert the lines of one step (a part of the file) to messages; return None at the end of the file.

        Args:
            position: byte position in the file at which the step starts; 0 for the first step.
            first_row_number: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step.
        """
        start = max(position, self._encoding.start)
        if start >= self._source.size:
            return None
        step_bytes = STEP_BYTES * self._encoding.bytes_per_ascii_character
        raw = self._source.read(start, step_bytes if max_rows is None else HEAD_BYTES)
        is_last = start + len(raw) >= self._source.size
        text = self._encoding.to_utf8(raw, is_last=is_last)
        end = len(text) if is_last else text.rfind(b"\n") + 1
        collector = RowCollector(first_row_number - 1)
        lines = _iterate_lines_and_ends(text[:end])
        used = 0
        for line, line_end in islice(lines, max_rows):
            collector.number += 1
            self._convert_line(line, collector, collect_columns=max_rows is not None)
            used = line_end
        if next(lines, None) is None:
            used = end
        next_position = start + (len(raw) if is_last and used == end else self._encoding.count_file_bytes(text[:used]))
        rows = collector.number - first_row_number + 1
        if not is_last and (not end or len(text) - end > MAX_ROW_BYTES) and (max_rows is None or rows < max_rows):
            rows += 1
            collector.reject_next_row_as_too_long(text[end:])
            if max_rows is None:
                next_position = find_next_line(self._source, self._encoding, next_position)
        return StepRows(next_position, rows, collector.build_message_table(), collector.rejected)

    def _convert_line(self, line: bytes, collector: RowCollector, *, collect_columns: bool) -> None:
        try:
            if len(line) > MAX_ROW_BYTES:
                raise ValueError(ROW_TOO_LONG)  # noqa: TRY301  one place for all faults
            value = _parse_json_object(line)
            if collect_columns:
                self._columns.update(dict.fromkeys(value))
            collector.add_message(self._mapper.convert_row(value))
        except ValueError as error:
            collector.reject_row(str(error), line[:MAX_ROW_BYTES].decode(errors="replace"))


def _parse_json_object(line: bytes) -> dict[str, object]:
    try:
        value = parse_json(line, keeps_long_integers=True)
    except ValueError as error:
        reason = str(error).removeprefix("not JSON: ").replace(" at line 1 column ", " at column ")
        raise ValueError(f"The row is not JSON: {reason}.") from None
    if not isinstance(value, dict):
        raise ValueError("The row must be a JSON object.")  # noqa: TRY004  a fault of the caller's data
    return value


def _iterate_lines_and_ends(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each line that is not empty, and the position after its line break.

    White space around a line is removed, unless the line is too long for a row.
    """
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        if len(line) <= MAX_ROW_BYTES:
            line = line.strip(b" \t\r")
        start = end + 1
        if line:
            yield line, start
