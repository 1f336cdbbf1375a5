"""Conversion of the rows of an imported file to telemetry messages, and of local times to UTC."""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final
from zoneinfo import ZoneInfo

from shared.auth.device_patterns import build_device_id_matcher
from shared.catalog.models import Connection, TelemetryPolicy, TimestampFormat
from shared.downloads.import_request import ImportFormat, ImportMapping
from shared.telemetry.json_text import serialise_lossless_json
from shared.telemetry.layout import validate_message_or_device_id
from shared.telemetry.message_parser import MAX_MESSAGE_BYTES
from shared.telemetry.normalisation import derive_message_id
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.text_formats.large_json import MAX_DIGITS, LongInteger, parse_json_integer
from shared.timestamps import check_utc_offset, format_rfc3339

_TEXT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s?([Zz]|[+-](\d\d):?(\d\d))?", re.ASCII)
_EXPECTED: Final = "a date-time such as 2026-01-01T00:00:00Z is expected"


class TimeParser:
    """Parser of the times in the rows of an imported file.

    Args:
        mapping: format of the times and their zone.
    """

    def __init__(self, mapping: ImportMapping) -> None:
        self._format = mapping.timestamp_format
        self._decimal = mapping.decimal
        self._zone = ZoneInfo(mapping.time_zone) if mapping.time_zone else None

    def parse_to_utc(self, cell: Any) -> datetime:
        """Parse the time in a cell of an imported file, and convert it to UTC.

        Args:
            cell: a text, a number or a datetime.

        Raises:
            ValueError: the value is not a time in the format of the import; the message is the end of a sentence,
                without the full stop.
        """
        if isinstance(cell, datetime):
            return self._to_utc(cell)
        if isinstance(cell, str):
            cell = cell.strip()
        if self._format is TimestampFormat.RFC3339:
            return self._parse_rfc3339_text(cell if isinstance(cell, str) else "")
        if isinstance(cell, str) and self._decimal == ",":
            cell = cell.replace(",", ".")
        return parse_timestamp(str(cell) if isinstance(cell, Decimal) else cell, self._format)

    def _parse_rfc3339_text(self, text: str) -> datetime:
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(_EXPECTED)
        day, minute, second, offset, hours, minutes = found.groups()
        check_utc_offset(hours, minutes)
        try:
            local = datetime.fromisoformat(f"{day}T{minute}{second or ':00'}{(offset or '').upper()}")
        except ValueError:
            raise ValueError("the date-time has a day or time that does not exist") from None
        return self._to_utc(local)

    def _to_utc(self, moment: datetime) -> datetime:
        try:
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
            if self._zone is None:
                raise ValueError("the date-time has no time zone; set `mapping.timeZone`")
            return self._local_time_to_utc(moment, self._zone)
        except OverflowError:
            raise ValueError("the date-time is outside the years 1 to 9999") from None

    def _local_time_to_utc(self, local: datetime, zone: ZoneInfo) -> datetime:
        """Convert a local time to UTC; reject times that a change of clocks skips or repeats."""
        first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
        if first == second:
            return first
        if abs(first - second) < timedelta(days=1) and first.astimezone(zone).replace(tzinfo=None) == local:
            rule = "occurs twice, because clocks were set back"
        else:
            rule = "does not exist, because clocks were set forward"
        raise ValueError(f"the local time {rule} in {zone.key}; write it with an offset")


NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_NUMBER_LENGTH: Final = len("-") + MAX_DIGITS
_MAX_SHOWN: Final = 20
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """Telemetry message that was read from one row of a file.

    Attributes:
        timestamp: time of measurement, UTC.
        device_id: id of the device.
        message_id: id of the message.
        payload: JSON object as UTF-8 text.
    """

    timestamp: datetime
    device_id: str
    message_id: str
    payload: bytes


class FileRejectedError(Exception):
    """Raised if a whole file cannot be imported; the message is a sentence for the caller."""


