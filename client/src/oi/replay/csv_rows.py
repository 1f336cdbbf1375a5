"""CSV files as telemetry messages: numbers as in the file, empty cells omitted, times in the connection's format."""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from oi.replay.layout import MAX_ID_CHARACTERS, Pointer, ReplayTarget
from oi.replay.message_ids import derive_message_id, format_rfc3339_time, parse_rfc3339_time

TIMESTAMP, MESSAGE_ID, DEVICE_ID = "timestamp", "messageId", "deviceId"
MAX_MESSAGE_BYTES = 256 * 1024
"""Maximum size of a message that the service accepts."""
_DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?", re.ASCII)
_MAX_NUMBER_LENGTH = 1000
_MAX_NAMES_SHOWN = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Tree = dict[str, Any]
"""Properties of a JSON object by name; each value is a JSON text, or a nested tree for an object."""


class FileError(ValueError):
    """Error in a CSV file; the message names the file and the row."""


@dataclass(frozen=True, slots=True)
class CsvFile:
    """CSV file of telemetry rows, with its format and the connection that receives the rows.

    Attributes:
        path: the file, UTF-8.
        target: data connection that receives the rows of the file.
        delimiter: separator of cells.
        time_column: the column of the timestamp.
        zone: time zone for times that state none; None to reject such times.
        device: device id of rows without a device id; if empty, the service sets the device id.
    """

    path: Path
    target: ReplayTarget
    delimiter: str = ","
    time_column: str = TIMESTAMP
    zone: tzinfo | None = None
    device: str = ""

    def iterate_rows(self) -> Iterator["CsvRow"]:
        """Read the file and yield its rows, numbered from 1.

        Raises:
            FileError: the file cannot be read, its header has no time column or no other column, or a row is invalid.
        """
        try:
            if self.path.exists() and not self.path.is_file():
                raise FileError(
                    f"{self.path}: must be a regular file, because it is read twice: first to check it, then to send it"
                )
            with self.path.open(encoding="utf-8-sig", newline="") as text:
                yield from self._iterate_parsed_rows(_LineRecorder(text))
        except OSError as error:
            raise FileError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileError(f"{self.path}: the text is not UTF-8") from None

    def _iterate_parsed_rows(self, lines: "_LineRecorder") -> Iterator["CsvRow"]:
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        names = _read_next_cells(self.path, reader, 0)
        if not names:
            raise FileError(f"{self.path}: the first line must be a header with the names of the columns")
        self._check_header(names)
        lines.take_read_lines()
        row_number = 0
        while (cells := _read_next_cells(self.path, reader, row_number + 1)) is not None:
            own_lines = lines.take_read_lines()
            if cells:
                row_number += 1
                if len(own_lines) > 1 and self._is_each_line_a_row(names, own_lines):
                    raise FileError(
                        f"{self.path}: row {row_number} has {len(own_lines)} lines, of which each may be a row, "
                        "because the first line has a quote that is not closed in that line; close the quote, or "
                        "remove the line breaks from the text"
                    )
                yield self._parse_row(names, cells, row_number)

    def _is_each_line_a_row(self, column_names: Sequence[str], lines: Sequence[str]) -> bool:
        """Return whether each line of a row with several lines can be a row by itself.

        Then a quote is probably not closed, and the row contains the rows that follow it. The open quote in the first
        line counts as an ordinary character. The service has the same rule when it imports a CSV file.
        """
        # Without the option `strict`, the reader accepts the quote that is open at the end of the line.
        first = next(csv.reader(lines[:1], delimiter=self.delimiter))
        if len(first) + first[-1].count(self.delimiter) != len(column_names):
            return False
        return all(self._is_blank_or_complete_row(column_names, line) for line in lines[1:])

    def _is_blank_or_complete_row(self, column_names: Sequence[str], line: str) -> bool:
        try:
            cells = next(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error:
            return False
        return not cells or (
            len(cells) == len(column_names) and self._is_valid_time(cells[column_names.index(self.time_column)])
        )

    def _is_valid_time(self, cell: str) -> bool:
        try:
            self._parse_time_cell(cell, "")
        except FileError:
            return False
        return True

    def _has_line_with_time(self, column_name: str) -> bool:
        """Return whether a column name contains, after its first line, a line with several cells and a valid time.

        Such a line is probably a row of the file: if a quote in the header is not closed, the rows after the header
        become part of a column name.
        """
        lines = [line.split(self.delimiter) for line in column_name.replace("\r", "\n").split("\n")[1:]]
        return any(len(cells) > 1 and any(map(self._is_valid_time, cells)) for cells in lines)

    def _check_header(self, column_names: Sequence[str]) -> None:
        if any(map(self._has_line_with_time, column_names)):
            raise FileError(
                f"{self.path}: the header has a quote that is not closed in its line, so that a column name contains "
                "lines with a time, which may be rows; close the quote, or remove the line breaks from the column name"
            )
        if len(set(column_names)) < len(column_names):
            raise FileError(f"{self.path}: the header contains two columns of the same name")
        if len(column_names) == 1:
            raise FileError(
                f"{self.path}: the header has one column, {column_names[0]!r}; it must have a time column and at least "
                f"one other column{self._build_delimiter_hint(column_names)}"
            )
        if self.time_column not in column_names:
            shown = ", ".join(column_names[:_MAX_NAMES_SHOWN]) + (
                ", ..." if len(column_names) > _MAX_NAMES_SHOWN else ""
            )
            hint = self._build_delimiter_hint(column_names) or "; set the time column with --time-column"
            raise FileError(f"{self.path}: the column {self.time_column!r} is missing; the columns are {shown}{hint}")
        taken = {pointer[0] for pointer in self.target.metadata_pointers if pointer}
        for name in column_names:
            if name in taken and name not in {self.time_column, DEVICE_ID, MESSAGE_ID}:
                raise FileError(
                    f"{self.path}: the column {name!r} would not be stored as data, because a JSON pointer of the "
                    f"connection names it; rename the column, or, if it contains the time, pass --time-column {name}"
                )

    def _build_delimiter_hint(self, column_names: Sequence[str]) -> str:
        """Return a hint with a delimiter that would split the header into more columns.

        Return an empty text if there is no such delimiter.
        """
        header = self.delimiter.join(column_names)
        better = {
            each: header.split(each)
            for each in _DELIMITERS
            if each != self.delimiter
            and each in header
            and (header.count(each) >= len(column_names) or self.time_column in header.split(each))
        }
        best = max(better, key=lambda each: (self.time_column in better[each], len(better[each])), default="")
        return f"; try --delimiter {_DELIMITERS[best]}" if best else ""

    def _parse_row(self, column_names: Sequence[str], cells: Sequence[str], row_number: int) -> "CsvRow":
        place = f"{self.path}: row {row_number}"
        if len(cells) != len(column_names):
            raise FileError(f"{place} has {len(cells)} cells; the header has {len(column_names)}")
        by_name = dict(zip(column_names, cells, strict=True))
        moment = self._parse_time_cell(by_name.pop(self.time_column), place)
        own_id = by_name.pop(MESSAGE_ID, "")
        device = by_name.pop(DEVICE_ID, "")
        own_id = _validate_optional_id(own_id, f"{place}: {MESSAGE_ID}")
        device = _validate_optional_id(device, f"{place}: {DEVICE_ID}") or self.device
        if device and not self.target.device_id:
            raise FileError(
                f"{place}: the row has a device id, but the connection has no deviceIdPointer; remove the device id"
            )
        payload: _Tree = {name: _cell_to_json(cell) for name, cell in by_name.items() if cell.strip()}
        content_id = derive_message_id(
            self.target.connection, device or self.target.connection, moment, json.loads(_tree_to_json(payload))
        )
        message = self._build_message_json(payload, own_id or content_id, device, moment)
        if len(message) > MAX_MESSAGE_BYTES:
            raise FileError(f"{place}: the message of this row has more than {MAX_MESSAGE_BYTES} bytes, the maximum")
        return CsvRow(place, moment, message, content_id, own_id)

    def _build_message_json(self, payload: _Tree, message_id: str, device_id: str, moment: datetime) -> bytes:
        target = self.target
        tree: _Tree = {}
        _set_tree_member(tree, target.message_id, _quote_json_string(message_id))
        if device_id:
            _set_tree_member(tree, target.device_id, _quote_json_string(device_id))
        _set_tree_member(
            tree, target.timestamp, _quote_json_string(_format_time_of_measurement(moment, target.timestamp_format))
        )
        return _tree_to_json(tree | payload).encode()

    def _parse_time_cell(self, cell: str, position: str) -> datetime:
        text = cell.strip()
        try:
            return parse_rfc3339_time(text)
        except ValueError as error:
            local = _parse_time_without_zone(text)
            if local is None or self.zone is None:
                hint = "; set its zone with --assume-zone" if local else ""
                raise FileError(f"{position}: {text!r} is not a valid time: {error}{hint}") from None
        try:
            return _utc_from_local_time(local, self.zone)
        except ValueError as error:
            raise FileError(f"{position}: {text!r} is not a valid time: {error}") from None


@dataclass(frozen=True, slots=True)
class CsvRow:
    """CSV row, and the telemetry message to which the row is converted.

    Attributes:
        place: file and row number; the first row after the header is 1.
        moment: time of the measurement.
        message: telemetry message as JSON text.
        content_id: message id that is computed from connection, device, time and payload; equal rows have equal ids.
        own_id: message id in the column messageId; empty if the row has no message id.
    """

    place: str
    moment: datetime
    message: bytes
    content_id: str
    own_id: str


class _LineRecorder(Iterator[str]):
    """Iterator of the lines of a text; it records the lines that were read, so that the lines of a row are known."""

    def __init__(self, text: Iterable[str]) -> None:
        self._text = iter(text)
        self._read: list[str] = []

    def __next__(self) -> str:
        """Return the next line, and record it."""
        line = next(self._text)
        self._read.append(line)
        return line

    def take_read_lines(self) -> list[str]:
        """Return the lines that were read since the last call."""
        taken, self._read = self._read, []
        return taken


def _validate_optional_id(text: str, position: str) -> str:
    """Check a cell with a message id or device id; return the id, or an empty text for an empty cell."""
    if not text.strip():
        return ""
    if len(text) > MAX_ID_CHARACTERS:
        raise FileError(f"{position}: must be a string of 1 to {MAX_ID_CHARACTERS} characters")
    return text


def _read_next_cells(path: Path, reader: Iterator[list[str]], row_number: int) -> list[str] | None:
    """Return the cells of the next row, empty for a blank line; None at the end of the file."""
    try:
        return next(reader, None)
    except csv.Error as error:
        raise FileError(f"{path}: row {row_number} is not CSV: {error}") from None


def _cell_to_json(cell: str) -> str:
    """Convert a cell to JSON text: a number as written, any other text as a string."""
    text = cell.strip()
    if len(text) <= _MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return text
    return _quote_json_string(cell)


def _quote_json_string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set_tree_member(tree: _Tree, pointer: Pointer, json_text: str) -> None:
    """Set the JSON text of the property at a pointer; create the objects that contain the property."""
    for token in pointer[:-1]:
        below = tree.setdefault(token, {})
        # ReplayTarget has rejected overlapping pointers.
        assert isinstance(below, dict)  # noqa: S101
        tree = below
    tree[pointer[-1]] = json_text


def _tree_to_json(tree: Mapping[str, Any]) -> str:
    members = (
        f"{_quote_json_string(name)}:{below if isinstance(below, str) else _tree_to_json(below)}"
        for name, below in tree.items()
    )
    return "{" + ",".join(members) + "}"


def _format_time_of_measurement(moment: datetime, timestamp_format: str) -> str:
    if timestamp_format == "rfc3339":
        return format_rfc3339_time(moment)
    digits = 6 if timestamp_format == "epochSeconds" else 3
    microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    sign, whole = "-" if microseconds < 0 else "", abs(microseconds)
    return f"{sign}{whole // 10**digits}.{whole % 10**digits:0{digits}d}"


def _parse_time_without_zone(text: str) -> datetime | None:
    """Parse an ISO 8601 time without a time zone; None if the text is not such a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _utc_from_local_time(local: datetime, zone: tzinfo) -> datetime:
    """Convert a local time to UTC, by the same rules as the service when it imports a CSV file.

    Raises:
        ValueError: the local time does not exist or occurs twice, because clocks were changed, or the time in UTC is
            outside the years 1 to 9999.
    """
    try:
        first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
        if first == second:
            return first
        is_repeated = abs(first - second) < timedelta(days=1) and first.astimezone(zone).replace(tzinfo=None) == local
    except OverflowError:
        raise ValueError("the time in UTC is outside the years 1 to 9999") from None
    rule = (
        "occurs twice, because clocks were set back" if is_repeated else "is skipped, because clocks were set forward"
    )
    raise ValueError(f"the local time {rule} in {zone}; write it with an offset, such as 2026-01-05T09:00:00+01:00")
