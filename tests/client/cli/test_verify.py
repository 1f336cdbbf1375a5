"""Tests of the exit codes of `oi audit fetch`, with a fake service."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from oi.cli.main import execute


class _Refusing(BaseHTTPRequestHandler):
    """Fake service that rejects every request with 403."""

    def do_GET(self) -> None:
        """Reject the request with 403."""
        body = json.dumps({"detail": "The right Workspace.Provenance.Read is missing."}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no server log."""


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a fake service that rejects every request."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_exit_code_of_audit_fetch_states_the_kind_of_failure(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 for a rejected request, 2 for a missing login, and 3 if the service cannot be reached."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OI_TOKEN", "jwt")
    for name in ("OI_URL", "OI_KEY"):
        monkeypatch.delenv(name, raising=False)
    out = tmp_path / "chain.json"
    fetch = ["audit", "fetch", "--target", "AccessControl", "--out", str(out)]
    assert execute([*fetch, address]) == 1
    assert (
        "error: the service returned status 403: The right Workspace.Provenance.Read is missing."
        in capsys.readouterr().err
    )
    assert execute(fetch) == 2
    assert "Run `oi login URL`" in capsys.readouterr().err
    monkeypatch.setattr("oi.verification.fetch.sleep", lambda _seconds: None)
    assert execute([*fetch, "http://127.0.0.1:1"]) == 3
    assert not out.exists()
