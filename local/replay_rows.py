"""Reads a CSV file as messages: numbers as written, empty cells left out."""

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from local.replay_error import ReplayError
from shared.timestamps import parse_rfc3339, rfc3339

TIMESTAMP = "timestamp"
_ALWAYS_TEXT = frozenset({"messageId", "deviceId"})
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST_NUMBER = 1000


class FileError(ReplayError):
    """The file is not what the command line says it is; the text names the row."""


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file and how to read it.

    Attributes:
        path: the file, UTF-8.
        delimiter: what separates cells.
        time_column: the column of the timestamp; empty for ``timestamp`` where there is such a column, else none.
        zone: the zone of times that name none; None refuses them.
        device: device id of rows that bring none; empty leaves it to the service.
    """

    path: Path
    delimiter: str = ","
    time_column: str = ""
    zone: tzinfo | None = None
    device: str = ""

    def rows(self) -> Iterator["Row"]:
        """Yield the rows, numbered from 1.

        Raises:
            FileError: the file cannot be read, a column is unknown or named twice, a row has too few or too many cells,
                or a time is none.
        """
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as text:
                reader = csv.reader(text, delimiter=self.delimiter, strict=True)
                yield from self._rows(reader)
        except OSError as error:
            raise FileError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileError(f"{self.path}: not UTF-8") from None

    def _rows(self, reader: Iterator[list[str]]) -> Iterator["Row"]:
        header = self._header(_next(self.path, reader, 0) or [])
        number = 0
        while (cells := _next(self.path, reader, number + 1)) is not None:
            if cells:
                number += 1
                yield self._row(header, cells, number)

    def _header(self, names: Sequence[str]) -> "_Header":
        if len(set(names)) < len(names):
            raise FileError(f"{self.path}: the header names a column twice")
        wanted = self.time_column or (TIMESTAMP if TIMESTAMP in names else "")
        if wanted and wanted not in names:
            raise FileError(f"{self.path}: there is no column {wanted!r}; {self._what_there_is(names)}")
        if wanted != TIMESTAMP and TIMESTAMP in names:
            raise FileError(
                f"{self.path}: the column 'timestamp' would be taken for the time; rename it, or name it so"
            )
        return _Header(tuple(names), names.index(wanted) if wanted else None)

    def _what_there_is(self, names: Sequence[str]) -> str:
        if len(names) == 1:
            other = [each for each in _DELIMITERS if each in names[0]]
            return f"the header is one column; is the delimiter {other[0]!r}?" if other else "the header is one column"
        return "there are " + ", ".join(names)

    def _row(self, header: "_Header", cells: Sequence[str], number: int) -> "Row":
        if len(cells) != len(header.names):
            raise FileError(f"{self.path}: row {number} has {len(cells)} cells, the header {len(header.names)}")
        moment = self._moment(cells[header.time], number) if header.time is not None else None
        members = {"messageId": json.dumps(f"{self.path.stem}-{number}")}
        if self.device:
            members["deviceId"] = json.dumps(self.device)
        if moment is not None:
            members[TIMESTAMP] = json.dumps(rfc3339(moment))
        for index, (name, cell) in enumerate(zip(header.names, cells, strict=True)):
            if index != header.time and cell.strip():
                members[name] = json.dumps(cell) if name in _ALWAYS_TEXT else _json(cell)
        text = ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items())
        return Row(number, moment, f"{{{text}}}".encode())

    def _moment(self, cell: str, number: int) -> datetime:
        text = cell.strip()
        try:
            return parse_rfc3339(text)
        except ValueError as error:
            local = _naive(text)
            if local is None or self.zone is None:
                hint = "; name its zone with --assume-zone" if local else ""
                raise FileError(f"{self.path}: row {number}: {text!r} is no time: {error}{hint}") from None
        return local.replace(tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a message.

    Attributes:
        number: 1 for the first row under the header.
        moment: when it was measured, None where the file does not say.
        message: JSON text.
    """

    number: int
    moment: datetime | None
    message: bytes


@dataclass(frozen=True, slots=True)
class _Header:
    names: tuple[str, ...]
    time: int | None


def zone_named(name: str) -> tzinfo:
    """Return the zone of an IANA name.

    Raises:
        ValueError: there is no such zone.
    """
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, LookupError):
        raise ValueError(f"there is no time zone {name!r}") from None


def _next(path: Path, reader: Iterator[list[str]], number: int) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise FileError(f"{path}: row {number} is not CSV: {error}") from None


def _json(cell: str) -> str:
    """Return a cell as JSON text: a number exactly as it is written, anything else as a string."""
    text = cell.strip()
    if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return text
    return json.dumps(cell)


def _naive(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None
