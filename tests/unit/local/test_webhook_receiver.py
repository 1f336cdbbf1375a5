"""Tests of the command that receives, verifies and prints webhooks."""

import threading
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest

from local.webhook_receiver import build_server, describe_signature_check

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
HEADERS = {"webhook-id": "msg_1", "webhook-timestamp": "1800000000", "webhook-signature": "v1,AAAA"}


@pytest.mark.parametrize(
    ("headers", "secret", "verdict"),
    [
        ({}, SECRET, "signature INVALID"),
        ({"webhook-signature": "v1,\xe4"}, SECRET, "signature INVALID"),
        ({"webhook-id": "\udc80", "webhook-signature": "v1,\udc80"}, SECRET, "signature INVALID"),
        ({"webhook-timestamp": "9" * 400}, SECRET, "not signed"),
        ({"webhook-timestamp": "9" * 5_000}, SECRET, "not signed"),
        ({}, "whsec_abc", "signature not checked: the secret"),
        ({}, "whsec_\ufffd", "signature not checked: the secret"),
        ({}, "", "signature not checked: no secret"),
    ],
)
def test_a_malformed_header_or_secret_is_described(headers: Mapping[str, str], secret: str, verdict: str) -> None:
    """A malformed header or secret is described like an invalid signature, and raises no error."""
    assert describe_signature_check({**HEADERS, **headers}, b"{}", secret, 1_800_000_000).startswith(verdict)


def test_requests_that_cannot_be_verified_get_a_reply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The receiver replies to a request if the file of the secret is not UTF-8, or if the length is malformed."""
    secret_file = tmp_path / "secret"
    secret_file.write_text(SECRET, encoding="utf-16")
    statuses = []
    with build_server("127.0.0.1", 0, secret_file, 200) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        for headers in ({**HEADERS, "webhook-timestamp": "1"}, {"Content-Length": "9" * 5_000}):
            connection = HTTPConnection("127.0.0.1", server.server_port)
            connection.request("POST", "/", "{}", headers)
            statuses.append(connection.getresponse().status)
            connection.close()
        server.shutdown()
        thread.join()
    assert statuses == [200, 413]
    assert "msg_1: signature not checked: the secret" in capsys.readouterr().out
