"""Local HTTP server that takes the place of the service, for tests of the gateway's requests and its sender."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = {"Token": "t", "ExpiresAt": "2999-01-01T00:00:00+00:00"}
JSON, HTML = "application/json", "text/html"

type HttpReply = tuple[int, str, bytes]


def accept_lines(lines: list[bytes]) -> HttpReply:
    """Reply as the service does when it accepts messages."""
    return 202, JSON, json.dumps({"accepted": len(lines)}).encode()


class _Server(ThreadingHTTPServer):
    reply_to_lines: Callable[[list[bytes]], HttpReply]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        """Issue a token."""
        self._send_reply(200, JSON, json.dumps(TOKEN).encode())

    def do_POST(self) -> None:
        """Pass the lines of the body to the function of the test, and send its reply."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        # As the service does, end a line only at a line feed.
        self._send_reply(*self.server.reply_to_lines(body.split(b"\n")[:-1]))

    def _send_reply(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_replies(reply_to_lines: Callable[[list[bytes]], HttpReply]) -> Iterator[str]:
    """Serve HTTP for the duration of the block; yield the URL.

    Args:
        reply_to_lines: returns status, media type and body of the reply to a request with these NDJSON lines.
    """
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.reply_to_lines = reply_to_lines
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
