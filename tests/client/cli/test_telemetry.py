"""Tests of the commands for telemetry, with a fake service behind the HTTP client."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from oi import Workspace
from oi.cli import telemetry
from oi.cli.main import execute, run
from oi.cli.telemetry import format_message_as_line


class FakeService:
    """Fake service that accepts telemetry.

    Attributes:
        batches: accepted requests, each a list of messages.
        fault: number of the line that each request refuses, and the value that makes it invalid.
        lost: value of a message whose request gets no reply.
        source: `source` of the connection; None if the key may not read connections.
    """

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.fault: object = object()
        self.lost: object = object()
        self.source: dict[str, Any] | None = {}

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Reply to a request of the command as the service does."""
        if request.method == "GET":
            if self.source is None:
                return httpx.Response(403, json={"code": "ACCESS_RIGHT_MISSING", "detail": "Catalog.Read is missing."})
            return httpx.Response(200, json={"lookup": "press", "source": self.source}, headers={"ETag": '"1"'})
        messages = [json.loads(line) for line in request.content.splitlines()]
        if any(each.get("value") == self.lost for each in messages):
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        wrong = [number for number, each in enumerate(messages, 1) if each.get("value") == self.fault]
        if wrong:
            errors = [{"field": f"line {number}.value", "message": "is wrong"} for number in wrong]
            return httpx.Response(400, json={"code": "INVALID_REQUEST", "detail": "It is wrong.", "errors": errors})
        self.batches.append(messages)
        return httpx.Response(202, json={"accepted": len(messages)})


@pytest.fixture
def fake_service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    """Return the fake service, to which all commands connect."""
    service = FakeService()

    def open_workspace(*_scopes: str) -> Workspace:
        workspace = Workspace("http://127.0.0.1:1", token="jwt")
        client = httpx.Client(base_url="http://127.0.0.1:1", transport=httpx.MockTransport(service.reply_to_request))
        workspace.telemetry._transport.client = client
        return workspace

    monkeypatch.setattr(telemetry, "open_workspace", open_workspace)
    return service


@pytest.fixture
def input_path(tmp_path: Path) -> Path:
    """Return the path of an input file."""
    return tmp_path / "messages.ndjson"


def write_lines(input_path: Path, *values: Any) -> None:
    """Write one line for each value; each line is a message that contains the value."""
    input_path.write_text("".join(f'{{"value": {json.dumps(value)}}}\n' for value in values))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"messageId": "m", "a": 1, "a": 2}',
            'the input is not valid JSON: the property "a" occurs twice in one object',
        ),
        ('{"a": 1}\n\n{"messageId": "m", "messageId": "n"}', 'line 3: the property "messageId" occurs twice'),
        ('{"a": 1}\n{"a": 1e400}', "line 2: the number 1e400 is outside the range of a double"),
        ('{"a": 1}\n{"a": NaN}', "line 2: NaN is not a JSON number"),
        ('{"a": 1}\n{"a": "\\ud800"}', "line 2: a text has an unpaired surrogate"),
        ('{"a": 1}\n{"a": ', "line 2: a value is expected at column 7"),
        ("[" * 20_000, "the value is nested too deeply"),
        ('\n{"a" 1}\n{"a": 2}\n', "line 2: a colon is expected at column 6"),
        ('{\n "a": 1,\n "b" 2\n}', "the input is not valid JSON: a colon is expected at line 3, column 6"),
        ('[{"a": 1}, 2]', "element 2 is not a JSON object"),
        ('[{"a": 1}]\n\n{"a": 2}\n', "line 3: text follows the array of line 1"),
        ("\n[]\nno JSON", "line 3: text follows the array of line 2"),
        ("", "the text is empty"),
    ],
)
def test_invalid_telemetry_input_is_rejected_with_its_line_number(
    fake_service: FakeService, input_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Invalid input is rejected with its line number, and nothing is sent."""
    input_path.write_text(text)
    assert execute(["send", "press", str(input_path)]) == 2
    assert message in capsys.readouterr().err
    assert fake_service.batches == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_before_telemetry_is_skipped(
    fake_service: FakeService, input_path: Path, encoding: str
) -> None:
    """A file that an editor on Windows wrote with a byte order mark is sent as one without it."""
    input_path.write_text('{"messageId": "m", "value": 1}\n', encoding=encoding)
    assert execute(["send", "press", str(input_path)]) == 0
    assert fake_service.batches == [[{"messageId": "m", "value": 1}]]


@pytest.mark.usefixtures("fake_service")
def test_a_closed_standard_input_is_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command whose caller closed standard input reads an empty input."""
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "argv", ["oi", "send", "press"])
    with pytest.raises(SystemExit) as ended:
        run()
    sys.stdin.close()
    assert ended.value.code == 2
    assert "the text is empty" in capsys.readouterr().err


