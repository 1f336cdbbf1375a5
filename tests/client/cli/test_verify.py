"""Tests of the exit codes and the sign-in of `oi audit fetch`, with a fake service."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from oi.cli.main import execute


class _Handler(BaseHTTPRequestHandler):
    """Base class of fake services that reply with JSON."""

    def send_json(self, status: int, value: object, media_type: str = "application/json") -> None:
        """Send a reply with a JSON value."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-provenance-has-more", "false")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no server log."""


class _Refusing(_Handler):
    """Fake service that rejects every request with 403."""

    def do_GET(self) -> None:
        """Reject the request with 403."""
        detail = "The right Workspace.Provenance.Read is missing."
        self.send_json(403, {"detail": detail}, "application/problem+json")


class _Issuing(_Handler):
    """Fake service with an empty audit chain; it issues numbered tokens for an API key, and rejects the first token."""

    issued = 0

    def do_GET(self) -> None:
        """Issue a token, or reply to the request for a checkpoint or for records."""
        if "/keys/jwt" in self.path:
            _Issuing.issued += 1
            self.send_json(200, {"Token": f"t{_Issuing.issued}", "ExpiresAt": "2099-01-01T00:00:00Z"})
        elif self.headers["Authorization"] == "Bearer t1":
            self.send_json(401, {"detail": "The token was revoked."}, "application/problem+json")
        elif "/checkpoint" in self.path:
            self.send_json(404, {}, "application/problem+json")
        else:
            self.send_json(200, [])


@contextmanager
def start_service(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Start a fake service, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a fake service that rejects every request."""
    with start_service(_Refusing) as address:
        yield address


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


def test_audit_fetch_renews_a_token_that_the_service_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exchanges the API key for a token once, and once more after the service has rejected the token."""
    monkeypatch.setattr(_Issuing, "issued", 0)
    monkeypatch.setenv("OI_KEY", "oik_a_b")
    monkeypatch.delenv("OI_TOKEN", raising=False)
    out = tmp_path / "chain.json"
    with start_service(_Issuing) as address:
        assert execute(["audit", "fetch", address, "--target", "AccessControl", "--out", str(out)]) == 0
    assert (json.loads(out.read_text()), _Issuing.issued) == ([], 2)
