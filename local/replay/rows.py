"""CSV files as messages: numbers as written, empty cells omitted, times in the format of the connection."""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from local.replay.errors import ReplayError
from shared.catalog.models import TimestampFormat
from shared.telemetry.acceptance import MAX_MESSAGE_BYTES
from shared.telemetry.layout import DEFAULT_LAYOUT, MessageLayout, validate_id
from shared.telemetry.normalisation import derive_message_id
from shared.telemetry.pointers import Pointer, format_pointer
from shared.timestamps import parse_rfc3339, rfc3339

TIMESTAMP, MESSAGE_ID, DEVICE_ID = "timestamp", "messageId", "deviceId"
_DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_NUMBER_LENGTH = 1000
_MAX_NAMES_SHOWN = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

type _Tree = dict[str, "str | _Tree"]
"""Members by name: JSON texts and nested members."""


class FileError(ReplayError):
    """Error in a file, with the name of the file and the row."""


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Connection that receives the rows.

    Attributes:
        connection: lookup of the connection.
        layout: pointers to timestamp, message id and device id in messages.

    Raises:
        ReplayError: a pointer for timestamps or message ids is empty, or a pointer is part of another.
    """

    connection: str
    layout: MessageLayout = DEFAULT_LAYOUT

    def __post_init__(self) -> None:
        """Reject pointers that no message can satisfy."""
        if not self.layout.timestamp or not self.layout.message_id:
            raise ReplayError(f"{self.connection}: the pointers for timestamp and message id must not be empty")
        pointers = [each for each in self.pointers if each]
        for one in pointers:
            if sum(other[: len(one)] == one for other in pointers) > 1:
                raise ReplayError(f"{self.connection}: another pointer leads to or into {format_pointer(one)}")

    @property
    def pointers(self) -> tuple[Pointer, Pointer, Pointer]:
        """Pointers of message id, device id and timestamp."""
        return self.layout.message_id, self.layout.device_id, self.layout.timestamp


@dataclass(frozen=True, slots=True)
class CsvFile:
    """CSV file and its format.

    Attributes:
        path: the file, UTF-8.
        target: the connection that receives its rows.
        delimiter: separator of cells.
        time_column: the column of the timestamp.
        zone: the zone of times without one; None rejects them.
        device: device id of rows without one; if empty, the service sets it.
    """

    path: Path
    target: ReplayTarget
    delimiter: str = ","
    time_column: str = TIMESTAMP
    zone: tzinfo | None = None
    device: str = ""

    def rows(self) -> Iterator["CsvRow"]:
        """Yield the rows, numbered from 1.

        Raises:
            FileError: the file cannot be read, its header lacks the time column or a second column, or a row is
                invalid.
        """
        try:
            if self.path.exists() and not self.path.is_file():
                raise FileError(f"{self.path}: not a regular file; it is read twice, first to check it")
            with self.path.open(encoding="utf-8-sig", newline="") as text:
                reader = csv.reader(text, delimiter=self.delimiter, strict=True)
                yield from self._rows(reader)
        except OSError as error:
            raise FileError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileError(f"{self.path}: not UTF-8") from None

    def _rows(self, reader: Iterator[list[str]]) -> Iterator["CsvRow"]:
        names = _next_cells(self.path, reader, 0)
        if not names:
            raise FileError(f"{self.path}: the first line must be a header with the names of the columns")
        self._check_header(names)
        number = 0
        while (cells := _next_cells(self.path, reader, number + 1)) is not None:
            if cells:
                number += 1
                yield self._row(names, cells, number)

    def _check_header(self, names: Sequence[str]) -> None:
        if len(set(names)) < len(names):
            raise FileError(f"{self.path}: the header repeats a column")
        if len(names) == 1:
            raise FileError(
                f"{self.path}: the header has one column, {names[0]!r}; it must have a time column and at least one "
                f"other column{self._delimiter_hint(names)}"
            )
        if self.time_column not in names:
            shown = ", ".join(names[:_MAX_NAMES_SHOWN]) + (", ..." if len(names) > _MAX_NAMES_SHOWN else "")
            hint = self._delimiter_hint(names) or "; set the time column with --time-column"
            raise FileError(f"{self.path}: the column {self.time_column!r} is missing; the columns are {shown}{hint}")
        taken = {pointer[0] for pointer in self.target.pointers if pointer}
        for name in names:
            if name in taken and name not in {self.time_column, DEVICE_ID, MESSAGE_ID}:
                raise FileError(
                    f"{self.path}: the connection does not store the column {name!r} as data, because a pointer "
                    "refers to it; rename the column, or set it with --time-column"
                )

    def _delimiter_hint(self, names: Sequence[str]) -> str:
        """Return a hint about a delimiter that yields more columns, or an empty text."""
        header = self.delimiter.join(names)
        better = {
            each: header.split(each)
            for each in _DELIMITERS
            if each != self.delimiter
            and each in header
            and (header.count(each) >= len(names) or self.time_column in header.split(each))
        }
        best = max(better, key=lambda each: (self.time_column in better[each], len(better[each])), default="")
        return f"; try --delimiter {_DELIMITERS[best]}" if best else ""

    def _row(self, names: Sequence[str], cells: Sequence[str], number: int) -> "CsvRow":
        place = f"{self.path}: row {number}"
        if len(cells) != len(names):
            raise FileError(f"{place} has {len(cells)} cells; the header has {len(names)}")
        by_name = dict(zip(names, cells, strict=True))
        moment = self._parse_time(by_name.pop(self.time_column), place)
        own_id = by_name.pop(MESSAGE_ID, "")
        device = by_name.pop(DEVICE_ID, "")
        try:
            own_id = validate_id(own_id) if own_id.strip() else ""
            device = validate_id(device) if device.strip() else self.device
        except ValueError as error:
            raise FileError(f"{place}: {MESSAGE_ID} and {DEVICE_ID}: {error}") from None
        if device and not self.target.layout.device_id:
            raise FileError(f"{place}: the connection has no pointer for the device id of the row")
        payload: _Tree = {name: _to_json(cell) for name, cell in by_name.items() if cell.strip()}
        content = derive_message_id(
            self.target.connection, device or self.target.connection, moment, json.loads(_to_object(payload))
        )
        message = self._message(payload, own_id or content, device, moment)
        if len(message) > MAX_MESSAGE_BYTES:
            raise FileError(f"{place} is over {MAX_MESSAGE_BYTES} bytes as a message")
        return CsvRow(place, moment, message, content, own_id)

    def _message(self, payload: _Tree, message_id: str, device: str, moment: datetime) -> bytes:
        layout = self.target.layout
        tree: _Tree = {}
        _put(tree, layout.message_id, _string(message_id))
        if device:
            _put(tree, layout.device_id, _string(device))
        _put(tree, layout.timestamp, _string(_time_text(moment, layout.timestamp_format)))
        return _to_object(tree | payload).encode()

    def _parse_time(self, cell: str, place: str) -> datetime:
        text = cell.strip()
        try:
            return parse_rfc3339(text)
        except ValueError as error:
            local = _parse_naive(text)
            if local is None or self.zone is None:
                hint = "; set its zone with --assume-zone" if local else ""
                raise FileError(f"{place}: {text!r} is not a valid time: {error}{hint}") from None
        return local.replace(tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class CsvRow:
    """Row as a message.

    Attributes:
        place: file and row number; the first row after the header is 1.
        moment: time of the measurement.
        message: JSON text.
        content: the id that is derived from connection, device, time and payload.
        own_id: the message id in the row, or empty.
    """

    place: str
    moment: datetime
    message: bytes
    content: str
    own_id: str


class RepeatFilter:
    """Filter of rows that repeat an earlier row: same connection, device, time and content.

    It uses about 120 bytes of memory per row.

    Attributes:
        read: number of rows.
        repeated: number of skipped rows.
    """

    def __init__(self) -> None:
        self.read = 0
        self.repeated = 0
        self._seen: set[bytes] = set()
        self._own: dict[str, tuple[str, str]] = {}

    def unique_rows(self, rows: Iterable[CsvRow]) -> Iterator[CsvRow]:
        """Yield the rows that are not repeated.

        Raises:
            FileError: two rows with different content have the same message id; the service would store only one.
        """
        for row in rows:
            self.read += 1
            if self._is_repeat(row):
                self.repeated += 1
            else:
                yield row

    def _is_repeat(self, row: CsvRow) -> bool:
        if row.own_id:
            this = (row.content, row.place)
            first = self._own.setdefault(row.own_id, this)
            if first[0] != row.content:
                raise FileError(f"{row.place} has the messageId of another row with different content ({first[1]})")
            return first is not this
        digest = bytes.fromhex(row.content)
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False


def parse_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name.

    Raises:
        ValueError: the zone is unknown.
    """
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, LookupError):
        raise ValueError(f"unknown time zone {name!r}") from None


