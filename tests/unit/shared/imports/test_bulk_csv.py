"""Tests that bulk conversion of CSV rows gives the same messages as conversion row by row."""

import random
from typing import Any

import pytest

from shared.imports import bulk_csv, csv_reader
from shared.telemetry.json_text import parse_lossless_json
from tests.unit.shared.imports.files import list_messages, list_rejected_rows, open_csv, read_all_steps

TIMES = [
    "2026-01-05T10:00:00Z",
    "2026-01-05T10:00:00.5Z",
    "2026-01-05 10:00:00.123456+02:00",
    "2026-01-05T10:00:00.1234567Z",
    "2026-01-05T10:00:00-0130",
    "2026-01-05 10:00:00+02:60",
    "2026-01-05T10:00:00-02:99",
    "2026-01-05T10:00:00+23:59",
    "2026-01-05T10:00:00+24:00",
    "2026-01-05t10:00:00z",
    "2026-01-05T24:00:00Z",
    "2026-01-05T23:59:60Z",
    "2026-01-05T10:00:00",
    "2026-01-05 10:00:00.25",
    "2026-02-30T10:00:00Z",
    "0001-01-01T00:00:00Z",
    "2027-01-05T10:00:00Z",
    "1767607200",
    "1767607200.25",
    "9223372036855",
    "9999999999999",
    "9223372036854.775807",
    "9223372036854775.807",
    "2026-01-04T24:00:00Z",
    "2026-01-05T 4:00:00Z",
    "2026-01-05T10: 0:00Z",
    "2026-01-05T10:00:0.Z",
    "2026-01-05T09:59:5.+01:00",
    "2026-01-05 10:00: 0",
    "2026-01-05 10:00:0.",
    "x",
    "",
]
CELLS = [
    "1",
    "-1",
    "0",
    "-0",
    "007",
    "1.50",
    "20.0",
    "0.00001",
    "0.0001",
    "100.00001",
    "123456789.123456",
    "0.1000000000000000055",
    "12345678901234567890",
    "9" * 309,
    "9" * 4_301,
    "1e5",
    "-",
    ".5",
    "5.",
    "+1",
    " 2",
    "1,5",
    "1.234,5",
    "ön \\ 'x'",
    "chr(1)",
    "nan",
    "2026-01-05",
    " ",
    "",
]
DEVICES = ["d1", "", " ", "dé'1", "x" * 256, "x" * 257, "1"]
MAPPINGS: list[dict[str, Any]] = [
    {},
    {"time_zone": "UTC"},
    {"time_zone": "Europe/Berlin"},
    {"device": "device"},
    {"device": "device", "declared": True},
    {"message_id": "device"},
    {"decimal": ","},
    {"columns": ("x", "device")},
    {"timestamp_format": "epochSeconds"},
    {"timestamp_format": "epochMilliseconds"},
]


@pytest.mark.parametrize("mapping", MAPPINGS, ids=str)
def test_bulk_and_single_conversion_give_the_same_messages(
    monkeypatch: pytest.MonkeyPatch, mapping: dict[str, Any]
) -> None:
    """For odd times and cells, both conversions give the same messages, ids and rejected rows."""
    chance = random.Random(0)
    rows: list[tuple[str, ...]] = [
        (time, chance.choice(DEVICES), chance.choice(CELLS), chance.choice(CELLS), repr(chance.random() * 10**power))
        for time in TIMES
        for power in (-3, 0, 3, 6, 9)
        for _ in range(8)
    ]
    rows += [tuple(chance.choice((each, f'"{each}"')) for each in row) for row in rows[::3]]
    rows += [("2026-01-05T10:00:00Z", "d1", cell, cell, "1") for cell in CELLS]
    text = "\n".join(["time;device;x;a b;f", *(";".join(row) for row in rows)]).encode()
    bulk = open_csv(text, delimiter=";", **mapping)
    rejected = list_rejected_rows(bulk)
    messages = sorted(list_messages(bulk), key=lambda message: message["number"])
    monkeypatch.setattr(csv_reader, "is_plain_csv", lambda *_: False)
    single = open_csv(text, delimiter=";", **mapping)

    def convert_to_comparable(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**each, "payload": parse_lossless_json(each["payload"].encode())} for each in found]

    assert convert_to_comparable(messages) == convert_to_comparable(list_messages(single))
    assert rejected == list_rejected_rows(single)
    assert messages or mapping.get("timestamp_format")