def test_errors_about_telemetry_name_the_lines_of_the_file(
    fake_service: FakeService, input_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error names the line of the file instead of the line of the request, and states how much was stored before."""
    fake_service.fault = "wrong"
    write_lines(input_path, *range(5_500), "wrong")
    input_path.write_text("\n" + input_path.read_text())
    assert execute(["send", "press", str(input_path)]) == 1
    error = capsys.readouterr().err
    assert "line 5502.value: is wrong" in error
    assert "5000 messages accepted before the error" in error
    input_path.write_text('[{"value": 1}, {"value": "wrong"}]')
    assert execute(["send", "press", str(input_path)]) == 1
    assert "element 2.value: is wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "lines", "accepted"),
    [([1, 2, 3, "lost", 5], "line 3 to line 4", "2 messages accepted before the error"), (["lost"], "line 1", "")],
)
def test_an_error_names_the_lines_that_were_possibly_stored(
    fake_service: FakeService,
    input_path: Path,
    values: list[Any],
    lines: str,
    accepted: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If a request gets no reply, the error names the lines of the request, and the exit code is 3."""
    fake_service.lost = "lost"
    monkeypatch.setattr("oi.batches.MAX_MESSAGES", 2)
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    write_lines(input_path, *values)
    assert execute(["send", "press", str(input_path)]) == 3
    error = capsys.readouterr().err
    assert f"error: {lines}: The outcome of a POST request is unknown." in error
    assert accepted in error


def test_the_message_id_is_added_at_the_pointer_of_the_connection(fake_service: FakeService, input_path: Path) -> None:
    """For a connection with `messageIdPointer`, the command adds the message id at this pointer."""
    fake_service.source = {"messageIdPointer": "/h/id"}
    input_path.write_text('{"h": {"t": 1}, "value": 1}')
    assert execute(["send", "press", str(input_path)]) == 0
    [[sent]] = fake_service.batches
    assert sent == {"h": {"t": 1, "id": sent["h"]["id"]}, "value": 1}


def test_without_the_connection_definition_the_default_property_for_ids_is_used(
    fake_service: FakeService, input_path: Path
) -> None:
    """If the key may not read the connection, the command adds the message id under the default name."""
    fake_service.source = None
    write_lines(input_path, 1)
    assert execute(["send", "press", str(input_path)]) == 0
    assert list(fake_service.batches[0][0]) == ["value", "messageId"]


def test_device_names_and_values_do_not_control_the_terminal() -> None:
    """Control characters in device names and values are escaped, so that each message is printed on one line."""
    message = {
        "Timestamp": "2026-01-05T08:00:00.000000Z",
        "Subject": "d\u0007\u202e",
        "Metadata": {"ConnectionLookup": "press"},
        "Payload": {"k\u001b]0;t\u0007": "a\r\nb", "n": {"\u009b": 1}},
    }
    assert format_message_as_line(message) == (
        r"2026-01-05T08:00:00.000000Z  press  d\x07\u202e  k\x1b]0;t\x07 a\r\nb  n {\"\x9b\": 1}".replace(r"\"", '"')
    )


@pytest.mark.usefixtures("fake_service")
def test_tail_prints_each_reason_of_a_failed_stream_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`oi tail` prints the reason for which the service closes the stream on standard error, and only once."""

    def stream(_workspace: Workspace, *, on_failure: Callable[[str], None], **_filters: str | None) -> Iterator[Any]:
        for _ in range(2):
            on_failure("Too many replays run.\x1b")
        return iter(())

    monkeypatch.setattr(Workspace, "stream", stream)
    assert execute(["tail", "--lines"]) == 0
    note = "note: the service closed the stream, which is tried again: Too many replays run.\\x1b\n"
    assert capsys.readouterr() == ("", note)
