"""Tests of the times of imported rows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportMapping
from shared.imports.times import TimeParser

TEN = datetime(2026, 1, 5, 10, tzinfo=UTC)


def parse(value: Any, **mapping: Any) -> datetime:
    """Return the time of a value."""
    return TimeParser(ImportMapping(timestamp="t", **mapping)).parse(value)


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
        (TEN, {}),
        ("1767607200", {"timestamp_format": TimestampFormat.EPOCH_SECONDS}),
        (1767607200.0, {"timestamp_format": TimestampFormat.EPOCH_SECONDS}),
        ("1767607200000", {"timestamp_format": TimestampFormat.EPOCH_MILLISECONDS}),
        ("1767607200,0", {"timestamp_format": TimestampFormat.EPOCH_SECONDS, "decimal": ","}),
    ],
)
def test_times_are_converted_to_utc(value: Any, mapping: dict[str, Any]) -> None:
    """Times with an offset, local times of a zone, and epoch times give the same instant."""
    assert parse(value, **mapping) == TEN


@pytest.mark.parametrize(
    ("value", "mapping", "reason"),
    [
        ("2026-01-05 10:00:00", {}, "no time zone; set `mapping.timeZone`"),
        ("05.01.2026 10:00", {}, "is expected"),
        ("2026-02-30T10:00:00Z", {}, "does not exist"),
        ("2026-03-29 02:30:00", {"time_zone": "Europe/Berlin"}, "set forward in Europe/Berlin"),
        ("2025-10-26 02:30:00", {"time_zone": "Europe/Berlin"}, "occurs twice.*set back"),
        ("2026-10-04 02:15:00", {"time_zone": "Australia/Lord_Howe"}, "set forward"),
        ("0001-01-01 00:00:00+01:00", {}, "outside the years"),
        ("x", {"timestamp_format": TimestampFormat.EPOCH_SECONDS}, "must be a number"),
        (5, {}, "is expected"),
    ],
)
def test_ambiguous_and_invalid_times_are_rejected(value: Any, mapping: dict[str, Any], reason: str) -> None:
    """A time without a zone, and a local time that a clock change skips or repeats, has no certain instant."""
    with pytest.raises(ValueError, match=reason):
        parse(value, **mapping)


def test_times_around_a_clock_change_are_certain() -> None:
    """Only the repeated hour is ambiguous."""
    zone = {"time_zone": "Europe/Berlin"}
    assert parse("2025-10-26 01:59:59", **zone) == datetime(2025, 10, 25, 23, 59, 59, tzinfo=UTC)
    assert parse("2025-10-26 03:00:00", **zone) == datetime(2025, 10, 26, 2, tzinfo=UTC)
    assert parse("2025-10-26 02:30:00+02:00", **zone) == datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
