"""Tests of the local webhook receiver, with which users can try webhooks."""

import base64
import json
import threading
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from oi.cli.listen import build_webhook_server, format_request_report, verify_and_describe_request
from standardwebhooks import Webhook

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"


def sign_body(body: str) -> dict[str, str]:
    """Sign a webhook body with the current time."""
    now = datetime.now(UTC)
    signature = Webhook(SECRET).sign("msg_1", now, body)
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(int(now.timestamp())), "Webhook-Signature": signature}


def test_the_local_webhook_receiver_verifies_and_prints_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiver verifies each request with the secret from the file and prints the result.

    The reply of the receiver states whether the request is valid.
    """
    secret = tmp_path / "secret"
    with build_webhook_server("127.0.0.1", 0, secret, 503, as_json=True) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        statuses = [httpx.post(url, content="{}", headers=sign_body("{}"), trust_env=False).status_code]
        secret.write_text(f"{SECRET}\n")
        replies = (
            httpx.post(url, content=body, headers=sign_body("{}"), trust_env=False) for body in ("{}", '{"a": 1}')
        )
        statuses += [reply.status_code for reply in replies]
        server.shutdown()
        thread.join()
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert statuses == [503] * 3
    assert [(request["valid"], request["body"]) for request in printed] == [(None, {}), (True, {}), (False, {"a": 1})]
    assert printed[2]["reason"] == "no signature of the request was made with the given secret"


def test_the_local_webhook_receiver_replies_to_requests_that_it_cannot_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiver replies to a request whose signature, secret file or length is malformed."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET, encoding="utf-16")
    requests = (sign_body("{}"), {**sign_body("{}"), "Webhook-Timestamp": "9" * 5_000}, {"Content-Length": "9" * 5_000})
    statuses = []
    with build_webhook_server("127.0.0.1", 0, secret, 200, as_json=True) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        for headers in requests:
            connection = HTTPConnection("127.0.0.1", server.server_port)
            connection.request("POST", "/", "{}", headers)
            statuses.append(connection.getresponse().status)
            connection.close()
        server.shutdown()
        thread.join()
    assert statuses == [200, 200, 413]
    assert [json.loads(line)["valid"] for line in capsys.readouterr().out.splitlines()] == [False, False]


def test_printed_webhook_requests_do_not_control_the_terminal() -> None:
    """Control characters in the ids and bodies of webhook requests are escaped when they are printed."""
    request = verify_and_describe_request({"webhook-id": "\x1b[2J"}, b"\x1b[2J\xff", "")
    text = format_request_report(request)
    assert "\x1b" not in text
    assert text.startswith("\\x1b[2J  signature not verified: no secret is known; use --secret-file\n")
