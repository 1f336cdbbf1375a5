"""Sender of webhook deliveries: signs and sends a delivery once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.errors import WorkspaceError
from shared.outbound.addresses import AddressRefusedError, OutboundUrl, parse_outbound_url
from shared.outbound.ports import OutboundFailedError, OutboundHttp, OutboundReply, OutboundRequest
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.webhooks.messages import render_body
from shared.webhooks.models import Attempt, Delivery, WebhookEndpoint
from shared.webhooks.secrets import SecretVault, build_signature_header

SECONDS: Final = 15.0
"""Seconds within which an endpoint must reply with a status."""
MAX_REPLY_BYTES: Final = 1_024
"""Number of bytes of the reply's body that are stored in the log of deliveries."""
USER_AGENT: Final = "oi-webhooks/1"
_SUCCESS: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class SendResult:
    """Result of an attempt to send a delivery.

    Attributes:
        attempt: record of the attempt for the log of deliveries.
        is_delivered: True if the endpoint has accepted the message (status 2xx).
    """

    attempt: Attempt
    is_delivered: bool


class DeliverySender:
    """Signs and sends webhook deliveries.

    Args:
        http: client that checks every address before it connects.
        vault: decrypts the secrets of the endpoints.
        base_url: address of the service for links; empty if it is not known.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, http: OutboundHttp, vault: SecretVault, base_url: str, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._http = http
        self._vault = vault
        self._base_url = base_url
        self._runtime = runtime

    async def send(self, endpoint: WebhookEndpoint, delivery: Delivery) -> SendResult:
        """Send a delivery once. A failure is part of the result, never an exception."""
        at, started = self._runtime.now(), self._runtime.monotonic()
        reply: OutboundReply | None = None
        error: str | None = None
        try:
            reply = await self._http.send(await self._build_request(endpoint, delivery, at))
        except (AddressRefusedError, OutboundFailedError) as failure:
            error = failure.reason
        except WorkspaceError as failure:
            error = failure.detail
        is_delivered = reply is not None and reply.status in _SUCCESS
        if reply is not None and not is_delivered:
            error = f"The endpoint replied with status {reply.status}."
        attempt = Attempt(
            at=at,
            http_status=None if reply is None else reply.status,
            error=error,
            duration_ms=round((self._runtime.monotonic() - started) * 1000),
            reply="" if reply is None else _to_excerpt(reply.body),
        )
        return SendResult(attempt, is_delivered)

    async def _build_request(self, endpoint: WebhookEndpoint, delivery: Delivery, at: datetime) -> OutboundRequest:
        url: OutboundUrl = parse_outbound_url(endpoint.url)
        body = render_body(delivery.body, endpoint.format, self._base_url)
        active = endpoint.list_active_secrets(at)
        secrets = [await self._vault.decrypt(endpoint.id, secret.encrypted) for secret in active]
        timestamp = int(at.timestamp())
        headers = {
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": build_signature_header(secrets, delivery.id, timestamp, body),
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
        }
        return OutboundRequest(url, "POST", headers, body, seconds=SECONDS, max_bytes=MAX_REPLY_BYTES, truncate=True)


def _to_excerpt(body: bytes) -> str:
    """Convert the start of a reply's body to text without control characters, for the log."""
    text = body.decode("utf-8", "replace")
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
