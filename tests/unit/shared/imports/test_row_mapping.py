"""Tests of the conversion of rows to messages."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from shared.downloads.import_request import ImportFormat
from shared.telemetry.normalisation import derive_message_id
from tests.unit.shared.imports.files import build_mapper

TEN = "2026-01-05T10:00:00Z"


def test_the_id_depends_on_the_content_only() -> None:
    """Without a column of ids, the id is that of the same message from any other source; the order is irrelevant."""
    mapper = build_mapper(device="device")
    row = {"time": TEN, "device": "d1", "x": "1.50", "y": "a"}
    message = mapper.map_row(row)
    moment = datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert message.message_id == derive_message_id("pump", "d1", moment, {"y": "a", "x": 1.5})
    assert mapper.map_row(dict(reversed(row.items()))).message_id == message.message_id
    assert mapper.map_row({**row, "x": "1.51"}).message_id != message.message_id
    assert build_mapper(message_id="y").map_row(row).message_id == "a"


def test_cells_become_numbers_or_texts() -> None:
    """Numbers keep their value; texts that only look like numbers stay texts; blank cells are omitted."""
    cells = {"a": "007", "b": " 2.0 ", "c": "1e400", "d": " ", "e": "nan", "f": "12345678901234567890123", "g": "true"}
    payload = build_mapper().map_row({"time": TEN, **cells}).payload
    assert payload.decode() == ('{"a":"007","b":2.0,"c":"1e400","e":"nan","f":12345678901234567890123,"g":"true"}')


def test_parquet_values_become_json() -> None:
    """Nested values are kept; values that JSON has no form for are converted, and missing numbers are omitted."""
    row = {
        "time": datetime(2026, 1, 5, 10, tzinfo=UTC),
        "nested": {"a": [1, None, float("nan")], "b": None},
        "decimal": Decimal("1.25"),
        "day": date(2026, 1, 5),
        "raw": b"\x00\x01",
        "nan": float("nan"),
        "flag": True,
    }
    payload = orjson.loads(build_mapper(ImportFormat.PARQUET).map_row(row).payload)
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
    """The rules of telemetry apply to imported rows: ids, declared devices, and times in the future."""
    with pytest.raises(ValueError, match=reason):
        build_mapper(ImportFormat.NDJSON, **mapping).map_row(row)
