"""Tests of the HTTP calls of the smoke test."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.smoke import calls
from scripts.smoke.calls import CheckFailedError, TokenHolder, wait_until


class _VirtualTime:
    """Time that passes only while a caller sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the virtual time in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the virtual time."""
        self.now += seconds


@pytest.fixture
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> _VirtualTime:
    """Replace the time of the smoke test's calls."""
    virtual = _VirtualTime()
    monkeypatch.setattr(calls, "time", virtual)
    return virtual


class _EmptyReply(BaseHTTPRequestHandler):
    """Handler that replies to all requests with an empty body."""

    def do_GET(self) -> None:
        """Reply to a request."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no log."""


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_the_credential_is_sent_to_no_proxy_over_http(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Requests to an http address do not use the proxy of the environment variables."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _EmptyReply) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        assert TokenHolder(f"{scheme}://127.0.0.1:{server.server_port}", "token").get("/").status == 200
        server.shutdown()
        thread.join()


def test_rows_of_queued_ingestion_are_awaited(virtual_time: _VirtualTime) -> None:
    """The smoke test waits longer than the five minutes for which Data Explorer collects rows by default."""
    wait_until(lambda: virtual_time.now >= 6 * 60, True)
    assert virtual_time.now == 6 * 60


def test_the_wait_for_a_result_ends(virtual_time: _VirtualTime) -> None:
    """A result that never arrives is a failed check, which names the last result."""
    with pytest.raises(CheckFailedError, match="the result is still 0 after 420 s; expected 1"):
        wait_until(lambda: 0, 1)
    assert virtual_time.now > 6 * 60