def test_a_tab_in_a_quoted_cell_of_a_tab_separated_file_is_valid_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quoted cell of a tab-separated file may contain a tab, which the payload escapes; a cell of a tab is blank."""
    text = b'time\tnote\tx\n2026-01-05T10:00:00Z\t"pump\tstopped"\t5\n2026-01-05T10:00:01Z\t"\t"\t6\n'
    messages = list_messages(open_csv(text, delimiter="\t"))
    assert [each["payload"] for each in messages] == [r'{"note":"pump\tstopped","x":5}', '{"x":6}']
    monkeypatch.setattr(csv_reader, "is_plain_csv", lambda *_: False)
    assert messages == list_messages(open_csv(text, delimiter="\t"))


def test_most_rows_are_converted_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with ordinary cells are converted in bulk instead of one by one."""
    text = "time,x,y\n" + "".join(f"2026-01-05T10:00:{n:02d}Z,{n}.5,on\n" for n in range(60))
    reader = open_csv(text.encode())
    monkeypatch.setattr(reader, "_convert_row", None)
    assert len(read_all_steps(reader)[0].messages) == 60


@pytest.mark.parametrize("mapping", [{}, {"device": "device"}, {"message_id": "id"}], ids=str)
def test_steps_of_any_size_give_the_same_messages(monkeypatch: pytest.MonkeyPatch, mapping: dict[str, Any]) -> None:
    """A file that is read in many steps (parts) is converted to the same messages as in one step."""
    rows = [f"2026-01-05T10:00:{n % 60:02d}Z,{n % 3 or ''},id-{n},{n * 1.5},,{n}" for n in range(400)]
    text = "\n".join(["time,device,id,x,empty,n", *rows]).encode()
    expected = list_messages(open_csv(text, **mapping))
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 2_000)
    reader = open_csv(text, **mapping)
    monkeypatch.setattr(reader, "_convert_row", None)
    steps = read_all_steps(reader)
    assert len(steps) > 5
    assert [message for step in steps for message in step.messages.to_pylist()] == expected


@pytest.mark.parametrize("mapping", [{}, {"device": "device"}, {"message_id": "id"}], ids=str)
def test_blocks_with_different_cells_give_the_same_messages(
    monkeypatch: pytest.MonkeyPatch, mapping: dict[str, Any]
) -> None:
    """A step gives the same messages, however many blocks it is divided into."""
    rows = [
        f"2026-01-05T10:00:{n % 60:02d}Z,{n // 90 or ''},id-{n},{n % 7 if n > 99 else ''},{n // 50}" for n in range(400)
    ]
    text = "\n".join(["time,device,id,x,y", *rows]).encode()
    expected = list_messages(open_csv(text, **mapping))
    monkeypatch.setattr(bulk_csv, "_BLOCK_BYTES", 1_000)
    reader = open_csv(text, **mapping)
    monkeypatch.setattr(reader, "_convert_row", None)
    assert list_messages(reader) == expected
    assert len(expected) == 400


def test_empty_device_cells_are_converted_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a device are converted in bulk, also if the other cells of the column differ."""
    rows = [f"2026-01-05T10:00:{n % 60:02d}Z,{'' if n % 3 else f'd{n}'},{n}" for n in range(400)]
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 2_000)
    reader = open_csv("\n".join(["time,device,x", *rows]).encode(), device="device")
    monkeypatch.setattr(reader, "_convert_row", None)
    assert {message["device_id"] for message in list_messages(reader)} == {"pump", *(f"d{n}" for n in range(0, 400, 3))}


def test_empty_lines_are_not_counted_as_rows() -> None:
    """Empty lines are not counted as rows, also in a step that has only empty lines."""
    steps = read_all_steps(open_csv(b"time,x\n\n\n\n"))
    assert sum(step.rows for step in steps) == 0