class RowMapper:
    """Converts rows of an imported file to messages, by the column mapping of the import.

    Args:
        connection: connection that receives the messages.
        file_format: format of the file.
        mapping: assignment of columns to the fields of a telemetry message.
        policy: telemetry policy of the workspace, such as which devices are allowed.
        latest: latest time that a message may have.
    """

    def __init__(
        self,
        connection: Connection,
        file_format: ImportFormat,
        mapping: ImportMapping,
        policy: TelemetryPolicy,
        latest: datetime,
    ) -> None:
        self.mapping = mapping
        self.connection = connection.lookup
        self.latest = latest
        self._device_patterns = connection.source.devices if policy.require_declared_devices else ()
        self.max_ahead_seconds = policy.max_ahead_seconds
        self._format = file_format
        self._times = TimeParser(mapping)
        self._special = {each for each in (mapping.timestamp, mapping.device, mapping.message_id) if each}

    @cached_property
    def device_check(self) -> Callable[[str], bool] | None:
        """Function that returns whether a given device id is allowed; None if all device ids are allowed.

        The first use compiles the device patterns of the connection. Use it in a worker thread, because this can take
        seconds.
        """
        return build_device_id_matcher(self._device_patterns) if self._device_patterns else None

    def convert_row(self, row: Mapping[str, Any]) -> ImportedMessage:
        """Convert a row to a message.

        Args:
            row: cells by column name; a missing cell is absent, None or, in CSV files, blank.

        Raises:
            ValueError: if the row is not a valid message; the message is a sentence for the caller.
        """
        timestamp = self._read_timestamp(row)
        device = self._read_id_or_empty(row, self.mapping.device) or self.connection
        if self.device_check is not None and not self.device_check(device):
            raise ValueError(f"Device {device!r} is not declared by `source.devices` of the connection.")
        payload = self._build_payload(row)
        message_id = self._read_id_or_empty(row, self.mapping.message_id) or derive_message_id(
            self.connection, device, timestamp, payload
        )
        text = serialise_lossless_json(payload)
        if len(text) > MAX_MESSAGE_BYTES:
            raise ValueError(f"The message has more than {MAX_MESSAGE_BYTES} bytes.")
        return ImportedMessage(timestamp, device, message_id, text)

    def is_time(self, cell: str) -> bool:
        """Return whether a cell of a CSV file is a valid time in the format of the mapping."""
        try:
            self._times.parse_to_utc(cell)
        except ValueError:
            return False
        return True

    def _read_timestamp(self, row: Mapping[str, Any]) -> datetime:
        column = self.mapping.timestamp
        value = row.get(column)
        if _is_blank(value):
            raise ValueError(f"Column `{column}` is empty; each row needs a time.")
        try:
            timestamp = self._times.parse_to_utc(value)
        except ValueError as error:
            raise ValueError(f"Column `{column}` has no valid time {str(value)[:64]!r}: {error}.") from None
        if timestamp > self.latest:
            rule = f"is more than {self.max_ahead_seconds} s ahead of the service's clock"
            raise ValueError(f"Column `{column}` has the time {format_rfc3339(timestamp)}, which {rule}.")
        return timestamp

    def _read_id_or_empty(self, row: Mapping[str, Any], column: str) -> str:
        """Return the device id or message id in a column, or an empty string for a missing cell.

        In CSV files a blank cell is missing; in other files white space is an id, as in messages over HTTP.
        """
        value = row.get(column) if column else None
        if value in (None, "") or (self._format is ImportFormat.CSV and _is_blank(value)):
            return ""
        if isinstance(value, int | LongInteger) and not isinstance(value, bool):
            value = str(value)
        try:
            return validate_message_or_device_id(value)
        except ValueError as error:
            raise ValueError(f"Column `{column}` {error}.") from None

    def _build_payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        columns = self.mapping.columns
        if columns is None:
            names: Sequence[str] = [name for name in row if name not in self._special]
        else:
            names = [name for name in columns if name in row]
        if self._format is ImportFormat.CSV:
            return {name: self._csv_cell_to_json_value(row[name]) for name in names if not _is_blank(row[name])}
        if self._format is ImportFormat.NDJSON:
            return {name: row[name] for name in names}
        converted = ((name, _parquet_value_to_json_value(row[name])) for name in names)
        return {name: value for name, value in converted if value is not _MISSING}

    def _csv_cell_to_json_value(self, cell: str) -> Any:
        """Convert a cell of a CSV file to a JSON value: a number, or the text unchanged."""
        text = cell.strip()
        if self.mapping.decimal == ",":
            if "." in text:
                return cell
            text = text.replace(",", ".")
        found = NUMBER.fullmatch(text) if len(text) <= _MAX_NUMBER_LENGTH else None
        if found is None:
            return cell
        if found[2] is None and found[3] is None:
            return parse_json_integer(text) if len(found[1]) <= MAX_DIGITS else cell
        number = float(text)
        return number if math.isfinite(number) else cell


def check_mapped_columns(columns: Sequence[str], mapping: ImportMapping) -> None:
    """Check that a file has exactly one column for each column name in a mapping.

    If the mapping does not list the columns of the payload, all columns of the file must have different names.

    Raises:
        FileRejectedError: a column is missing, or several columns have the same name.
    """
    wanted = [mapping.timestamp, mapping.device, mapping.message_id, *(mapping.columns or ())]
    for name in filter(None, wanted):
        if name not in columns:
            shown = ", ".join(f"`{each[:64]}`" for each in columns[:_MAX_SHOWN])
            raise FileRejectedError(f"The file has no column `{name}`; its columns are {shown}.")
    used = set(wanted) if mapping.columns is not None else set(columns)
    seen: set[str] = set()
    for name in columns:
        if name in used and name in seen:
            rule = "rename one of them, or list the columns of the payload in `mapping.columns`"
            raise FileRejectedError(f"The file has several columns `{name[:64]}`; {rule}.")
        seen.add(name)


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _parquet_value_to_json_value(value: Any) -> Any:
    """Convert a value of a Parquet file to a JSON value; return ``_MISSING`` for null, NaN and infinite numbers.

    Inside the value, objects omit members with these values, and lists contain null in their place.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return _MISSING
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return _parquet_value_to_json_value(int(value) if value == value.to_integral_value() else float(value))
    if isinstance(value, dict):
        members = ((str(name), _parquet_value_to_json_value(each)) for name, each in value.items())
        return {name: each for name, each in members if each is not _MISSING}
    if isinstance(value, list | tuple):
        return [None if each is _MISSING else each for each in map(_parquet_value_to_json_value, value)]
    return _value_to_text(value)


def _value_to_text(value: Any) -> str:
    if isinstance(value, datetime):
        return format_rfc3339(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds()}s"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
