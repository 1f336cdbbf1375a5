"""Tests of the reader of NDJSON files."""

import pytest

from shared.downloads.import_request import ImportFormat
from shared.imports import json_lines_reader
from shared.imports.csv_reader import STEP_BYTES
from shared.imports.json_lines_reader import JsonLinesReader
from shared.imports.step_rows import MAX_ROW_BYTES
from tests.unit.shared.imports.files import MemorySource, build_row_mapper, list_messages, list_rejected_rows

LINES = (
    b'\xef\xbb\xbf{"time":"2026-01-05T10:00:00Z","x":{"a":null},"device":7}\r\n\n'
    b'{"time":1}\nnot json\n[1]\n{"time":"2026-01-05T10:00:01Z"}'
)


def open_json_lines(content: bytes = LINES) -> JsonLinesReader:
    """Return a reader of NDJSON content."""
    return JsonLinesReader(MemorySource(content), build_row_mapper(ImportFormat.NDJSON, device="device"))


@pytest.mark.parametrize("size", [1024, 70])
def test_json_objects_become_messages(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Properties that the mapping does not use become the payload; invalid lines are rejected."""
    monkeypatch.setattr(json_lines_reader, "STEP_BYTES", size)
    first, second = list_messages(open_json_lines())
    assert (first["device_id"], first["payload"]) == ("7", '{"x":{"a":null}}')
    assert (second["number"], second["payload"]) == (5, "{}")
    assert [number for number, _ in list_rejected_rows(open_json_lines())] == [2, 3, 4]
    assert list_rejected_rows(open_json_lines())[2][1] == "The row must be a JSON object."
    assert "The row is not JSON" in list_rejected_rows(open_json_lines())[1][1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("size", [MAX_ROW_BYTES + 1, STEP_BYTES - 60, 3 * STEP_BYTES, 9 * STEP_BYTES])
def test_a_line_of_any_length_is_one_rejected_row(size: int, encoding: str) -> None:
    """A line that is too long is one rejected row, and the lines before and after it become messages."""
    rows = [f'{{"time":"2026-01-05T10:00:0{number}Z"}}' for number in range(6)]
    for lines in ([*rows[:3], "x" * size, *rows[3:]], [*rows, " " * size]):
        reader = open_json_lines("\n".join(lines).encode(encoding))
        others = [number for number, line in enumerate(lines, start=1) if line in rows]
        assert [each["number"] for each in list_messages(reader)] == others
        [(number, reason)] = list_rejected_rows(reader)
        assert (number, reason) == (7 if others[-1] == 6 else 4, "The row has more than 524,288 bytes.")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_of_the_maximum_length_is_read_in_any_step(encoding: str) -> None:
    """A line of the maximum length becomes a message, also next to others and at the end of a step."""
    line = '{"time":"2026-01-05T10:00:00Z"}'
    text = "\n".join([line.ljust(MAX_ROW_BYTES)] * 3 + [line, line.ljust(MAX_ROW_BYTES + 1)])
    reader = open_json_lines(text.encode(encoding))
    assert [each["number"] for each in list_messages(reader)] == [1, 2, 3, 4]
    assert [number for number, _ in list_rejected_rows(reader)] == [5]


def test_a_line_with_an_unpaired_surrogate_is_rejected() -> None:
    """A line of a UTF-16 file with an unpaired surrogate is rejected; the other lines become messages."""
    lines = '\ufeff{"time":"2026-01-05T10:00:00Z","x":"\ud800"}\n{"time":"2026-01-05T10:00:01Z"}\n'
    reader = open_json_lines(lines.encode("utf-16-le", "surrogatepass"))
    [(number, reason)] = list_rejected_rows(reader)
    assert (number, reason[:20]) == (1, "The row is not JSON:")
    assert [each["number"] for each in list_messages(reader)] == [2]
