"""Tests of the division of CSV text into records."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.imports import csv_records
from shared.imports.csv_records import CsvRecord, CsvRecords, remove_quoted_cells
from shared.imports.step_rows import MAX_ROW_BYTES

QUOTED_CELLS = st.text('a1 ",;\n\rä\0', max_size=6).map(lambda cell: '"' + cell.replace('"', '""') + '"')
PLAIN_CELLS = st.text('a1 ";ä\0', max_size=6).filter(lambda cell: not cell.startswith('"'))
WELL_FORMED_TEXTS = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(
            st.lists(QUOTED_CELLS | PLAIN_CELLS, min_size=width, max_size=width).map(",".join),
            st.sampled_from(["\n", "\r\n"]),
        ).map("".join)
    ).map("".join)
)
TEXTS = st.lists(st.sampled_from(['"', '"', '""', ",", "\n", "\n", "a", '1,"', "\n1,"]), max_size=60).map("".join)


def starts_with_a_digit(cells: list[str]) -> bool:
    """Return whether the first of two cells starts with a digit, as a stand-in for a time."""
    return len(cells) == 2 and cells[0][:1].isdigit()


def read_in_steps(text: bytes, width: int | None, step_bytes: int) -> list[CsvRecord]:
    """Return the records of a text that is read in steps; a step without a complete line is read again with more."""
    records: list[CsvRecord] = []
    start, size = 0, step_bytes
    while start < len(text):
        is_last = start + size >= len(text)
        step = CsvRecords(text[start : start + size], ",", width=width, is_row=starts_with_a_digit, is_last=is_last)
        records += step
        size = step_bytes if step.end_offset else size + step_bytes
        start += step.end_offset
    return records


@given(WELL_FORMED_TEXTS)
def test_well_formed_records_have_the_cells_of_the_standard_library(text: str) -> None:
    """The cells of well-formed records equal those of the reader in Python's standard library."""
    expected = [cells for cells in csv.reader(io.StringIO(text, newline=""), strict=True) if cells]
    width = len(expected[0]) if expected else None
    assert [record.cells for record in CsvRecords(text.encode(), ",", width=width)] == expected


@pytest.mark.parametrize("cell", ['"a,""b"', 'a"', "", '"x\ny"'])
@pytest.mark.parametrize("count", [999, 1000, 1001, 2000, 2500])
def test_records_of_many_cells_have_the_cells_of_the_standard_library(cell: str, count: int) -> None:
    """A record can have any number of cells, of any kind."""
    text = ",".join([cell] * count + ['"end"'])
    [record] = CsvRecords(text.encode(), ",", width=count + 1)
    assert [record.cells] == list(csv.reader(io.StringIO(text, newline="")))


@given(TEXTS, st.none() | st.integers(1, 4))
def test_each_line_belongs_to_one_record(text: str, width: int | None) -> None:
    """Each line of any text that is not empty belongs to one record, in the order of the text."""
    records = CsvRecords(text.encode(), ",", width=width, is_row=starts_with_a_digit)
    lines = [line for record in records for line in record.text.split("\n") if line]
    assert lines == [line for line in text.split("\n") if line]
    assert records.end_offset == len(text)


@given(TEXTS, st.none() | st.integers(1, 4), st.integers(20, 40))
def test_the_size_of_steps_does_not_change_records(text: str, width: int | None, step_bytes: int) -> None:
    """Any text gives the same records, in whatever steps of at least the longest record it is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "MAX_ROW_BYTES", 20)
        whole = CsvRecords(text.encode(), ",", width=width, is_row=starts_with_a_digit)
        records = [(each.cells, each.text) for each in whole]
        steps = read_in_steps(text.encode(), width, step_bytes)
    assert [(each.cells, each.text) for each in steps] == records


def test_cells_may_contain_delimiters_quotes_and_line_breaks() -> None:
    """The cells of a record may contain delimiters, quotes and line breaks; empty lines are skipped."""
    text = b'a;b\r\n\r\n"x;y";"say ""hi"""\r\n"two\r\nlines";1\n5" pipe;2\n'
    assert [record.cells for record in CsvRecords(text, ";")] == [
        ["a", "b"],
        ["x;y", 'say "hi"'],
        ["two\r\nlines", "1"],
        ['5" pipe', "2"],
    ]


def test_an_invalid_line_does_not_affect_others() -> None:
    """A line with an unclosed quote or another encoding does not make other lines invalid."""
    text = b'1,2\n"x"y,9\n4,5\nb\xe4d,6\n7,8\n"open,3\n'
    records = list(CsvRecords(text, ","))
    assert [record.cells for record in records] == [["1", "2"], None, ["4", "5"], None, ["7", "8"], None]
    assert records[1].fault.endswith("a delimiter or the end of the line is expected after a closing quote.")
    assert records[3].fault == "The row is not valid UTF-8 or UTF-16 text."
    assert records[5].fault == "The row has a quote that is not closed."


def test_a_quote_that_is_closed_in_a_later_line_before_text_is_named() -> None:
    """The fault of a row says if its quote is closed in a later line, but before text that is no delimiter."""
    records = list(CsvRecords(b'1,"x\n" ,2\n', ","))
    assert records[0].fault == (
        "The row has a quote that is not closed in its line. The next quote that is not doubled is followed by neither"
        " a delimiter nor the end of its line."
    )


def test_valid_lines_between_two_unclosed_quotes_are_records() -> None:
    """Two unclosed quotes make their two lines invalid, and not the lines between them."""
    lines = [b"%d,x" % number for number in range(50)]
    lines[3], lines[40] = b'3,"abc', b'40,"abc'
    records = list(CsvRecords(b"\n".join(lines), ",", width=2))
    assert [number for number, record in enumerate(records) if record.cells is None] == [3, 40]
    assert len(records) == 50


