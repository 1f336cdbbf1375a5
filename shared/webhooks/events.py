"""Events that webhooks report, and the port through which other domains publish them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class WebhookEventType(StrEnum):
    """Type of a webhook event."""

    ALERT_FIRING = "alert.firing"
    ALERT_RESOLVED = "alert.resolved"
    CONNECTION_STATUS_CHANGED = "connection.status-changed"
    AMENDMENT_PENDING = "amendment.pending"
    AMENDMENT_DECIDED = "amendment.decided"
    WARM_QUERY_PENDING_APPROVAL = "warm-query.pending-approval"
    WARM_QUERY_APPROVED = "warm-query.approved"
    WARM_QUERY_REJECTED = "warm-query.rejected"
    DOWNLOAD_COMPLETED = "download.completed"
    AUDIT_CHAIN_BROKEN = "audit-chain.broken"
    SIGNATURE_SUSPICIOUS = "signature.suspicious"
    WEBHOOK_TEST = "webhook.test"


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """Event (a change in the workspace) that webhooks report.

    Attributes:
        key: text that identifies the change among all changes of all time. An event is delivered once for each key,
            so the key must be the same when a change is published again after a crash.
        type: type of the event.
        at: time of the change. An endpoint receives the event only if it had subscribed to the event's type before this
            time.
        data: ids and values that describe the change to a person; JSON values without secrets.
        surfaces: lookups (ids in URLs) of the surfaces (groups of connections) that the change concerns; None if it
            concerns none.
        connections: lookups (ids in URLs) of the connections that the change concerns; None if it concerns none.
        severity: severity of the change; None if the change has no severity.
    """

    key: str
    type: WebhookEventType
    at: datetime
    data: Mapping[str, Any]
    surfaces: frozenset[str] | None = None
    connections: frozenset[str] | None = None
    severity: str | None = None


class EventOutbox(Protocol):
    """Port through which other parts of the service publish webhook events.

    The caller stores its change together with a mark that the event is not yet published. The caller then publishes the
    event and removes the mark. After a crash, it publishes the event again with the same key, and the second
    publication changes nothing.
    """

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Store a delivery of each event for each subscribed endpoint; the deliveries are sent in the background.

        Events for which no enabled endpoint has subscribed are dropped.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOKS_UNAVAILABLE`` if the store does not respond; publish again later.
        """
        ...
