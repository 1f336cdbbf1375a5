"""Tests of the client's function that verifies webhook requests."""

import base64
from datetime import UTC, datetime

import pytest
from oi import WebhookError, verify_webhook
from standardwebhooks import Webhook

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
BODY = '{"type": "webhook.test", "data": {"text": "Kühlkreis"}}'
NOW = 1_800_000_000


def _sign_body(secret: str = SECRET, sent: int = NOW, body: str = BODY) -> dict[str, str]:
    """Sign a body with the official library of Standard Webhooks."""
    signature = Webhook(secret).sign("msg_1", datetime.fromtimestamp(sent, UTC), body)
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(sent), "Webhook-Signature": f"v1,AAAA {signature}"}


def test_recently_signed_webhook_requests_are_accepted() -> None:
    """A request that the official library signed at most five minutes ago is accepted."""
    for sent in (NOW - 300, NOW + 300):
        assert verify_webhook(_sign_body(sent=sent), BODY.encode(), SECRET, now=NOW)["type"] == "webhook.test"


@pytest.mark.parametrize(
    ("headers", "body", "secret", "reason"),
    [
        (_sign_body(), BODY.replace("K", "k"), SECRET, "no signature"),
        ({**_sign_body(), "Webhook-Signature": "v1,ä"}, BODY, SECRET, "no signature"),
        (_sign_body(secret=SECRET.replace("A", "B")), BODY, SECRET, "no signature"),
        ({**_sign_body(), "Webhook-Signature": "v2,AAAA"}, BODY, SECRET, "no signature"),
        ({**_sign_body(), "Webhook-Id": "msg_2"}, BODY, SECRET, "no signature"),
        (_sign_body(sent=NOW - 301), BODY, SECRET, "five minutes"),
        (_sign_body(sent=NOW + 301), BODY, SECRET, "five minutes"),
        ({**_sign_body(), "Webhook-Timestamp": "soon"}, BODY, SECRET, "number of seconds"),
        ({**_sign_body(), "Webhook-Timestamp": "9" * 400}, BODY, SECRET, "number of seconds"),
        ({**_sign_body(), "Webhook-Timestamp": "9" * 5_000}, BODY, SECRET, "number of seconds"),
        ({**_sign_body(), "Webhook-Signature": "v1,\udc80"}, BODY, SECRET, "no signature"),
        ({**_sign_body(), "Webhook-Id": "\udc80"}, BODY, SECRET, "no signature"),
        (_sign_body(), "\ud800", SECRET, "no signature"),
        ({}, BODY, SECRET, "webhook-id"),
        (_sign_body(), BODY, "whsec_?", "base64"),
        (_sign_body(), BODY, "", "24 bytes"),
        (_sign_body(), BODY, "whsec_", "24 bytes"),
        (_sign_body("whsec_YQ=="), BODY, "whsec_YQ==", "24 bytes"),
    ],
)
def test_changed_old_or_unsigned_webhook_requests_are_rejected(
    headers: dict[str, str], body: str, secret: str, reason: str
) -> None:
    """A request is rejected with the reason if it was changed, is too old, has no signature or is malformed."""
    with pytest.raises(WebhookError, match=reason):
        verify_webhook(headers, body, secret, now=NOW)
