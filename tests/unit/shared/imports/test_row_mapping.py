"""Tests of converting rows of imported files to messages, and of their times."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from shared.auth.device_patterns import compile_device_patterns
from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportFormat, ImportMapping
from shared.imports.row_mapping import TimeParser
from shared.telemetry.normalisation import derive_message_id
from tests.unit.shared.imports.files import build_row_mapper

TEN = "2026-01-05T10:00:00Z"


def test_the_message_id_of_a_row_depends_only_on_its_content() -> None:
    """Without an id column, rows with equal content get equal ids, for any file format and order of properties."""
    mapper = build_row_mapper(device="device")
    row = {"time": TEN, "device": "d1", "x": "1.50", "y": "a"}
    message = mapper.convert_row(row)
    moment = datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert message.message_id == derive_message_id("pump", "d1", moment, {"y": "a", "x": 1.5})
    assert mapper.convert_row(dict(reversed(row.items()))).message_id == message.message_id
    assert mapper.convert_row({**row, "x": "1.51"}).message_id != message.message_id
    assert build_row_mapper(message_id="y").convert_row(row).message_id == "a"


def test_cells_become_numbers_or_texts() -> None:
    """A cell with a JSON number becomes a number, any other cell stays text, and a blank cell is left out."""
    cells = {"a": "007", "b": " 2.0 ", "c": "1e400", "d": " ", "e": "nan", "f": "12345678901234567890123", "g": "true"}
    payload = build_row_mapper().convert_row({"time": TEN, **cells}).payload
    assert payload.decode() == ('{"a":"007","b":2.0,"c":"1e400","e":"nan","f":12345678901234567890123,"g":"true"}')


def test_parquet_values_become_json() -> None:
    """Nested Parquet values stay nested; values that JSON cannot represent are converted, and NaN is left out."""
    row = {
        "time": datetime(2026, 1, 5, 10, tzinfo=UTC),
        "nested": {"a": [1, None, float("nan")], "b": None},
        "decimal": Decimal("1.25"),
        "day": date(2026, 1, 5),
        "raw": b"\x00\x01",
        "nan": float("nan"),
        "flag": True,
    }
    payload = orjson.loads(build_row_mapper(ImportFormat.PARQUET).convert_row(row).payload)
    assert payload == {
        "nested": {"a": [1, None, None]},
        "decimal": 1.25,
        "day": "2026-01-05",
        "raw": "AAE=",
        "flag": True,
    }


@pytest.mark.parametrize(
    ("row", "mapping", "reason"),
    [
        ({"time": "2026-01-05T13:00:00Z"}, {}, "is more than 300 s ahead of the service's clock"),
        ({"time": TEN, "id": "x" * 257}, {"message_id": "id"}, "Column `id` must be a string of 1 to 256 characters."),
        ({"time": TEN, "id": True}, {"device": "id"}, "Column `id` must be a string"),
        ({"time": TEN, "id": "e1"}, {"device": "id", "declared": True}, "Device 'e1' is not declared"),
        ({"x": 1}, {}, "Column `time` is empty"),
    ],
)
def test_rows_that_break_a_rule_are_rejected(row: dict[str, Any], mapping: dict[str, Any], reason: str) -> None:
    """A row is rejected if its message breaks a rule about ids, declared devices or future times."""
    with pytest.raises(ValueError, match=reason):
        build_row_mapper(ImportFormat.NDJSON, **mapping).convert_row(row)


MORNING = datetime(2026, 1, 5, 10, tzinfo=UTC)


def parse_time(value: Any, **mapping: Any) -> datetime:
    """Parse the time in a cell by a column mapping."""
    return TimeParser(ImportMapping(timestamp="t", **mapping)).parse_to_utc(value)


@pytest.mark.parametrize(
    ("value", "mapping"),
    [
        ("2026-01-05T10:00:00Z", {}),
        (" 2026-01-05t10:00:00.000z ", {}),
        ("2026-01-05 11:00:00+01:00", {}),
        ("2026-01-05 11:00:00 +0100", {}),
        ("2026-01-05T10:00Z", {}),
        ("2026-01-05 11:00:00", {"time_zone": "Europe/Berlin"}),
        ("2026-01-05T10:00:00Z", {"time_zone": "Europe/Berlin"}),
        (datetime(2026, 1, 5, 11), {"time_zone": "Europe/Berlin"}),  # noqa: DTZ001  a local time
        (MORNING, {}),
        ("1767607200", {"timestamp_format": TimestampFormat.EPOCH_SECONDS}),
        (1767607200.0, {"timestamp_format": TimestampFormat.EPOCH_SECONDS}),
        ("1767607200000", {"timestamp_format": TimestampFormat.EPOCH_MILLISECONDS}),
        ("1767607200,0", {"timestamp_format": TimestampFormat.EPOCH_SECONDS, "decimal": ","}),
    ],
)
def test_row_times_are_converted_to_utc(value: Any, mapping: dict[str, Any]) -> None:
    """A time with an offset, a local time with a zone, and an epoch time are converted to UTC."""
    assert parse_time(value, **mapping) == MORNING


@pytest.mark.parametrize(
    ("value", "mapping", "reason"),
    [
        ("2026-01-05 10:00:00", {}, "no time zone; set `mapping.timeZone`"),
        ("05.01.2026 10:00", {}, "is expected"),
        ("2026-02-30T10:00:00Z", {}, "does not exist"),
        ("2026-01-05T10:00:00+02:60", {}, "offset .* minutes of 00 to 59"),
        ("2026-01-05T10:00:00+2400", {}, "offset .* hours of 00 to 23"),
        ("2026-03-29 02:30:00", {"time_zone": "Europe/Berlin"}, "set forward in Europe/Berlin"),
        ("2025-10-26 02:30:00", {"time_zone": "Europe/Berlin"}, "occurs twice.*set back"),
        ("2026-10-04 02:15:00", {"time_zone": "Australia/Lord_Howe"}, "set forward"),
        ("0001-01-01 00:00:00+01:00", {}, "outside the years"),
        ("x", {"timestamp_format": TimestampFormat.EPOCH_SECONDS}, "must be a number"),
        (5, {}, "is expected"),
    ],
)
def test_ambiguous_and_invalid_times_are_rejected(value: Any, mapping: dict[str, Any], reason: str) -> None:
    """A time without a zone is rejected, and so is a local time that a clock change skips or repeats."""
    with pytest.raises(ValueError, match=reason):
        parse_time(value, **mapping)


def test_local_times_around_a_clock_change_are_accepted() -> None:
    """Local times around a clock change are accepted, unless the change skips or repeats them."""
    zone = {"time_zone": "Europe/Berlin"}
    assert parse_time("2025-10-26 01:59:59", **zone) == datetime(2025, 10, 25, 23, 59, 59, tzinfo=UTC)
    assert parse_time("2025-10-26 03:00:00", **zone) == datetime(2025, 10, 26, 2, tzinfo=UTC)
    assert parse_time("2025-10-26 02:30:00+02:00", **zone) == datetime(2025, 10, 26, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize("digits", ["9" * 309, "-" + "9" * 4_300, "18446744073709551616"])
def test_integers_in_cells_are_exact(digits: str) -> None:
    """In CSV and NDJSON files, an integer of up to 4,300 digits becomes an exact number."""
    expected = f'{{"x":{digits}}}'.encode()
    assert build_row_mapper().convert_row({"time": TEN, "x": digits}).payload == expected
    assert build_row_mapper().convert_row({"time": TEN, "x": digits + "0" * 4_300}).payload == expected.replace(
        digits.encode(), f'"{digits}{"0" * 4_300}"'.encode()
    )


def test_white_space_is_an_id_except_in_csv_files() -> None:
    """White space is a valid id in an NDJSON row; in CSV, a blank cell means that the id is missing."""
    row = {"time": TEN, "id": "  ", "x": 1}
    assert build_row_mapper(ImportFormat.NDJSON, message_id="id").convert_row(row).message_id == "  "
    assert build_row_mapper(message_id="id").convert_row({**row, "x": "1"}).message_id.strip()


def test_device_patterns_are_compiled_for_the_first_row() -> None:
    """A new mapper compiles no device patterns, because it is created in the event loop and many patterns take long."""
    compile_device_patterns.cache_clear()
    mapper = build_row_mapper(device="device", declared=True)
    assert compile_device_patterns.cache_info().misses == 0
    mapper.convert_row({"time": TEN, "device": "d1"})
    assert compile_device_patterns.cache_info().misses == 1
