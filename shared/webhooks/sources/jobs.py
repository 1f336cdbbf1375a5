"""Webhook events about ended downloads and broken audit chains; background jobs publish these events."""

from datetime import datetime

from shared.downloads.models import Job
from shared.provenance.ports import ChainKey
from shared.webhooks.events import WebhookEvent, WebhookEventType


def build_download_event(job: Job, at: datetime) -> WebhookEvent:
    """Build the webhook event about a download that was completed or has failed."""
    data = {"downloadId": job.id, "status": job.status.value, "rows": job.rows, "bytes": job.stored_bytes}
    key = f"{WebhookEventType.DOWNLOAD_COMPLETED}/{job.id}"
    connections = frozenset(job.connections) or None
    return WebhookEvent(key, WebhookEventType.DOWNLOAD_COMPLETED, at, data, connections=connections)


def build_broken_chain_event(chain: ChainKey, broken_at: str, reason: str, at: datetime) -> WebhookEvent:
    """Build the webhook event about a broken audit chain; its key changes daily, so it is reported once a day."""
    kind = WebhookEventType.AUDIT_CHAIN_BROKEN
    data = {
        "target": chain.target.value,
        "scopeKey": chain.scope_key or None,
        "brokenAt": broken_at or None,
        "reason": reason,
    }
    return WebhookEvent(f"{kind}/{at:%Y-%m-%d}/{chain.target}/{broken_at}/{chain.scope_key}", kind, at, data)
