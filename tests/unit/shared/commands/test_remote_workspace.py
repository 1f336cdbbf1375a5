"""Tests of the client with which the workspace command changes a running service."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from shared.commands.remote_workspace import RemoteWorkspace, plan_from_json, read_api_key
from shared.errors import WorkspaceError

_TOKEN = b'{"Token": "token"}'
_NOT_HTTP = b"SSH-2.0-server\r\n"
_CUT_OFF = b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://plant.example", True),
        ("http://127.0.0.1:7071", True),
        ("http://[::1]:7071", True),
        ("http://localhost", True),
        ("http://plant.example", False),
        ("http://127.0.0.1.plant.example", False),
        ("https://user@plant.example", False),
        ("ftp://plant.example", False),
        ("plant.example", False),
        ("https://[::1", False),
        ("https://localhost:abc", False),
        ("https://localhost:65536", False),
        ("https://plant.example/a b", False),
        ("https://plant.example/\N{LATIN SMALL LETTER E WITH ACUTE}", False),
    ],
)
def test_the_api_key_is_sent_only_encrypted_or_to_this_machine(url: str, *, is_allowed: bool) -> None:
    """The API key is sent only over https or to this machine, because plain http can be read in the network."""
    if is_allowed:
        RemoteWorkspace(url, "key")
        return
    with pytest.raises(WorkspaceError, match="https"):
        RemoteWorkspace(url, "key")


def test_the_key_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API key is read from the option, else from the file that a variable names, else from another variable."""
    for name in ("OI_KEY", "OI_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WorkspaceError, match="OI_KEY"):
        read_api_key(None)
    monkeypatch.setenv("OI_KEY", " from-variable\n")
    assert read_api_key(None) == "from-variable"
    for name in ("option", "variable"):
        (tmp_path / name).write_text(f"from-{name}-file\n", encoding="utf-8")
    monkeypatch.setenv("OI_KEY_FILE", str(tmp_path / "variable"))
    assert read_api_key(None) == "from-variable-file"
    assert read_api_key(tmp_path / "option") == "from-option-file"


@pytest.mark.parametrize("content", ["oik_a\noik_b", "oik_\N{LATIN SMALL LETTER E WITH ACUTE}", "oik_\ufeff"])
def test_a_malformed_key_is_rejected(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API key that is not one line of printable ASCII is rejected, and the error does not contain it."""
    file = tmp_path / "key"
    monkeypatch.setenv("OI_KEY", content)
    for encoding in ("utf-8", "utf-16"):
        file.write_text(content, encoding=encoding)
        for path in (file, None):
            with pytest.raises(WorkspaceError, match="printable ASCII") as caught:
                read_api_key(path)
            assert "oik_" not in caught.value.detail


def test_a_key_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """The file of an API key may begin with the byte order mark of UTF-8, which some editors write."""
    file = tmp_path / "key"
    file.write_text("oik_a\n", encoding="utf-8-sig")
    assert read_api_key(file) == "oik_a"


def test_a_key_file_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    """A key file in UTF-16, as PowerShell writes it, is rejected with an error that names the encoding."""
    file = tmp_path / "key"
    file.write_text("oik_a", encoding="utf-16")
    with pytest.raises(WorkspaceError, match="must be UTF-8"):
        read_api_key(file)


class _FixedReply(BaseHTTPRequestHandler):
    """Handler that replies to all requests with ``content``, and to requests for a token with ``token``."""

    content: ClassVar[bytes]
    token: ClassVar[bytes]

    def do_GET(self) -> None:
        """Reply to a request for a token."""
        self._reply(self.token)

    def do_POST(self) -> None:
        """Reply to a request for a plan."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._reply(self.content)

    def do_PUT(self) -> None:
        """Reply to a request that applies a document."""
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no log."""

    def _reply(self, content: bytes) -> None:
        if content in {b"", _NOT_HTTP, _CUT_OFF}:
            self.wfile.write(content)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.mark.parametrize(
    ("token", "content"),
    [
        (b"<html>", b""),
        (b"[]", b""),
        (b"{}", b""),
        (_NOT_HTTP, b""),
        (b'{"Token": "a\\nb"}', b""),
        (_TOKEN, b"<html>"),
        (_TOKEN, b"[]"),
        (_TOKEN, b"{}"),
        (_TOKEN, b'{"changes": [], "kept": [], "planTag": "a"}'),
        (_TOKEN, b'{"changes": [], "kept": [], "planTag": "a", "warnings": [{}]}'),
        (_TOKEN, _NOT_HTTP),
    ],
)
def test_a_reply_that_is_not_the_services_is_reported(token: bytes, content: bytes) -> None:
    """A reply that the service never sends, such as the page of a proxy, is reported with the option to check."""
    handler = type("Handler", (_FixedReply,), {"token": token, "content": content})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        workspace = RemoteWorkspace(f"http://127.0.0.1:{server.server_port}", "key")
        with pytest.raises(WorkspaceError, match="check `--url`"):
            workspace.request_plan(b"", Path("w.yaml"))
        with pytest.raises(WorkspaceError, match="check `--url`"):
            workspace.apply_document_and_return_plan(b"", Path("w.yaml"), "tag")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("content", [b"", _CUT_OFF])
def test_a_connection_that_ends_early_leaves_the_outcome_open(content: bytes) -> None:
    """If the connection ends before the reply is complete, the error states that the document may be applied."""
    handler = type("Handler", (_FixedReply,), {"token": _TOKEN, "content": content})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        workspace = RemoteWorkspace(f"http://127.0.0.1:{server.server_port}", "key")
        with pytest.raises(WorkspaceError, match="may have been executed"):
            workspace.apply_document_and_return_plan(b"", Path("w.yaml"), "tag")
        server.shutdown()
        thread.join()


def test_the_api_key_is_sent_to_no_proxy_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to an http address of this machine do not use the proxy of the environment variables."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    handler = type("Handler", (_FixedReply,), {"token": _TOKEN, "content": b""})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        workspace = RemoteWorkspace(f"HTTP://127.0.0.1:{server.server_port}", "key")
        assert workspace.export_document("application/json") == _TOKEN
        server.shutdown()
        thread.join()


def test_items_that_a_plan_retains_are_read_as_conflicts() -> None:
    """An item that a plan keeps unchanged is a conflict, unless it is kept because it was created over the API."""
    change = {"kind": "surface", "key": "s", "before": None, "after": {"lookup": "s"}}
    reasons = {"a": "created through the API", "b": "approved by a person"}
    kept = [{"kind": "surface", "key": key, "reason": reason} for key, reason in reasons.items()]
    plan = plan_from_json({"changes": [change], "kept": kept})
    assert [(each.key, each.verb) for each in plan.changes] == [("s", "Created")]
    assert [(each.key, each.conflict) for each in plan.retained] == [("a", False), ("b", True)]
