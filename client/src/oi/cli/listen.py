"""Local test server for webhooks, which verifies the received requests and prints them."""

import json
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict

import click

from oi.cli.output import add_json_option
from oi.errors import WebhookError
from oi.webhook import verify_webhook

_MAX_BODY_BYTES = 1_048_576
_MAX_LENGTH_DIGITS = 20
_TIMEOUT_SECONDS = 30


@click.command("listen")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=9000, show_default=True, help="Port; 0 for any.")
@click.option("--secret-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the webhook's secret.")
@click.option("--status", type=click.IntRange(200, 599), default=200, show_default=True, help="Status of the replies.")
@add_json_option
def listen_for_webhooks(host: str, port: int, secret_file: Path | None, status: int, as_json: bool) -> None:
    """Receive webhook requests on this computer, verify their signatures, and print them until Ctrl-C.

    The file with the secret is read for each request, so you can write it after you have created the webhook. Without a
    file, no signature is verified.
    """
    server = build_webhook_server(host, port, secret_file, status, as_json=as_json)
    click.echo(f"receiving on http://{host}:{server.server_port}/", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return
    finally:
        server.server_close()


class RequestReport(TypedDict):
    """Description of a webhook request, with the result of its verification.

    Attributes:
        id: header ``webhook-id``; None if it is missing.
        valid: whether the signature is valid; None if no secret is known.
        reason: reason why the request is not valid or not verified; empty if it is valid.
        body: JSON value of the body, or its text if it is not JSON.
    """

    id: str | None
    valid: bool | None
    reason: str
    body: Any


def verify_and_describe_request(headers: Mapping[str, str], body: bytes, secret: str) -> RequestReport:
    """Verify a webhook request, and return a description of the request with the result.

    Args:
        headers: HTTP headers of the request.
        body: body of the request, as received.
        secret: secret of the webhook; empty if it is not known.
    """
    named = {name.lower(): value for name, value in headers.items()}
    reason, valid = "no secret is known; use --secret-file", None
    if secret:
        try:
            verify_webhook(headers, body, secret)
            reason, valid = "", True
        except (WebhookError, ValueError) as error:
            reason, valid = str(error), False
    try:
        content: Any = json.loads(body)
    except ValueError:
        content = body.decode("utf-8", "backslashreplace")
    return {"id": named.get("webhook-id"), "valid": valid, "reason": reason, "body": content}


def format_request_report(report: RequestReport) -> str:
    """Format the result of :func:`verify_and_describe_request` for a terminal; control characters are escaped."""
    verdict = {True: "signature valid", False: "signature INVALID", None: "signature not verified"}[report["valid"]]
    reason = f": {report['reason']}" if report["reason"] else ""
    return f"{ascii(report['id'] or '-')[1:-1]}  {verdict}{reason}\n{json.dumps(report['body'], indent=2)}"


def build_webhook_server(
    host: str, port: int, secret_file: Path | None, reply_status: int, *, as_json: bool = False
) -> ThreadingHTTPServer:
    """Create the HTTP server that receives and prints webhook requests.

    Args:
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        secret_file: file with the secret of the webhook; None if the secret is not known.
        reply_status: HTTP status of all replies; an error status shows how the service repeats failed deliveries.
        as_json: whether a request is printed as one line of JSON.
    """

    class _WebhookRequestHandler(BaseHTTPRequestHandler):
        """Verifies and prints each received webhook request, and sends the reply."""

        protocol_version = "HTTP/1.1"
        timeout = _TIMEOUT_SECONDS

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            is_number = length.isascii() and length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS
            if not is_number or int(length) > _MAX_BODY_BYTES:
                self.close_connection = True
                self.send_error(413)
                return
            body = self.rfile.read(int(length))
            report = verify_and_describe_request(dict(self.headers.items()), body, _read_secret_or_empty(secret_file))
            sys.stdout.write(f"{json.dumps(report) if as_json else format_request_report(report)}\n")
            sys.stdout.flush()
            self.send_response(reply_status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            """Write no server log, so that only the webhook requests are printed."""

    return ThreadingHTTPServer((host, port), _WebhookRequestHandler)


def _read_secret_or_empty(path: Path | None) -> str:
    try:
        # The check of the signature reports a file that contains no secret, also if it is not UTF-8.
        return path.read_text(encoding="utf-8", errors="replace").strip() if path else ""
    except OSError:
        return ""
