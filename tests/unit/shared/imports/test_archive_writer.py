"""Tests of grouping imported messages by hour."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from shared.imports.archive_writer import _split_hours
from shared.imports.step_rows import SCHEMA

HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)
NEXT_HOUR = datetime(2026, 1, 5, 9, tzinfo=UTC)


def build_messages(*rows: tuple[int, datetime]) -> pa.Table:
    """Return messages with these row numbers and times, in two chunks."""
    tables = [
        pa.Table.from_pylist(
            [
                {"number": number, "timestamp": time, "device_id": "d", "message_id": str(number), "payload": "{}"}
                for number, time in part
            ],
            schema=SCHEMA,
        )
        for part in (rows[:2], rows[2:])
    ]
    return pa.concat_tables(tables)


@pytest.mark.parametrize(
    "rows",
    [
        ((1, HOUR), (2, HOUR), (3, HOUR.replace(minute=5)), (4, NEXT_HOUR)),
        ((4, NEXT_HOUR), (1, HOUR), (3, HOUR.replace(minute=5)), (2, HOUR)),
        ((2, HOUR), (1, HOUR), (3, HOUR.replace(minute=5)), (4, NEXT_HOUR)),
        ((1, HOUR), (2, HOUR), (4, NEXT_HOUR), (3, HOUR.replace(minute=5))),
    ],
)
def test_messages_are_grouped_in_order(rows: tuple[tuple[int, datetime], ...]) -> None:
    """Imported messages are grouped by hour, and sorted by time and row number in each hour."""
    grouped = [(hour, part.column("number").to_pylist()) for hour, part in _split_hours(build_messages(*rows))]
    assert grouped == [(HOUR, [1, 2, 3]), (NEXT_HOUR, [4])]


def test_without_messages_no_hour_is_written() -> None:
    """If there are no messages, no hour is written."""
    assert _split_hours(build_messages()) == []
    assert len(_split_hours(build_messages((1, HOUR)))) == 1
