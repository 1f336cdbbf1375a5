"""Command for trying out webhooks: receives them, verifies their signatures and prints them.

Start it with ``python -m local.webhook_receiver``.
"""

import argparse
import hashlib
import hmac
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

MAX_BODY_BYTES: Final = 1_048_576
TOLERANCE_SECONDS: Final = 300
DEFAULT_PORT: Final = 9_000
_PREFIX: Final = "whsec_"
_MAX_DIGITS: Final = 20


def describe_signature_check(headers: Mapping[str, str], body: bytes, secret: str, received_at_seconds: float) -> str:
    """Return a sentence that states whether the signature of a webhook message is valid, and if not, the reason.

    The rules are those of the Standard Webhooks specification 1.0.

    Args:
        headers: headers of the request by their names in lowercase.
        body: body of the request.
        secret: secret of the webhook; empty if it is not known.
        received_at_seconds: the current time in seconds since 1970.
    """
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split()
    if not (message_id and _is_whole_number(timestamp) and signatures):
        return "not signed: the request lacks webhook-id, webhook-timestamp or webhook-signature"
    if not secret:
        return "signature not checked: no secret is known; use --secret-file"
    try:
        key = b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        return "signature not checked: the secret in the file is not whsec_ followed by Base64"
    if abs(received_at_seconds - int(timestamp)) > TOLERANCE_SECONDS:
        return f"signature INVALID: the message is {received_at_seconds - int(timestamp):.0f} s old"
    content = _encode_utf8_with_surrogates(f"{message_id}.{timestamp}.") + body
    expected = b"v1," + b64encode(hmac.digest(key, content, hashlib.sha256))
    valid = any(hmac.compare_digest(expected, _encode_utf8_with_surrogates(signature)) for signature in signatures)
    return "signature valid" if valid else "signature INVALID: it was made with another secret or for another body"


def _is_whole_number(text: str) -> bool:
    """Return whether a header is a number of at most 20 ASCII digits; Python refuses to convert very long texts."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _encode_utf8_with_surrogates(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def format_message(headers: Mapping[str, str], body: bytes, signature_verdict: str) -> str:
    """Return the text that is printed about a webhook message; control characters are escaped."""
    try:
        content = json.dumps(json.loads(body), indent=2, ensure_ascii=True)
    except ValueError:
        content = ascii(body)
    return f"{ascii(headers.get('webhook-id', '-'))[1:-1]}: {signature_verdict}\n{content}"


def build_server(host: str, port: int, secret_file: Path | None, reply_status: int) -> ThreadingHTTPServer:
    """Create the HTTP server that receives webhooks.

    Args:
        host: address to listen on.
        port: port to listen on; 0 for any free port.
        secret_file: file with the webhook's secret, read for each message; None if the secret is not known.
        reply_status: HTTP status of all replies; an error status makes the sender retry.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not _is_whole_number(length) or int(length) > MAX_BODY_BYTES:
                self.close_connection = True
                self.send_error(413)
                return
            body = self.rfile.read(int(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            secret = _read_secret(secret_file) if secret_file is not None and secret_file.exists() else ""
            print(
                format_message(headers, body, describe_signature_check(headers, body, secret, time.time())), flush=True
            )
            self.send_response(reply_status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            """Write no server log, so that only the webhook messages are printed."""

    return ThreadingHTTPServer((host, port), Handler)


def _read_secret(secret_file: Path) -> str:
    # The check of the signature reports a file that is not UTF-8.
    return secret_file.read_text(encoding="utf-8", errors="replace").strip()


def main(arguments: list[str] | None = None) -> None:
    """Receive and print webhooks until the process is stopped."""
    parser = argparse.ArgumentParser(prog="python -m local.webhook_receiver", description="Print and verify webhooks.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port (default: {DEFAULT_PORT}; 0: any)")
    parser.add_argument("--secret-file", type=Path, help="file with the secret of the webhook (whsec_...)")
    parser.add_argument("--status", type=int, default=200, help="status of the replies (default: 200)")
    options = parser.parse_args(arguments)
    server = build_server(options.host, options.port, options.secret_file, options.status)
    print(f"receiving on http://{options.host}:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