def test_lines_are_not_joined_to_a_record_with_another_number_of_cells() -> None:
    """A record over several lines must have as many cells as the header; otherwise its first line alone is invalid."""
    records = list(CsvRecords(b'1,"2\n3,4\n5",6,7\n8,9\n', ",", width=2))
    assert [record.cells for record in records] == [None, ["3", "4"], ['5"', "6", "7"], ["8", "9"]]
    assert records[0].fault == (
        "The row has a quote that is not closed in its line. With the next lines, it has 4 cells; the header has 2."
    )
    assert records[0].text == '1,"2'


@pytest.mark.parametrize("between", ["", "3,a\n4,b\n", "3,a\r\n\r\n"])
def test_a_record_is_ambiguous_if_each_of_its_lines_is_a_row(between: str) -> None:
    """A record over several lines is invalid if each of its lines is a row by itself."""
    ambiguous = f'1,"x\n{between}5,6"'
    text = f"{ambiguous}\n7,8\n"
    records = list(CsvRecords(text.encode(), ",", width=2, is_row=starts_with_a_digit))
    assert [(record.cells, record.text, record.is_ambiguous) for record in records] == [
        (None, ambiguous, True),
        (["7", "8"], "7,8", False),
    ]
    assert records[0].fault == (
        "The row is one of several lines that can be one row or several rows, because the first has a quote that is not"
        " closed in its line. Close the quote in the first line, or remove the line breaks of its text."
    )


@pytest.mark.parametrize(
    "text",
    [
        '1,"error\nin line 5, column 3"\n',
        '1,"header,value\n3,4\n5,6"\n',
        '1,"values:\n3,4\nend"\n',
        '"note\n5 lines",2\n',
    ],
)
def test_lines_are_joined_if_one_of_them_is_not_a_row(text: str) -> None:
    """Lines are one record if one of them has another number of cells than a row, or cannot be a row."""
    [record] = CsvRecords(text.encode(), ",", width=2, is_row=starts_with_a_digit)
    assert [record.cells] == list(csv.reader(io.StringIO(text, newline="")))


def test_a_record_of_several_lines_can_start_in_a_line_that_closes_another_quote() -> None:
    """A record that starts inside the lines of an invalid record is found."""
    records = list(CsvRecords(b'a,"b\n5","note\nline 2"\n', ",", width=2))
    assert [record.cells for record in records] == [None, ['5"', "note\nline 2"]]


def test_an_inch_mark_does_not_divide_a_record_of_several_lines() -> None:
    """A quote in an unquoted cell is an ordinary character, also before a quoted cell of several lines."""
    [record] = CsvRecords(b'5" pipe,"note\nline 2",1\n', ",", width=3)
    assert record.cells == ['5" pipe', "note\nline 2", "1"]


@pytest.mark.parametrize(("size", "count"), [(MAX_ROW_BYTES, 1), (MAX_ROW_BYTES + 1, 2)])
def test_a_record_of_several_lines_has_a_maximum_size(size: int, count: int) -> None:
    """A quote must be closed within the maximum size of a record; otherwise, it counts as not closed."""
    text = b'"open\n'
    text += b"x" * (size - len(text) - 2) + b'"\n'
    records = list(CsvRecords(text, ","))
    assert len(records) == count
    assert records[0].fault == ("" if count == 1 else "The row has a quote that is not closed within 524,288 bytes.")
    assert len(list(CsvRecords(b"a\n" + text, ",", is_last=False))) == count + 1


@pytest.mark.parametrize("start", [b"x", b'"'])
def test_the_text_of_a_line_that_is_too_long_is_cut_off(start: bytes) -> None:
    """The text of an invalid record contains only the first bytes of a line that is too long."""
    [record] = CsvRecords(start.ljust(MAX_ROW_BYTES + 1, b"x"), ",")
    assert (record.cells, len(record.text)) == (None, MAX_ROW_BYTES)


def test_a_record_that_is_not_complete_is_left_out_before_the_end_of_the_file() -> None:
    """A record at the end of a text is left out if it may continue after the text."""
    for text, end in ((b"a,b\nc", 4), (b'a,"x\ny"\nb,"x\n', 8), (b'5",1\na,"x\n', 5), (b"abc", 0)):
        records = CsvRecords(text, ",", is_last=False)
        assert all(record.cells for record in records)
        assert records.end_offset == end


def test_an_open_quote_does_not_join_the_rest_of_the_file() -> None:
    """If a quote is not closed, only its line is invalid."""
    records = CsvRecords(b'"open\n' + b"1,2\n" * (MAX_ROW_BYTES // 4), ",", is_last=False)
    assert [record.cells for record in records].count(None) == 1
    assert records.end_offset == MAX_ROW_BYTES + 6


def test_many_lines_that_could_start_a_record_are_read_in_linear_time() -> None:
    """A text in which each line could start a record up to the end of the text is read line by line."""
    lines = MAX_ROW_BYTES // 16
    for end in (b"", b'x",y\n'):
        text = b'x","y\n' * lines + end
        assert sum(record.cells is None for record in CsvRecords(text, ",", width=2)) >= lines - 1


def test_quoted_cells_are_removed() -> None:
    """Quoted cells are removed from a record, and quotes inside unquoted cells are kept."""
    assert remove_quoted_cells(b'a"",""x"","open', ",") == b'a"",x"",'
    assert remove_quoted_cells(b'"a\r","b""c",5" pipe,"d"', ",") == b',,5" pipe,'
