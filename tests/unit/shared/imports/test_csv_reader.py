"""Tests of the reader of CSV files."""

import json

import pytest

from shared.imports import csv_reader
from shared.imports.csv_reader import MAX_RECORD_BYTES, find_last_record_end, iterate_records
from shared.imports.row_mapping import FileRejectedError
from tests.unit.shared.imports.files import list_messages, list_rejected_rows, open_csv, read_all_steps

ROWS = "time,device,x,y\n2026-01-05T10:00:00Z,d1,1.50,on\n2026-01-05T10:00:01Z,,-3,\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_each_encoding_gives_the_same_messages(encoding: str) -> None:
    """UTF-8, with or without a byte order mark, and UTF-16 give the same messages."""
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    first, second = list_messages(open_csv(mark + ROWS.replace("on", "ön").encode(encoding), device="device"))
    assert (first["device_id"], first["payload"]) == ("d1", '{"x":1.5,"y":"ön"}')
    assert (second["device_id"], second["payload"], second["number"]) == ("pump", '{"x":-3}', 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_steps_of_any_size_give_the_same_messages(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """Each step (part of a file) ends between two records, and reading continues there, for any step size."""
    text = "time,x\n" + "".join(f'2026-01-05T10:00:{n:02d}Z,"ä{n}\n"\n' for n in range(50))
    whole = list_messages(open_csv(text.encode(encoding)))
    assert len(whole) == 50
    for size in (100, 256, 1000):
        monkeypatch.setattr(csv_reader, "STEP_BYTES", size)
        assert list_messages(open_csv(text.encode(encoding))) == whole
        assert len(read_all_steps(open_csv(text.encode(encoding)))) > 1


def test_an_invalid_csv_row_is_rejected_alone() -> None:
    """An invalid row is rejected with number and reason; all other rows become messages."""
    lines = [f"2026-01-05T10:00:{n:02d}Z,{n}" for n in range(60)]
    lines[7], lines[20], lines[30] = "2026-01-05T10:00:07Z,7,8", "yesterday,1", ",1"
    reader = open_csv("\n".join(["time,x", *lines]).encode())
    assert list_rejected_rows(reader) == [
        (8, "The row has 3 cells; the header has 2."),
        (21, "Column `time` has no valid time 'yesterday': a date-time such as 2026-01-01T00:00:00Z is expected."),
        (31, "Column `time` is empty; each row needs a time."),
    ]
    assert len(list_messages(reader)) == 57


def test_decimal_commas_become_numbers() -> None:
    """With a decimal comma, 1,5 is a number and 1.5 is a text."""
    reader = open_csv(b"time;x;y\n2026-01-05T10:00:00Z;-1,5;1.234,5\n", delimiter=";", decimal=",")
    assert list_messages(reader)[0]["payload"] == '{"x":-1.5,"y":"1.234,5"}'


@pytest.mark.parametrize(
    ("content", "mapping", "reason"),
    [
        (b"", {}, "The file is empty."),
        (b"a;time\n1;2\n", {}, "no column `time`.*may be a semicolon"),
        (b"time,x,x\n", {}, "several columns `x`"),
        (b"time,time\n", {"columns": ("x",)}, "no column `x`"),
        (b"time,x,time\n", {"columns": ("x",)}, "several columns `time`"),
        (b"PAR1\0\0", {}, "create the import with format parquet"),
        (b"\x1f\x8b\x08", {}, "compressed"),
        ("time,x\n".encode("utf-16-le"), {}, "not UTF-8"),
        (b"\n\n", {}, "must be a header"),
        (b"time,x\r2026-01-05T10:00:00Z,1\r", {}, "has a carriage return without a line feed; lines must end with"),
        (b'time,"x\ry"\r1,2\n', {}, "has a carriage return without a line feed"),
        (b"time,x\r" + b"1,2\r" * 600_000, {}, "has a carriage return without a line feed"),
    ],
)
def test_a_file_without_a_usable_header_is_rejected(content: bytes, mapping: dict[str, object], reason: str) -> None:
    """A file with an invalid header is rejected with the rule, and with the likely delimiter."""
    with pytest.raises(FileRejectedError, match=reason):
        open_csv(content, **mapping)


@pytest.mark.parametrize("header", [b"time,x\r\n", b"time,x\r\r\n", b'time,"x\ry"\r\n', b'"time","x"\n'])
def test_carriage_returns_before_line_feeds_or_in_quotes_are_allowed(header: bytes) -> None:
    """A header can end with a carriage return and a line feed, and quoted names can contain carriage returns."""
    assert len(list_messages(open_csv(header + b"2026-01-05T10:00:00Z,1\n"))) == 1


def test_a_nul_character_in_a_cell_is_kept() -> None:
    """A cell of a UTF-8 file can contain a NUL character, as a text of other formats."""
    [message] = list_messages(open_csv(b"time,x\n2026-01-05T10:00:00Z,a\0b\n"))
    assert json.loads(message["payload"]) == {"x": "a\0b"}


def test_a_repeated_column_that_is_not_used_is_allowed() -> None:
    """Repeated column names are allowed if the mapping does not use them."""
    reader = open_csv(b"time,x,a,a\n2026-01-05T10:00:00Z,1,2,3\n", columns=("x",))
    assert list_messages(reader)[0]["payload"] == '{"x":1}'


def test_ten_thousand_columns_are_read() -> None:
    """A row of ten thousand columns becomes a message if its size is allowed."""
    header = ",".join(["time", *(f"c{n}" for n in range(10_000))])
    wide = ",".join(["2026-01-05T10:00:00Z", *(str(n) for n in range(10_000))])
    long = ",".join(["2026-01-05T10:00:00Z", *("x" * 30 for _ in range(10_000))])
    reader = open_csv(f"{header}\n{wide}\n{long}\n".encode())
    assert len(list_messages(reader)) == 1
    assert list_rejected_rows(reader) == [(2, "The message has more than 262144 bytes.")]


def test_columns_without_a_name_are_numbered() -> None:
    """A column without a name, such as an index, gets a numbered name."""
    assert open_csv(b",time\n0,2026-01-05T10:00:00Z\n").columns == ["column1", "time"]


def test_a_line_break_in_quotes_does_not_end_a_record() -> None:
    """A line break in quotes does not end a record."""
    assert find_last_record_end(b"a,b\nc") == 4
    assert find_last_record_end(b'a,"x\ny"\nb,"x\n') == 8
    assert find_last_record_end(b"abc") == 0


def test_an_open_quote_does_not_join_the_rest_of_the_file() -> None:
    """If a quote is not closed, only its line is invalid."""
    text = b'"open\n' + b"1,2\n" * MAX_RECORD_BYTES
    assert find_last_record_end(text) == len(text)


def test_csv_cells_may_contain_delimiters_quotes_and_line_breaks() -> None:
    """The cells of a record may contain delimiters, quotes and line breaks; empty lines are skipped."""
    text = b'a;b\r\n\r\n"x;y";"say ""hi"""\r\n"two\r\nlines";1\n5" pipe;2\n'
    assert [record.cells for record in iterate_records(text, ";")] == [
        ["a", "b"],
        ["x;y", 'say "hi"'],
        ["two\r\nlines", "1"],
        ['5" pipe', "2"],
    ]


def test_an_invalid_csv_line_does_not_affect_others() -> None:
    """A line with an unclosed quote or another encoding does not make other lines invalid."""
    text = b'1,2\n"open,3\n4,5\nb\xe4d,6\n7,8\n'
    records = list(iterate_records(text, ","))
    assert [record.cells for record in records] == [["1", "2"], None, ["4", "5"], None, ["7", "8"]]
    assert records[1].fault == "The row has a quote that is not closed."
    assert records[3].fault == "The row is not UTF-8 text."
