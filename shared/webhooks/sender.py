"""Sender of webhook deliveries: formats the event for Teams, Slack or other receivers, and signs and sends it once."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.errors import WorkspaceError
from shared.outbound.addresses import AddressRefusedError, OutboundUrl, parse_outbound_url
from shared.outbound.ports import OutboundFailedError, OutboundHttp, OutboundReply, OutboundRequest
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import Attempt, Delivery, MessageFormat, WebhookEndpoint
from shared.webhooks.secrets import SecretVault, build_signature_header

MAX_VALUE_LENGTH: Final = 500
MAX_VALUES: Final = 20
TITLES: Final[Mapping[str, str]] = {
    WebhookEventType.ALERT_FIRING: "Alert: {name}",
    WebhookEventType.ALERT_RESOLVED: "Resolved: {name}",
    WebhookEventType.CONNECTION_STATUS_CHANGED: "Connection {connection} is {after}",
    WebhookEventType.AMENDMENT_PENDING: "Amendment of {entityType} {entityId} waits for approval",
    WebhookEventType.AMENDMENT_DECIDED: "Amendment of {entityType} {entityId} is {status}",
    WebhookEventType.WARM_QUERY_PENDING_APPROVAL: "Query {name} waits for approval",
    WebhookEventType.WARM_QUERY_APPROVED: "Query {name} was approved",
    WebhookEventType.WARM_QUERY_REJECTED: "Query {name} was rejected",
    WebhookEventType.DOWNLOAD_COMPLETED: "Download {downloadId}: {status}",
    WebhookEventType.AUDIT_CHAIN_BROKEN: "Audit chain {target} is broken",
    WebhookEventType.SIGNATURE_SUSPICIOUS: "Suspicious signatures of {userId}",
    WebhookEventType.WEBHOOK_TEST: "Test message",
}
_PAGES: Final = {
    "alert": "alerts",
    "connection": "connections",
    "amendment": "inbox",
    "warm-query": "queries",
    "download": "downloads",
    "audit-chain": "audit",
    "signature": "audit",
    "webhook": "webhooks",
}
_TEAMS_SCHEMA: Final = "http://adaptivecards.io/schemas/adaptive-card.json"


def render_body(event_json: str, message_format: MessageFormat, base_url: str) -> bytes:
    """Convert the JSON text of an event to the request body in the format that the endpoint expects.

    Args:
        event_json: the event as JSON text.
        message_format: format that the endpoint expects.
        base_url: address of the service, for the link to the console; empty if it is not known.
    """
    if message_format is MessageFormat.STANDARD:
        return event_json.encode()
    event = json.loads(event_json)
    render = _render_teams_message if message_format is MessageFormat.TEAMS else _render_slack_message
    return json.dumps(
        render(event, _build_console_url_or_empty_text(event, base_url)), ensure_ascii=False, separators=(",", ":")
    ).encode()


def build_chat_message_title(event: Mapping[str, Any]) -> str:
    """Build the title line of a chat message (Teams or Slack) about a webhook event."""
    data = {name: _to_chat_message_text(value) for name, value in event["data"].items()}
    try:
        return TITLES[event["type"]].format_map(data)
    except KeyError:
        return str(event["type"])


def _build_console_url_or_empty_text(event: Mapping[str, Any], base_url: str) -> str:
    """Build the URL of the console page for this type of event; empty if the service's address is not known.

    For a type that only a newer version of the service knows, the URL is that of the console's first page.
    """
    page = _PAGES.get(event["type"].partition(".")[0], "")
    return f"{base_url}/console#/{page}" if base_url else ""


def _iterate_labels_and_values(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the value of each event property that a chat message shows."""
    yield "time", event["timestamp"]
    for name, value in list(event["data"].items())[:MAX_VALUES]:
        if value not in (None, "", [], {}):
            yield name, _to_chat_message_text(value)


def _to_chat_message_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}..."


def _render_teams_message(event: Mapping[str, Any], console_url: str) -> dict[str, Any]:
    """Build a Microsoft Teams message with one adaptive card; markup in values is escaped."""
    facts = [
        {"title": _escape_markdown(name), "value": _escape_markdown(text)}
        for name, text in _iterate_labels_and_values(event)
    ]
    card: dict[str, Any] = {
        "$schema": _TEAMS_SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {
                "type": "TextBlock",
                "size": "Medium",
                "weight": "Bolder",
                "wrap": True,
                "text": _escape_markdown(build_chat_message_title(event)),
            },
            {"type": "FactSet", "facts": facts},
        ],
    }
    if console_url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the console", "url": console_url}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _escape_markdown(text: str) -> str:
    """Escape the characters that begin a link, an emphasis or a list in Teams."""
    return "".join(f"\\{each}" if each in "\\`*_[]" else each for each in text)


def _render_slack_message(event: Mapping[str, Any], console_url: str) -> dict[str, Any]:
    """Build a Slack message with one block of text of the type ``plain_text``, in which Slack reads no markup."""
    title = build_chat_message_title(event)
    lines = "\n".join(f"{name}: {text}" for name, text in _iterate_labels_and_values(event))
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _shorten_text(title, 150), "emoji": False}},
        {"type": "section", "text": {"type": "plain_text", "text": _shorten_text(lines, 3_000), "emoji": False}},
    ]
    if console_url:
        label = {"type": "plain_text", "text": "Open the console", "emoji": False}
        blocks.append({"type": "actions", "elements": [{"type": "button", "text": label, "url": console_url}]})
    return {"text": _escape_for_slack(title), "blocks": blocks}


def _escape_for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shorten_text(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters - 3] + "..."


SECONDS: Final = 15.0
"""Maximum time in seconds until the status of the endpoint's reply is received."""
MAX_REPLY_BYTES: Final = 1_024
"""Maximum number of bytes of the reply's body that are stored in the log of deliveries; the rest is cut off."""
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
        """Send a delivery once and return the result; a failure is returned as a result, and not raised."""
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
            reply="" if reply is None else _to_printable_excerpt(reply.body),
        )
        return SendResult(attempt, is_delivered)

    async def _build_request(self, endpoint: WebhookEndpoint, delivery: Delivery, at: datetime) -> OutboundRequest:
        url: OutboundUrl = parse_outbound_url(endpoint.url)
        body = render_body(delivery.body, endpoint.format, self._base_url)
        secrets = await self._decrypt_active_secrets(endpoint, at)
        timestamp = int(at.timestamp())
        headers = {
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": build_signature_header(secrets, delivery.id, timestamp, body),
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
        }
        return OutboundRequest(url, "POST", headers, body, seconds=SECONDS, max_bytes=MAX_REPLY_BYTES, truncate=True)

    async def _decrypt_active_secrets(self, endpoint: WebhookEndpoint, at: datetime) -> list[str]:
        """Decrypt the secrets that sign a delivery; omit a previous secret that was encrypted with another key."""
        secrets: list[str] = []
        for stored in endpoint.list_active_secrets(at):
            try:
                secrets.append(await self._vault.decrypt(endpoint.id, stored.encrypted))
            except WorkspaceError:
                # After a replacement of WEBHOOK_SECRET_KEY, the rotation of the secret must suffice.
                if stored.expires_at is None:
                    raise
        return secrets


def _to_printable_excerpt(reply_body: bytes) -> str:
    """Convert the start of an endpoint's reply to text without control characters, for the delivery log."""
    text = reply_body.decode("utf-8", "replace")
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
