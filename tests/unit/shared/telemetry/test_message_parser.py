"""Tests of parsing messages in NDJSON format; test_acceptance.py tests JSON bodies."""

import re
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.telemetry.layout import DEFAULT_LAYOUT, layout_from_source
from shared.telemetry.message_parser import (
    MAX_LINES,
    MAX_LINES_CONTAINERS,
    MAX_MESSAGE_BYTES,
    parse_messages,
    parse_ndjson_messages,
)
from tests.unit.shared.telemetry.fakes import build_connection


def list_errors(text: bytes) -> list[Any]:
    """Parse an NDJSON body with invalid lines, and return the list of errors."""
    with pytest.raises(WorkspaceError) as caught:
        parse_ndjson_messages(text, DEFAULT_LAYOUT)
    assert caught.value.kind is Kind.INVALID
    errors = caught.value.members["errors"]
    assert isinstance(errors, list)
    return errors


def test_each_ndjson_line_is_a_message() -> None:
    """Each line is a message and ends with LF or CR LF; empty lines are skipped."""
    messages = parse_ndjson_messages(b'{"a":1}\r\n\n  \n{"messageId":"m","a":2}\n{"a":3}', DEFAULT_LAYOUT)
    assert [message.payload for message in messages] == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    assert [message.message_id for message in messages] == [None, "m", None]


def test_pointers_apply_to_each_ndjson_line() -> None:
    """The connection's pointers and timestamp format apply to each line."""
    source = build_connection("rig", source={"timestampPointer": "/ts", "timestampFormat": "epochSeconds"}).source
    (message,) = parse_ndjson_messages(b'{"ts":1767600000,"timestamp":"payload"}', layout_from_source(source))
    assert message.timestamp is not None
    assert message.timestamp.timestamp() == 1767600000
    assert message.payload == b'{"timestamp":"payload"}'


def test_an_error_names_property_and_line() -> None:
    """An error contains the name of the invalid property and the number of its line, which also counts empty lines."""
    errors = list_errors(b'{"a":1}\n\nnot json\n[1]\n{"timestamp":"yesterday"}\n{"a":1,"a":2}\n')
    assert [error["field"] for error in errors] == ["line 3", "line 4", "line 5.timestamp", "line 6"]


def test_a_wrapped_batch_on_a_line_is_rejected() -> None:
    """A line with a batch of Telegraf is rejected."""
    (error,) = list_errors(b'{"metrics":[{"name":"cpu","tags":{},"fields":{},"timestamp":1}]}')
    assert "on a line of its own" in error["message"]


def test_the_number_of_messages_is_limited() -> None:
    """A request may have 1 to 5,000 messages and at most 10,000 lines, of which some may be empty."""
    assert len(parse_ndjson_messages(b"{}\n" * MAX_LINES, DEFAULT_LAYOUT)) == MAX_LINES
    assert list_errors(b"{}\n" * (MAX_LINES + 1))[0]["field"] == f"line {MAX_LINES + 1}"
    for text in (b"", b"\n\n", b"\n" * (2 * MAX_LINES + 1) + b"{}"):
        assert list_errors(text)[0]["field"] == "body"


def test_the_number_of_errors_is_limited() -> None:
    """Only the first 100 errors of a request are listed."""
    assert len(list_errors(b"x\n" * 1000)) == 100


@pytest.mark.parametrize("size", [MAX_MESSAGE_BYTES + 1, 5 * MAX_MESSAGE_BYTES])
def test_the_size_of_a_message_is_limited(size: int) -> None:
    """A message over 256 KiB is rejected with its line number."""
    with pytest.raises(WorkspaceError, match=r"^Line 2 has more than 262144 bytes") as caught:
        parse_ndjson_messages(b'{}\n{"a":"%b"}' % (b"x" * size), DEFAULT_LAYOUT)
    assert caught.value.code == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize(
    ("position", "start"), [(None, "The message has more than"), (1, "Message [1] of the array has more than")]
)
def test_the_index_of_a_too_large_message_is_named(position: int | None, start: str) -> None:
    """The error about a message over the size limit begins with the message's index."""
    large = {"a": "x" * MAX_MESSAGE_BYTES}
    with pytest.raises(WorkspaceError, match=f"^{re.escape(start)}"):
        parse_messages(large if position is None else [{}, large], DEFAULT_LAYOUT)


def test_an_error_of_a_line_names_the_column() -> None:
    """The error about a line that is not JSON states the column."""
    (error,) = list_errors(b"{}\n{'a': 1}")
    assert error == {
        "field": "line 2",
        "message": "not JSON: Expecting property name enclosed in double quotes at column 2",
    }


@pytest.mark.parametrize("lines", [13, 12])
def test_the_arrays_of_all_lines_are_limited(lines: int) -> None:
    """All lines together may have 1,000,000 arrays and objects; brackets in strings do not count."""
    line = b'{"a":[%b],"text":"%b"}\n' % (b",".join([b"[]"] * 79_997), b"[" * 10_000)
    if lines * 79_999 <= MAX_LINES_CONTAINERS:
        assert len(parse_ndjson_messages(line * lines, DEFAULT_LAYOUT)) == lines
    else:
        (error,) = list_errors(line * lines)
        assert error["field"] == "body"
        assert "1000000 arrays and objects" in error["message"]


@pytest.mark.parametrize("body", [None, 5])
def test_a_body_may_be_an_object_or_an_array(body: object) -> None:
    """The error about a body that is neither an object nor an array names both forms."""
    with pytest.raises(WorkspaceError, match="body: must be a JSON object or an array of 1 to 500 JSON objects"):
        parse_messages(body, DEFAULT_LAYOUT)


def test_a_long_line_may_hold_a_small_message() -> None:
    """Blanks and escapes in a line do not count towards the size limit of its message."""
    text = b'{"a":"%b"}' % (b"\\u0041" * 100_000)
    assert parse_ndjson_messages(text, DEFAULT_LAYOUT)[0].payload == b'{"a":"%b"}' % (b"A" * 100_000)
