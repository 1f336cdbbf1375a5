"""Webhook event about a member whose signatures were refused several times."""

from datetime import datetime

from shared.timestamps import rfc3339
from shared.webhooks.events import WebhookEvent, WebhookEventType


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
