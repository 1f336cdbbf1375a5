"""Tests of the HTTP calls of the smoke test."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.smoke.calls import TokenHolder


class _EmptyReply(BaseHTTPRequestHandler):
    """Handler that replies to all requests with an empty body."""

    def do_GET(self) -> None:
        """Reply to a request."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no log."""


def test_the_credential_is_sent_to_no_proxy_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to an http address do not use the proxy of the environment variables."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _EmptyReply) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        assert TokenHolder(f"http://127.0.0.1:{server.server_port}", "token").get("/").status == 200
        server.shutdown()
        thread.join()
