"""Verification of received webhook requests by the rules of Standard Webhooks 1.0."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from oi.errors import WebhookError

TOLERANCE_SECONDS = 300
"""Maximum difference in seconds between the timestamp of a request and the current time."""
_PREFIX = "whsec_"
_LEAST_SECRET_BYTES = 24
"""Minimum length of a secret by Standard Webhooks."""
_MOST_TIMESTAMP_DIGITS = 20


def verify_webhook(headers: Mapping[str, str], body: bytes | str, secret: str, *, now: float | None = None) -> Any:
    """Check the signature and the age of a webhook request; return its JSON body.

    Args:
        headers: headers of the request, with names in upper or lower case.
        body: bytes of the request's body as received, because the signature covers exactly these bytes.
        secret: secret of the webhook, a text that begins with ``whsec_``.
        now: current time in seconds since 1970; the time of the system clock if omitted.

    Raises:
        WebhookError: the secret is malformed or has less than 24 bytes, a header is missing, the timestamp differs from
            ``now`` by more than five minutes, or no signature was made with the secret.

    Example:
        >>> verify_webhook({}, b"{}", "whsec_c2VjcmV0LW9mLWFuLWV4YW1wbGUtMzItYnl0ZXM=")
        Traceback (most recent call last):
        ...
        oi.errors.WebhookError: the request has no header webhook-id
    """
    key = _decode_webhook_secret(secret)
    named = {name.lower(): value for name, value in headers.items()}
    identity, sent, signatures = (
        _require_header(named, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    # Python refuses to convert very long texts to numbers.
    if not (sent.isascii() and sent.isdigit() and len(sent) <= _MOST_TIMESTAMP_DIGITS):
        raise WebhookError("the header webhook-timestamp is not a number of seconds")
    if abs((time.time() if now is None else now) - int(sent)) > TOLERANCE_SECONDS:
        raise WebhookError("the timestamp of the request differs from the current time by more than five minutes")
    content = _encode_header_text(body) if isinstance(body, str) else body
    signed = b"%b.%b.%b" % (_encode_header_text(identity), sent.encode(), content)
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    versions = (each.partition(",") for each in signatures.split())
    found = [_encode_header_text(value) for version, _, value in versions if version == "v1"]
    if not any(hmac.compare_digest(signature, expected) for signature in found):
        raise WebhookError("no signature of the request was made with the given secret")
    return json.loads(content)


def _require_header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise WebhookError(f"the request has no header {name}")
    return value


def _encode_header_text(text: str) -> bytes:
    """Encode the text of a header as the original bytes, also if these are not valid UTF-8."""
    # Frameworks decode invalid UTF-8 in headers to surrogates, which a plain `encode` refuses.
    return text.encode(errors="surrogatepass")


def _decode_webhook_secret(secret: str) -> bytes:
    try:
        decoded = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        raise WebhookError("the secret must be whsec_ followed by base64 text") from None
    # Everybody can sign with an empty secret, for example that of an environment variable that is not set.
    if len(decoded) < _LEAST_SECRET_BYTES:
        raise WebhookError(f"the secret is empty or has less than {_LEAST_SECRET_BYTES} bytes")
    return decoded
