"""Tests of the conversion of CSV files to telemetry messages."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oi.replay.csv_rows import CsvFile, FileError
from oi.replay.layout import ReplayTarget, build_replay_target
from oi.replay.repeat_filter import RepeatFilter

from shared.catalog.models import Source
from shared.telemetry.layout import layout_from_source
from shared.telemetry.message_parser import parse_messages
from shared.telemetry.normalisation import derive_message_id
from tests.unit.shared.imports.files import list_messages, list_rejected_rows, open_csv

RIG = ReplayTarget("rig")
TIME = "2026-01-05T08:00:00Z"


def test_csv_rows_become_messages(tmp_path: Path) -> None:
    """A row becomes a message with unchanged numbers and without empty cells; the time column is its timestamp."""
    text = (
        "ts;Pressure;State;Note;Big\n"
        "2026-01-05 08:00:00;1.50;on;;18446744073709551617\n"
        "2026-01-05T09:00:00+01:00;007;;a b;1e5\n"
    )
    file = CsvFile(_write_file(tmp_path, text), RIG, ";", "ts", UTC, "rig-1")
    rows = [json.loads(row.message, parse_float=Decimal) for row in file.iterate_rows()]
    usual = {"deviceId": "rig-1", "timestamp": "2026-01-05T08:00:00.000000Z"}
    for row in rows:
        row.pop("messageId")
    assert rows == [
        {**usual, "Pressure": Decimal("1.50"), "State": "on", "Big": 18446744073709551617},
        {**usual, "Pressure": "007", "Note": "a b", "Big": Decimal("1e5")},
    ]


@pytest.mark.parametrize(
    ("time", "zone", "message"),
    [
        (
            "2025-10-26T02:10:00",
            "Europe/Berlin",
            "occurs twice, because clocks were set back in Europe/Berlin; write it",
        ),
        ("2025-10-26 02:59:59", "Europe/Berlin", "occurs twice"),
        ("2026-03-29T02:30:00", "Europe/Berlin", "is skipped, because clocks were set forward in Europe/Berlin"),
        ("2011-12-30T12:00:00", "Pacific/Apia", "is skipped"),
        ("0001-01-01T00:00:00", "Asia/Tokyo", "outside the years 1 to 9999"),
        ("9999-12-31T23:59:59", "America/New_York", "outside the years 1 to 9999"),
    ],
)
def test_local_times_without_a_certain_instant_are_rejected(tmp_path: Path, time: str, zone: str, message: str) -> None:
    """A local time that a change of clocks skips or repeats is rejected with its row, as in an import."""
    file = CsvFile(_write_file(tmp_path, f"timestamp,a\n{TIME},1\n{time},1\n"), RIG, zone=ZoneInfo(zone))
    with pytest.raises(FileError, match=f"row 2: '{time}' is not a valid time: .*{message}"):
        list(file.iterate_rows())


def test_local_times_around_a_change_of_clocks_are_converted(tmp_path: Path) -> None:
    """Local times next to a change of clocks, and times with an offset within it, are converted to UTC."""
    times = ["01:59:59", "02:10:00+02:00", "02:10:00+01:00", "03:00:00"]
    text = "timestamp,a\n" + "".join(f"2025-10-26T{time},1\n" for time in times)
    rows = CsvFile(_write_file(tmp_path, text), RIG, zone=ZoneInfo("Europe/Berlin")).iterate_rows()
    assert [f"{row.moment:%dT%H:%M:%S}" for row in rows] == ["25T23:59:59", "26T00:10:00", "26T01:10:00", "26T02:00:00"]


def test_message_ids_of_a_replay_equal_those_of_an_import(tmp_path: Path) -> None:
    """A row has the same message id in a replay and in an import, so that it is stored once if both send it."""
    (row,) = CsvFile(_write_file(tmp_path, f"timestamp,a,b\n{TIME},1.50,x\n"), RIG, device="d").iterate_rows()
    moment = datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert row.content_id == derive_message_id("rig", "d", moment, {"b": "x", "a": 1.5})


def _write_file(folder: Path, text: str, name: str = "rig.csv") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _build_number_rows(count: int) -> str:
    return "timestamp,a\n" + "".join(f"{TIME},{number}\n" for number in range(count))


@given(st.decimals(allow_nan=False, allow_infinity=False).map(str) | st.text(st.characters(codec="utf-8")))
def test_any_csv_cell_becomes_a_json_value(tmp_path_factory: pytest.TempPathFactory, cell: str) -> None:
    """A cell that is a number becomes a JSON number with the same digits; any other cell becomes a string."""
    quoted = cell.replace('"', '""')
    path = _write_file(tmp_path_factory.getbasetemp(), "")
    path.write_bytes(f'timestamp,v\n{TIME},"{quoted}"\n'.encode())
    (row,) = CsvFile(path, RIG).iterate_rows()
    value = json.loads(row.message, parse_float=str, parse_int=str).get("v")
    assert value == (cell if cell.strip() else None) or value == cell.strip()


def _read_message_ids(path: Path, **options: Any) -> list[str]:
    rows = CsvFile(path, **{"target": RIG, **options}).iterate_rows()
    return [json.loads(row.message)["messageId"] for row in rows]


def test_message_ids_depend_only_on_the_content_of_a_row(tmp_path: Path) -> None:
    """The message id of a row depends only on connection, device, time and values."""
    text = f"timestamp,a,b\n{TIME},1,x\n{TIME},2,x\n"
    first = _read_message_ids(_write_file(tmp_path, text, "a/0.csv"))
    assert len(set(first)) == 2
    assert (
        _read_message_ids(_write_file(tmp_path, f"b,timestamp,a\nx,{TIME},2\nx,{TIME},1.0\n", "b/0.csv"))[0] == first[1]
    )
    others = [
        _read_message_ids(_write_file(tmp_path, text), device="d"),
        _read_message_ids(_write_file(tmp_path, text), target=ReplayTarget("press")),
        _read_message_ids(_write_file(tmp_path, text.replace("08:00:00", "08:00:01"))),
        _read_message_ids(_write_file(tmp_path, text.replace("a,b", "b,a"))),
        _read_message_ids(_write_file(tmp_path, text.replace(",x", ",y"))),
    ]
    assert len({*first, *(each for other in others for each in other)}) == 12
    # The default device of the service yields the same id.
    assert _read_message_ids(_write_file(tmp_path, text), device="rig") == first


def test_repeated_csv_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    """A repeated row is skipped and counted; a row with a messageId is repeated if an earlier row has the same id."""
    one = CsvFile(_write_file(tmp_path, f"timestamp,a\n{TIME},1\n{TIME},1\n{TIME},2\n", "a/0.csv"), RIG)
    two = CsvFile(_write_file(tmp_path, f"timestamp,a\n{TIME},2\n{TIME},3\n", "b/0.csv"), RIG)
    own = CsvFile(_write_file(tmp_path, f"timestamp,a,messageId\n{TIME},1,m\n{TIME},1,m\n{TIME},1,n\n"), RIG)
    rows = RepeatFilter()
    left = list(rows.iterate_unique_rows([*one.iterate_rows(), *two.iterate_rows(), *own.iterate_rows()]))
    assert (rows.read, rows.repeated, len(left)) == (8, 3, 5)


def test_different_rows_with_the_same_id_are_rejected(tmp_path: Path) -> None:
    """Two rows with the same messageId but different content are rejected."""
    file = CsvFile(_write_file(tmp_path, f"timestamp,a,messageId\n{TIME},1,m\n{TIME},2,m\n"), RIG)
    with pytest.raises(FileError, match=r"row 2 has the messageId of another row with different content \(.*row 1\)"):
        list(RepeatFilter().iterate_unique_rows(file.iterate_rows()))


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        ("timestamp;b\n1;2\n", {}, r"one column, 'timestamp;b'.*; try --delimiter ';'$"),
        ("timestamp\tb\n1;2\n", {}, "try --delimiter tab$"),
        ("timestamp;b\n1;2\n", {"delimiter": "|"}, "try --delimiter ';'$"),
        (
            "timestamp,a;b,c;d\n",
            {"delimiter": ";"},
            "column 'timestamp' is missing; the columns are timestamp,a, b,c, d; try --delimiter ','$",
        ),
        ("t;a,0;b,1;c\n", {}, r"column 'timestamp' is missing; the columns are t;a, 0;b, 1;c; try --delimiter ';'$"),
        ("timestamp\n2026-01-05T08:00:00Z\n", {}, "one column, 'timestamp'; it must have a time column"),
        (
            "a,b\n1,2\n",
            {},
            "column 'timestamp' is missing; the columns are a, b; set the time column with --time-column$",
        ),
        ("a,b\n1,2\n", {"time_column": "t"}, "column 't' is missing; the columns are a, b"),
        ("t,b\n2026-01-05T08:00:00Z,2\nyesterday,2\n", {"time_column": "t"}, "row 2: 'yesterday' is not a valid time"),
        ("t,b\n2026-01-05 08:00:00,1\n", {"time_column": "t"}, "row 1: .*--assume-zone"),
        ("timestamp,b\n2026-01-05T10:00:00+02:60,1\n", {}, "row 1: .* hours of 00 to 23 and minutes of 00 to 59"),
        ("timestamp,b\n2026-01-05T10:00:00-24:00,1\n", {}, "row 1: .* hours of 00 to 23 and minutes of 00 to 59"),
        ("timestamp,b\n2026-01-05T08:00:00Z,2\n3\n", {}, "row 2 has 1 cells; the header has 2"),
        ("a,a\n1,2\n", {}, "two columns of the same name"),
        ("t,timestamp\n1,2\n", {"time_column": "t"}, "the column 'timestamp' would not be stored as data"),
        ('timestamp,a\n"b\n', {}, "row 1 is not CSV"),
        (
            f'timestamp,a\n{TIME},1\n{TIME},"stopped at\n{TIME},overload\n\n{TIME},pipe of 7"\n',
            {},
            "row 2 has 4 lines, of which each may be a row, because the first line has a quote that is not closed",
        ),
        (f'timestamp,"a\n{TIME},1\n{TIME},pipe of 7"\n{TIME},2\n', {}, "the header has a quote that is not closed"),
        ("", {}, "must be a header with the names of the columns"),
        (
            f"timestamp,deviceId\n2026-01-05T08:00:00Z,{'x' * 257}\n",
            {},
            "row 1: deviceId: must be a string of 1",
        ),
        (
            f"timestamp,a,b,c\n2026-01-05T08:00:00Z{f',{"x" * 100_000}' * 3}\n",
            {},
            "row 1: the message of this row has more than 262144 bytes",
        ),
    ],
)
def test_an_invalid_csv_file_is_rejected_with_the_position(
    tmp_path: Path, text: str, file: dict[str, Any], message: str
) -> None:
    """An invalid file is rejected with the column or row of the error."""
    with pytest.raises(FileError, match=message):
        list(CsvFile(_write_file(tmp_path, text), RIG, **file).iterate_rows())


@given(st.lists(st.sampled_from([f"{TIME},", TIME, '"', '""', "x", ",", "\n"]), max_size=25))
def test_a_replay_and_an_import_read_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, parts: Sequence[str]
) -> None:
    """A replay reads the rows that an import reads, and rejects a file in which the import rejects a row."""
    text = "time,x\n" + "".join(parts)
    path = _write_file(tmp_path_factory.getbasetemp(), text)
    try:
        rows = list(CsvFile(path, ReplayTarget("pump"), time_column="time").iterate_rows())
        replayed: list[str] | None = [row.content_id for row in rows]
    except FileError:
        replayed = None
    reader = open_csv(text.encode())
    imported = None if list_rejected_rows(reader) else [each["message_id"] for each in list_messages(reader)]
    assert replayed == imported


def test_an_unreadable_file_is_rejected_with_its_name(tmp_path: Path) -> None:
    """An unreadable file is rejected with its name."""
    with pytest.raises(FileError, match="must be a regular file"):
        list(CsvFile(tmp_path, RIG).iterate_rows())
    with pytest.raises(FileError, match="No such file"):
        list(CsvFile(tmp_path / "nothing.csv", RIG).iterate_rows())
    (tmp_path / "latin.csv").write_bytes(b"a\n\xe9\n")
    with pytest.raises(FileError, match="the text is not UTF-8"):
        list(CsvFile(tmp_path / "latin.csv", RIG).iterate_rows())


def test_csv_id_columns_have_priority_over_options(tmp_path: Path) -> None:
    """The CSV columns messageId and deviceId have priority over the options of the command line."""
    (row,) = CsvFile(
        _write_file(tmp_path, f"timestamp,messageId,deviceId\n{TIME},7,8\n"), RIG, device="d"
    ).iterate_rows()
    assert json.loads(row.message) == {"messageId": "7", "deviceId": "8", "timestamp": "2026-01-05T08:00:00.000000Z"}
    assert row.moment == datetime(2026, 1, 5, 8, tzinfo=UTC)


def _build_target(**source: str) -> ReplayTarget:
    return build_replay_target("rig", source)


@pytest.mark.parametrize("form", ["rfc3339", "epochSeconds", "epochMilliseconds"])
@given(moment=st.datetimes(timezones=st.just(UTC)))
def test_row_metadata_is_at_the_pointers_of_the_connection(
    tmp_path_factory: pytest.TempPathFactory, form: str, moment: datetime
) -> None:
    """A message from a CSV row has time, device and id at the pointers of the connection."""
    source = {
        "timestampPointer": "/head/at",
        "messageIdPointer": "/head/id",
        "deviceIdPointer": "/a~1b",
        "timestampFormat": form,
    }
    target = _build_target(**source)
    path = _write_file(tmp_path_factory.getbasetemp(), f"t,x,deviceId\n{moment.isoformat()},1,d\n")
    (row,) = CsvFile(path, target, time_column="t").iterate_rows()
    (message,) = parse_messages(json.loads(row.message), layout_from_source(Source.model_validate(source)))
    assert (message.timestamp, message.message_id, message.device_id) == (moment, row.content_id, "d")
    assert json.loads(message.payload) == {"head": {}, "x": 1}


def test_columns_at_a_pointer_of_the_connection_are_rejected(tmp_path: Path) -> None:
    """A column at one of the connection's pointers is rejected, unless it is the time column."""
    path = _write_file(tmp_path, f"timestamp,ts\n{TIME},{TIME}\n")
    target = _build_target(timestampPointer="/ts")
    with pytest.raises(FileError, match="the column 'ts' would not be stored as data"):
        list(CsvFile(path, target).iterate_rows())
    (row,) = CsvFile(path, target, time_column="ts").iterate_rows()
    assert json.loads(row.message)["timestamp"] == TIME


@pytest.mark.parametrize(
    "source",
    [
        {"timestampPointer": ""},
        {"messageIdPointer": ""},
        {"deviceIdPointer": "/messageId"},
        {"deviceIdPointer": "/timestamp/a"},
    ],
)
def test_a_connection_with_overlapping_pointers_is_rejected(source: dict[str, str]) -> None:
    """A connection with empty or overlapping pointers is rejected."""
    with pytest.raises(ValueError, match=r"^rig: "):
        _build_target(**source)


def test_a_device_id_without_a_device_pointer_is_rejected(tmp_path: Path) -> None:
    """A device id is rejected if the connection has no pointer for devices."""
    path, target = _write_file(tmp_path, _build_number_rows(1)), _build_target(deviceIdPointer="")
    assert len(list(CsvFile(path, target).iterate_rows())) == 1
    with pytest.raises(FileError, match="no deviceIdPointer"):
        list(CsvFile(path, target, device="d").iterate_rows())
