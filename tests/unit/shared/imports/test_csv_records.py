"""Tests of the records of CSV files."""

from shared.imports.csv_records import MAX_RECORD_BYTES, find_last_boundary, iterate_records


def test_the_last_boundary_is_outside_quotes() -> None:
    """A line break inside quotes does not end a record."""
    assert find_last_boundary(b"a,b\nc") == 4
    assert find_last_boundary(b'a,"x\ny"\nb,"x\n') == 8
    assert find_last_boundary(b"abc") == 0


def test_a_quote_that_stays_open_does_not_move_the_boundary_far_back() -> None:
    """A wrong quote does not make the rest of a file one record."""
    text = b'"open\n' + b"1,2\n" * MAX_RECORD_BYTES
    assert find_last_boundary(text) == len(text)


def test_records_have_their_cells() -> None:
    """Quoted cells may contain delimiters, quotes and line breaks; empty lines are skipped."""
    text = b'a;b\r\n\r\n"x;y";"say ""hi"""\r\n"two\r\nlines";1\n5" pipe;2\n'
    assert [record.cells for record in iterate_records(text, ";")] == [
        ["a", "b"],
        ["x;y", 'say "hi"'],
        ["two\r\nlines", "1"],
        ['5" pipe', "2"],
    ]


def test_one_wrong_line_does_not_affect_others() -> None:
    """A line with an open quote, or in another encoding, is invalid by itself."""
    text = b'1,2\n"open,3\n4,5\nb\xe4d,6\n7,8\n'
    records = list(iterate_records(text, ","))
    assert [record.cells for record in records] == [["1", "2"], None, ["4", "5"], None, ["7", "8"]]
    assert records[1].fault == "The row has a quote that is not closed."
    assert records[3].fault == "The row is not UTF-8 text."
