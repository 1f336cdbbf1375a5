"""Webhook events about ended downloads, broken audit chains and refused signatures; their services publish them."""

from datetime import datetime

from shared.downloads.models import Job
from shared.provenance.ports import ChainKey
from shared.timestamps import rfc3339
from shared.webhooks.events import WebhookEvent, WebhookEventType


def build_download_event(job: Job, at: datetime) -> WebhookEvent:
    """Build the webhook event about a download that was completed or has failed."""
    data = {"downloadId": job.id, "status": job.status.value, "rows": job.rows, "bytes": job.stored_bytes}
    key = f"{WebhookEventType.DOWNLOAD_COMPLETED}/{job.id}"
    connections = frozenset(job.connections) or None
    return WebhookEvent(key, WebhookEventType.DOWNLOAD_COMPLETED, at, data, connections=connections)


def build_broken_chain_event(chain: ChainKey, broken_at: str, reason: str, at: datetime) -> WebhookEvent:
    """Build the webhook event about a broken audit chain.

    Its key contains the day, so a broken chain is reported daily.
    """
    kind = WebhookEventType.AUDIT_CHAIN_BROKEN
    data = {
        "target": chain.target.value,
        "scopeKey": chain.scope_key or None,
        "brokenAt": broken_at or None,
        "reason": reason,
    }
    return WebhookEvent(f"{kind}/{at:%Y-%m-%d}/{chain.target}/{broken_at}/{chain.scope_key}", kind, at, data)


def build_lock_out_event(member: str, event_id: str, at: datetime, attempts: int, since: datetime) -> WebhookEvent:
    """Build the webhook event about the lock-out of a member.

    Args:
        member: id of the member.
        event_id: unique id of the lock-out.
        at: time of the lock-out.
        attempts: number of refused attempts.
        since: time of the first of these attempts.
    """
    kind = WebhookEventType.SIGNATURE_SUSPICIOUS
    data = {"userId": member, "attempts": attempts, "since": rfc3339(since)}
    return WebhookEvent(f"{kind}/{event_id}", kind, at, data)
