"""Tests of the reader of CSV files."""

import json

import pytest

from shared.imports import csv_reader, step_rows
from shared.imports.row_mapping import FileRejectedError
from shared.imports.step_rows import MAX_ROW_BYTES
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


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_row_with_an_unpaired_surrogate_is_rejected(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """A row of a UTF-16 file with an unpaired surrogate is rejected; reading continues with the next row."""
    rows = [f"2026-01-05T10:00:00Z,{cell}\n" for cell in ("a\ud800b", "\udc00", "\U0001f600")]
    reader = open_csv("".join(["\ufefftime,x\n", *rows]).encode(encoding, "surrogatepass"))
    monkeypatch.setattr(csv_reader, "STEP_BYTES", 50)
    reason = "The row is not valid UTF-8 or UTF-16 text."
    assert list_rejected_rows(reader) == [(1, reason), (2, reason)]
    assert [(each["number"], each["payload"]) for each in list_messages(reader)] == [(3, '{"x":"\U0001f600"}')]
    cut_off = open_csv("\ufefftime,x\n2026-01-05T10:00:00Z,a\ud83d".encode(encoding, "surrogatepass"))
    assert list_rejected_rows(cut_off) == [(1, reason)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_steps_are_large_if_each_line_could_start_a_record_of_several_lines(encoding: str) -> None:
    """A step has more text than the longest record, also if each line could start a record up to the step's end."""
    reader = open_csv(("time,x\n" + 'x","y\n' * (MAX_ROW_BYTES // 2)).encode(encoding))
    step = reader.read_step(0, 1)
    assert step is not None
    assert step.rows * 6 > MAX_ROW_BYTES


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


@pytest.mark.parametrize("other", ["x", '7" pipe', '"two\nlines"'])
def test_a_quote_in_a_column_name_is_an_ordinary_character(other: str) -> None:
    """A header with an odd number of quotes, such as an inch mark, ends with its line, and no row is skipped."""
    rows = [f"2026-01-05T10:00:{n:02d}Z,x,{n}" for n in range(50)]
    rows[30] = f"2026-01-05T10:00:30Z,{other},30"
    reader = open_csv("\n".join(['time,size 5",n', *rows]).encode())
    assert list(reader.columns) == ["time", 'size 5"', "n"]
    assert len(list_messages(reader)) == 50


def test_a_large_file_can_have_a_quote_in_a_column_name() -> None:
    """A header with an inch mark is read from a file that is larger than the longest header."""
    text = 'time,size 5"\n' + "2026-01-05T10:00:00Z,1\n" * (csv_reader.HEAD_BYTES // 23 + 1)
    reader = open_csv(text.encode())
    assert list(reader.columns) == ["time", 'size 5"']
    step = reader.read_step(0, 1, max_rows=10)
    assert step is not None
    assert len(step.messages) == 10


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ('time,"x\ny"', ["time", "x\ny"]),
        ('time,5","x\ny"', ["time", '5"', "x\ny"]),
        ('time,5","x\ry"', ["time", '5"', "x\ry"]),
        ('time,"Temp\n(min, max)"', ["time", "Temp\n(min, max)"]),
    ],
)
def test_a_quoted_column_name_can_have_line_breaks(header: str, columns: list[str]) -> None:
    """A header ends after the quoted names that it contains."""
    row = ",".join(["2026-01-05T10:00:00Z", *("1" for _ in columns[1:])])
    reader = open_csv(f"{header}\n{row}\n".encode())
    assert list(reader.columns) == columns
    assert len(list_messages(reader)) == 1


def test_a_header_whose_quote_is_not_closed_is_rejected() -> None:
    """A file whose header has an unclosed quote is rejected; the header does not include rows."""
    rows = "".join(f'2026-01-05T10:00:{n:02d}Z,"x"\n' for n in range(50))
    with pytest.raises(FileRejectedError, match=r"header is invalid.*a quote that is not closed in its line"):
        open_csv(f'time,"x\n{rows}'.encode())


@pytest.mark.parametrize("count", [0, 30])
def test_a_header_that_contains_rows_is_rejected(count: int) -> None:
    """A file is rejected if the unclosed quote of a column name is followed by an inch mark at the end of a cell."""
    rows = "".join(f"2026-01-05T10:00:{n:02d}Z,{n}\n" for n in range(count))
    with pytest.raises(FileRejectedError, match="A quote in the header is not closed in its line"):
        open_csv(f'time,"size\n{rows}2026-01-05T10:00:40Z,5"\n2026-01-05T10:00:41Z,6\n'.encode())


def test_rows_between_two_unclosed_quotes_become_messages() -> None:
    """Two rows with unclosed quotes are rejected alone; the rows between them become messages."""
    rows = [f"2026-01-05T10:00:{n:02d}Z,x,{n}" for n in range(50)]
    for n in (3, 40):
        rows[n] = f'2026-01-05T10:00:{n:02d}Z,"abc,{n}'
    reader = open_csv("\n".join(["time,x,n", *rows]).encode())
    assert [number for number, _ in list_rejected_rows(reader)] == [4, 41]
    assert len(list_messages(reader)) == 48


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n\n"])
def test_lines_that_can_be_one_row_or_several_rows_are_rejected(line_end: str) -> None:
    """Each line between an unclosed quote and an inch mark at the end of a cell is a rejected row of its own."""
    rows = [f"2026-01-05T10:00:{n:02d}Z,5,{n}" for n in range(30)]
    rows[2], rows[20] = '2026-01-05T10:00:02Z,"6,2', '2026-01-05T10:00:20Z,7",20'
    reader = open_csv(line_end.join(["time,size,n", *rows]).encode())
    [step] = read_all_steps(reader)
    assert step.rows == 30
    assert [(each.number, each.record) for each in step.rejected] == [(n + 1, rows[n]) for n in range(2, 21)]
    assert len({each.reason for each in step.rejected}) == 1
    assert [message["number"] for message in list_messages(reader)] == [1, 2, *range(22, 31)]


def test_the_lines_of_a_quoted_text_do_not_become_messages() -> None:
    """A valid row whose text has lines like rows is rejected; its lines do not become messages."""
    note = '2026-01-05T10:00:00Z,"note:\n2026-01-05T10:00:01Z,pump on\n2026-01-05T10:00:02Z,pump off"'
    reader = open_csv(f"time,a\n{note}\n2026-01-05T10:00:03Z,b\n".encode())
    assert [number for number, _ in list_rejected_rows(reader)] == [1, 2, 3]
    assert [json.loads(message["payload"]) for message in list_messages(reader)] == [{"a": "b"}]


def test_a_text_of_several_lines_with_delimiters_is_one_cell() -> None:
    """A quoted text of several lines is one cell, also if each line has the header's number of cells, but no time."""
    reader = open_csv(b'time,text\n2026-01-05T10:00:00Z,"error\nin line 5, column 3\nof a, b"\n')
    [message] = list_messages(reader)
    assert json.loads(message["payload"]) == {"text": "error\nin line 5, column 3\nof a, b"}


def test_long_cells_are_read_in_any_file() -> None:
    """A cell may be as long as a message, also next to rows with quotes, and in a row with quotes."""
    wave = json.dumps([123] * 34_000)
    rows = [f'2026-01-05T10:00:00Z,"{wave}",a', '2026-01-05T10:00:01Z,1,"say ""hi"""']
    rows += [f'2026-01-05T10:00:02Z,{"x" * 140_000},5" pipe', "2026-01-05T10:00:03Z,1,b"]
    messages = list_messages(open_csv("\n".join(["time,wave,n", *rows, '2026-01-05T10:00:04Z,2,6" pipe']).encode()))
    assert len(messages) == 5
    assert json.loads(messages[0]["payload"])["wave"] == wave


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("cell", ["plain", '5" pipe', '"open'])
@pytest.mark.parametrize("size", [MAX_ROW_BYTES, csv_reader.STEP_BYTES, 9 * csv_reader.STEP_BYTES])
def test_a_line_of_any_length_is_one_rejected_row(size: int, cell: str, encoding: str) -> None:
    """A line that is too long is one rejected row, also if its long cell is not used or has a quote."""
    rows = [f"2026-01-05T10:00:0{number}Z,{cell if cell != '"open' else 'x'},1" for number in range(6)]
    long_row = f"2026-01-05T10:00:09Z,{cell},{'x' * size}"
    for lines, number in (([*rows[:3], long_row, *rows[3:]], 4), ([*rows, long_row], 7)):
        content = "\n".join(["time,a,b", *lines]).encode(encoding)
        reader = open_csv(content, columns=("a",))
        assert [each["number"] for each in list_messages(reader)] == [n for n in range(1, 8) if n != number]
        assert list_rejected_rows(reader) == [(number, "The row has more than 524,288 bytes.")]


def test_a_header_has_a_maximum_length() -> None:
    """A header of the maximum length is read, and a longer one is rejected, also if its end is far away."""
    assert open_csv(b"time," + b"x" * (MAX_ROW_BYTES - 5) + b"\n").columns[0] == "time"
    for size in (MAX_ROW_BYTES - 4, csv_reader.HEAD_BYTES):
        with pytest.raises(FileRejectedError, match="must be a header of at most 524,288 bytes"):
            open_csv(b"time," + b"x" * size + b"\n")


def test_steps_do_not_end_inside_a_quoted_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step does not end inside a quoted cell, also if other rows have quotes in unquoted cells."""
    cells = ['"note\nline 2\nline 3"' if n % 7 else '5" pipe' for n in range(300)]
    rows = [f"2026-01-05T10:{n // 60:02d}:{n % 60:02d}Z,{cell},{n}" for n, cell in enumerate(cells)]
    reader = open_csv("\n".join(["time,x,n", *rows]).encode())
    for size in (500, 501, 777, 2000):
        monkeypatch.setattr(csv_reader, "STEP_BYTES", size)
        assert [message["number"] for message in list_messages(reader)] == list(range(1, 301))


def test_a_preview_ends_after_its_rows() -> None:
    """A step with a maximum number of rows ends after them, and the next step continues there."""
    reader = open_csv('time,x\n2026-01-05T10:00:00Z,"a\nb"\n2026-01-05T10:00:01Z,5"\n'.encode("utf-16"))
    first = reader.read_step(0, 1, max_rows=1)
    assert first is not None
    second = reader.read_step(first.next_position, 2, max_rows=1)
    assert second is not None
    assert [len(first.messages), *second.messages.column("number").to_pylist()] == [1, 2]


def test_a_preview_does_not_divide_lines_that_can_be_one_row_or_several_rows() -> None:
    """A step with a maximum number of rows contains all or none of the lines that are rejected together."""
    lines = "".join(f"2026-01-05T10:00:{n:02d}Z,{cell}\n" for n, cell in enumerate(['"a', "b", 'c"', "d"]))
    reader = open_csv(f"time,x\n{lines}".encode())
    first = reader.read_step(0, 1, max_rows=1)
    assert first is not None
    second = reader.read_step(first.next_position, 1 + first.rows, max_rows=1)
    assert second is not None
    assert ([each.number for each in first.rejected], len(first.messages)) == ([1, 2, 3], 0)
    assert second.messages.column("number").to_pylist() == [4]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_steps_of_rows_with_long_column_names_are_short(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """A step has limited messages although each message repeats the names of the columns, in bulk and row by row."""
    lines = [f"time,{'n' * 900}", *(f"2026-01-05T10:00:{n:02}Z,{n}" for n in range(10)), ""]
    content = "\n".join(lines).encode(encoding)
    whole = list_messages(open_csv(content))
    assert len(whole) == 10
    for module in (csv_reader, step_rows):
        monkeypatch.setattr(module, "MAX_STEP_MESSAGE_BYTES", 3_000)
    reader = open_csv(content)
    # A long text after the last row of a step is not one long row.
    monkeypatch.setattr(csv_reader, "STEP_BYTES", 200)
    monkeypatch.setattr(csv_reader, "MAX_ROW_BYTES", 40)
    steps = read_all_steps(reader)
    assert [step.rows for step in steps] == ([3, 3, 3, 1] if encoding == "utf-8" else [4, 4, 2])
    assert [message for step in steps for message in step.messages.to_pylist()] == whole