def _next_cells(path: Path, reader: Iterator[list[str]], number: int) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise FileError(f"{path}: row {number} is not CSV: {error}") from None


def _to_json(cell: str) -> str:
    """Return a cell as JSON text: a number as written, any other text as a string."""
    text = cell.strip()
    if len(text) <= _MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return text
    return _string(cell)


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _put(tree: _Tree, pointer: Pointer, text: str) -> None:
    for token in pointer[:-1]:
        below = tree.setdefault(token, {})
        # ReplayTarget has rejected overlapping pointers.
        assert isinstance(below, dict)  # noqa: S101
        tree = below
    tree[pointer[-1]] = text


def _to_object(tree: Mapping[str, Any]) -> str:
    members = (
        f"{_string(name)}:{below if isinstance(below, str) else _to_object(below)}" for name, below in tree.items()
    )
    return "{" + ",".join(members) + "}"


def _time_text(moment: datetime, form: TimestampFormat) -> str:
    if form is TimestampFormat.RFC3339:
        return rfc3339(moment)
    digits = 6 if form is TimestampFormat.EPOCH_SECONDS else 3
    microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    sign, whole = "-" if microseconds < 0 else "", abs(microseconds)
    return f"{sign}{whole // 10**digits}.{whole % 10**digits:0{digits}d}"


def _parse_naive(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None
