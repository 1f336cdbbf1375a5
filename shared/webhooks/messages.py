"""Request bodies of webhook deliveries: the event itself, a Microsoft Teams card, or a Slack message."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import MessageFormat

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


def render_body(body: str, message_format: MessageFormat, base_url: str) -> bytes:
    """Convert an event to the request body in the format that the endpoint expects.

    Args:
        body: the event as JSON text.
        message_format: format that the endpoint expects.
        base_url: address of the service, for the link to the console; empty if it is not known.
    """
    if message_format is MessageFormat.STANDARD:
        return body.encode()
    event = json.loads(body)
    render = _render_teams if message_format is MessageFormat.TEAMS else _render_slack
    return json.dumps(render(event, _build_link(event, base_url)), ensure_ascii=False, separators=(",", ":")).encode()


def build_title(event: Mapping[str, Any]) -> str:
    """Return the title of an event for a message to a person."""
    data = {name: _to_text(value) for name, value in event["data"].items()}
    try:
        return TITLES[event["type"]].format_map(data)
    except KeyError:
        return str(event["type"])


def _build_link(event: Mapping[str, Any], base_url: str) -> str:
    page = _PAGES[event["type"].partition(".")[0]]
    return f"{base_url}/console#/{page}" if base_url else ""


def _list_labels_and_values(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the labels and values that a chat message shows of an event; properties without a value are omitted."""
    yield "time", event["timestamp"]
    for name, value in list(event["data"].items())[:MAX_VALUES]:
        if value not in (None, "", [], {}):
            yield name, _to_text(value)


def _to_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}..."


def _render_teams(event: Mapping[str, Any], link: str) -> dict[str, Any]:
    """Build a Microsoft Teams message with one adaptive card; markup in values is escaped."""
    facts = [
        {"title": _escape_markdown(name), "value": _escape_markdown(text)}
        for name, text in _list_labels_and_values(event)
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
                "text": _escape_markdown(build_title(event)),
            },
            {"type": "FactSet", "facts": facts},
        ],
    }
    if link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the console", "url": link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _escape_markdown(text: str) -> str:
    """Escape the characters with which Teams would begin a link, an emphasis or a list."""
    return "".join(f"\\{each}" if each in "\\`*_[]" else each for each in text)


def _render_slack(event: Mapping[str, Any], link: str) -> dict[str, Any]:
    """Build a Slack message with one block of text of the type ``plain_text``, in which Slack reads no markup."""
    title = build_title(event)
    lines = "\n".join(f"{name}: {text}" for name, text in _list_labels_and_values(event))
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _shorten(title, 150), "emoji": False}},
        {"type": "section", "text": {"type": "plain_text", "text": _shorten(lines, 3_000), "emoji": False}},
    ]
    if link:
        label = {"type": "plain_text", "text": "Open the console", "emoji": False}
        blocks.append({"type": "actions", "elements": [{"type": "button", "text": label, "url": link}]})
    return {"text": _escape_slack(title), "blocks": blocks}


def _escape_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
