"""Tests of the JSON values that `oi` commands read, and of the texts that they print."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import httpx
import pytest
from click.testing import CliRunner
from oi import Workspace
from oi.cli import audit, document, queries
from oi.cli.main import execute, main
from oi.cli.output import (
    format_json,
    read_json,
    read_key_from_standard_input,
    read_text_from_standard_input,
    write_output_file,
)
from oi.control_characters import escape_controls_except_line_breaks
from oi.errors import ApiError, UnreachableError

from tests.service.local_service import ROOT

INVALID = ["", "{", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e400}', '{"a": "\\ud800"}', "[" * 100_000]


@pytest.mark.parametrize("text", INVALID)
def test_input_that_is_not_json_is_reported_as_wrong_usage(text: str) -> None:
    """Input that is not valid JSON is reported as wrong usage, and no request is sent."""
    with pytest.raises(click.UsageError, match="is not JSON"):
        read_json(io.StringIO(text))


@pytest.mark.parametrize("text", [*INVALID, "[]", "7"])
@pytest.mark.parametrize("option", ["--original", "--amended"])
def test_an_option_that_is_not_an_object_is_rejected(
    text: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that needs a JSON object rejects any other value, and the error names the option."""
    values = {"--original": "{}", "--amended": "{}", option: text}
    names = ["--scope", "s", "--entity-type", "t", "--entity-id", "i", "--reason-category", "other"]
    arguments = [*names, *(part for pair in values.items() for part in pair)]
    assert execute(["amendments", "create", *arguments]) == 2
    assert f"'{option}'" in capsys.readouterr().err


def test_the_content_of_a_valid_file_is_used_unchanged() -> None:
    """The content of a valid file is used without changes."""
    value = {"a": [1, None, "\u00e9", 0.1], "b": {}}
    assert read_json(io.StringIO(json.dumps(value))) == value


def test_printed_texts_do_not_control_the_terminal() -> None:
    """Control characters in printed texts are escaped; printed JSON has the same value."""
    value = {"a\x9b": "b\u202e\x1b[2J\n\u00e9\ud800"}
    text = format_json(value)
    assert text == r'{"a\u009b": "b\u202e\u001b[2J\n' + "\u00e9" + r'\ud800"}'
    assert json.loads(text) == value
    assert escape_controls_except_line_breaks("print 1\n\t\x1b[2J\x9b") == "print 1\n\t\\x1b[2J\\x9b"


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("a\x1b[2J"),
        ApiError(400, "", "a\x1b[2J", problem={"traceId": "b\x1b[2J"}),
        OSError("a\x1b[2J"),
        ValueError("a\x1b[2J"),
    ],
)
def test_printed_errors_do_not_control_the_terminal(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters in the message and trace id of a printed error are escaped."""

    def raise_error(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "main", raise_error)
    assert execute([]) in {1, 3}
    printed = capsys.readouterr().err
    assert printed.startswith("error: a\\x1b[2J\n")
    assert "\x1b" not in printed


_N, _P_N = {"field": "n", "message": "is wrong"}, {"field": "p.n", "message": "is wrong"}
_LINE_5 = {**_N, "line": 5, "column": 2}


@pytest.mark.parametrize(
    ("fields", "detail", "printed"),
    [
        ([], "It failed.", ["error: It failed. (X)"]),
        ([_N], "n: is wrong", ["error: n: is wrong (X)"]),
        ([_N], "It is ignored.", ["error: It is ignored. (X)", "  n: is wrong"]),
        (
            [_P_N, _N],
            "p.n: is wrong; n: is wrong",
            ["error: the request has several errors (X)", "  p.n: is wrong", "  n: is wrong"],
        ),
        (
            [_N, _P_N],
            "row 1: n: is wrong; p.n...",
            ["error: row 1: the request has several errors (X)", "  n: is wrong", "  p.n: is wrong"],
        ),
        (
            [_LINE_5, _N],
            "line 5, column 2: n: is wrong; and 1 more",
            ["error: the request has several errors (X)", "  line 5, column 2: n: is wrong", "  n: is wrong"],
        ),
        (
            [_N, _P_N],
            "n: is wrong; It is late.",
            ["error: n: is wrong; It is late. (X)", "  n: is wrong", "  p.n: is wrong"],
        ),
    ],
    ids=["no-field", "one", "unnamed", "several", "shortened", "document", "other-text"],
)
def test_several_invalid_fields_are_printed_as_a_list(
    fields: list[dict[str, Any]],
    detail: str,
    printed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Several invalid fields are lines under a short description; one is a line if the description does not name it."""

    def raise_error(**_: object) -> None:
        raise ApiError(400, "X", detail, problem={"errors": fields})

    monkeypatch.setattr(main, "main", raise_error)
    assert execute([]) == 1
    assert capsys.readouterr().err.splitlines() == printed


def test_characters_that_the_output_cannot_encode_are_escaped(tmp_path: Path) -> None:
    """If standard output cannot encode a character, the character is escaped; JSON output stays valid."""
    program = (
        "import sys; from oi.cli import main; from oi.cli.output import print_json, print_rows;"
        "main.execute = lambda _: print_json({'a': '\\u4e2d'}) or print_rows([{'a': '\\u4e2d'}], ['a']) or 0;"
        "main.run()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src"), "PYTHONIOENCODING": "latin-1"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, check=True, timeout=60
    )
    assert run.stdout.decode("latin-1").splitlines() == ["{", r'  "a": "\u4e2d"', "}", "a", r"\u4e2d"]


