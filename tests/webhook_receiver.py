"""Webhook receiver for tests, which records requests and sends the replies that a test sets."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass(frozen=True)
class ReceivedMessage:
    """Request that the webhook receiver has recorded.

    Attributes:
        path: path of the URL.
        headers: headers by their names in lowercase.
        body: body of the request.
    """

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """Id of the message."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        """Body parsed as JSON, without verification of the signature."""
        return json.loads(self.body)

    def verify(self, secret: str) -> Any:
        """Verify the signature with the official library, and return the event.

        Raises:
            WebhookVerificationError: the signature is not valid.
        """
        return Webhook(secret).verify(self.body, self.headers)


class WebhookReceiver:
    """HTTP server that records requests by path; a path without a reply in ``replies`` gets 204.

    Attributes:
        replies: status, headers and body of the replies by path.
        messages: the requests, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.replies: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.messages: list[ReceivedMessage] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.messages.append(ReceivedMessage(self.path, headers, body))
                status, more, content = receiver.replies.get(self.path, (204, {}, b""))
                self.send_response(status)
                for name, value in {**more, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def get_url(self, path: str) -> str:
        """Return the URL of a path of the receiver."""
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def list_messages(self, path: str, kind: str = "") -> list[ReceivedMessage]:
        """Return the requests to a path, of one event type or of all."""
        return [each for each in self.messages if each.path == path and (not kind or each.event["type"] == kind)]

    def count_by_id(self) -> Counter[str]:
        """Return the number of requests for each message id."""
        return Counter(each.id for each in self.messages)


@contextmanager
def run_receiver() -> Iterator[WebhookReceiver]:
    """Context manager: run a local webhook receiver for the duration of the block."""
    receiver = WebhookReceiver()
    # The default wait for the end of the loop is half a second.
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()