def test_a_byte_order_mark_in_standard_input_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte order mark, which editors on Windows write, belongs neither to an API key nor to a text."""
    for read in (read_key_from_standard_input, read_text_from_standard_input):
        set_standard_input(monkeypatch, "oik_1".encode("utf-8-sig"))
        assert read() == "oik_1"


def test_standard_input_that_is_not_utf8_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A KQL text that is not UTF-8 is wrong usage."""
    set_standard_input(monkeypatch, b'print "caf\xe9"')
    assert execute(["kql", "-"]) == 2
    assert "the input is not UTF-8 text" in capsys.readouterr().err


EXPORTS = (["audit", "export"], ["workspace", "export"], ["query", "run", "newest", "--format", "csv"])


@pytest.fixture
def _fake_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect the commands of ``EXPORTS`` to a fake service, whose replies have the requested type and text ``[1]``."""

    def reply_with_requested_type(request: httpx.Request) -> httpx.Response:
        headers = {"Content-Type": f"{request.headers['Accept']}; charset=utf-8", "x-provenance-has-more": "false"}
        return httpx.Response(200, text="[1]", headers=headers)

    def open_workspace(*_scopes: str) -> Workspace:
        workspace = Workspace("http://127.0.0.1:1", token="jwt")
        transport = httpx.MockTransport(reply_with_requested_type)
        workspace._transport.client = httpx.Client(base_url="http://127.0.0.1:1", transport=transport)
        return workspace

    for module in (audit, document, queries):
        monkeypatch.setattr(module, "open_workspace", open_workspace)


@pytest.mark.usefixtures("_fake_exports")
def test_a_dash_as_output_is_standard_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands that export write to standard output for `-o -`, and to a file for any other value."""
    monkeypatch.chdir(tmp_path)
    for command in EXPORTS:
        for output, printed in (("-", "[1]"), ("file", ""), ("./-", "")):
            shown = CliRunner().invoke(main, [*command, "-o", output])
            assert (shown.exit_code, shown.stdout) == (0, printed)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "-"}


@pytest.mark.usefixtures("_fake_exports")
def test_an_output_file_is_replaced_only_when_it_is_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the disk is full, exporting commands leave an earlier file unchanged and no other file, and name the file."""
    path = tmp_path / "export"
    path.write_text("earlier")
    path.chmod(0o640)
    full_disk = OSError(errno.ENOSPC, "No space left on device")
    for command in EXPORTS:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", Mock(side_effect=full_disk))
            shown = CliRunner().invoke(main, [*command, "-o", str(path)])
        assert isinstance(shown.exception, OSError)
        assert (shown.exception.errno, shown.exception.filename) == (errno.ENOSPC, str(path))
        assert (path.read_text(), list(tmp_path.iterdir())) == ("earlier", [path])
    link = tmp_path / "link"
    link.symlink_to(path)
    assert CliRunner().invoke(main, ["audit", "export", "-o", str(link)]).exit_code == 0
    assert (path.read_text(), link.is_symlink(), path.stat().st_mode & 0o777) == ("[1]", True, 0o640)


def test_an_output_file_can_be_a_pipe(tmp_path: Path) -> None:
    """A pipe is written and not replaced by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_output_file(path, b"content")
    assert (os.read(reader, 99), list(tmp_path.iterdir())) == (b"content", [path])
    os.close(reader)


def test_an_open_file_is_appended_to(tmp_path: Path) -> None:
    """If `/dev/stdout` is redirected to a file, output follows its content, and the file is not replaced."""
    path, link = tmp_path / "export", tmp_path / "link"
    path.write_bytes(b"earlier")
    with path.open("ab") as file:
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        written = ((Path(f"/dev/fd/{file.fileno()}"), b"first", b"earlierfirst"), (link, b"2", b"earlierfirst2"))
        for output, content, expected in written:
            write_output_file(output, content)
            assert (path.read_bytes(), path.stat().st_ino) == (expected, os.fstat(file.fileno()).st_ino)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EBUSY])
@pytest.mark.parametrize("method", ["touch", "replace"])
def test_a_file_that_cannot_be_replaced_is_written_directly(
    method: str, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A writable file is written directly if its folder is write-protected, or if it is mounted."""
    path = tmp_path / "export"
    path.write_text("earlier")
    monkeypatch.setattr(Path, method, Mock(side_effect=OSError(number, "refused")))
    write_output_file(path, b"content")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"content", [path])


def test_an_output_file_can_have_a_name_of_any_permitted_length(tmp_path: Path) -> None:
    """A file whose name is almost too long can be written, although that of its draft would be too long."""
    path = tmp_path / ("n" * 250)
    write_output_file(path, b"content")
    assert path.read_bytes() == b"content"


def test_a_write_protected_output_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A write-protected file is not replaced, although its folder permits it; the error names the file."""
    path = tmp_path / "export"
    path.write_text("earlier")
    monkeypatch.setattr(os, "access", lambda *_arguments: False)  # the administrator may write to each file
    with pytest.raises(PermissionError) as raised:
        write_output_file(path, b"content")
    assert (raised.value.filename, path.read_text()) == (str(path), "earlier")


def set_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Replace standard input as Python opens it in the locale C."""
    stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr("sys.stdin", stream)
