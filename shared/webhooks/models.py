"""Models of webhooks: endpoints with their secrets, and deliveries with their attempts."""

import hashlib
import json
from base64 import b32encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from shared.background.ports import CLOCK_TOLERANCE
from shared.catalog.alert_rule_models import Severity
from shared.catalog.etags import compute_definition_etag
from shared.observability.logs import fields, get_logger
from shared.timestamps import format_rfc3339
from shared.webhooks.events import WebhookEvent

MAX_ENDPOINTS: Final = 50
MAX_FILTER_BYTES: Final = 500_000
"""Maximum size of the filters of all endpoints as JSON; with the other fields, they are one document of up to 2 MB."""
MAX_SHOWN_ATTEMPTS: Final = 20
RETENTION: Final = timedelta(days=30)
"""Time for which a delivery stays in the log."""
_LOG: Final = get_logger("webhooks")


class MessageFormat(StrEnum):
    """Format of the request body that a webhook endpoint expects: standard, Teams or Slack."""

    STANDARD = "standard"
    TEAMS = "teams"
    SLACK = "slack"


class DeliveryStatus(StrEnum):
    """State of a webhook delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class _Record(BaseModel):
    """Frozen model of a stored object; properties that newer versions of the service store are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class EventFilter(_Record):
    """Filter of an endpoint's events by surface (group of connections), connection and severity.

    A criterion that is None accepts all values.
    """

    surfaces: tuple[str, ...] | None = None
    connections: tuple[str, ...] | None = None
    severities: tuple[Severity, ...] | None = None

    def accepts(self, event: WebhookEvent) -> bool:
        """Return whether a webhook event has an accepted surface, connection and severity."""
        severity = None if event.severity is None else frozenset({event.severity})
        pairs = ((self.surfaces, event.surfaces), (self.connections, event.connections), (self.severities, severity))
        return all(wanted is None or not (found or frozenset()).isdisjoint(wanted) for wanted, found in pairs)


class StoredSecret(_Record):
    """Encrypted secret of an endpoint.

    Attributes:
        encrypted: the secret as :meth:`shared.webhooks.secrets.SecretVault.encrypt` returns it.
        append_id: id of the request that created the secret, so that a repeated request returns it again.
        expires_at: time from which deliveries are no longer signed with this secret, because a newer secret replaced
            it; None for the newest secret.
    """

    encrypted: str
    append_id: str = ""
    expires_at: datetime | None = None


class WebhookEndpoint(_Record):
    """Webhook endpoint: a URL that receives events, its filter and its secrets.

    Attributes:
        event_types: types of the events that the endpoint receives. A newer version of the service may have stored
            types that this version does not know.
        subscribed_at: time from which the endpoint receives events, by event type.
        failing_since: time of the first failed attempt after the last success; None if the last attempt succeeded.
    """

    id: str
    url: str
    format: MessageFormat = MessageFormat.STANDARD
    description: str | None = None
    event_types: tuple[str, ...]
    filter: EventFilter = EventFilter()
    enabled: bool = True
    created_at: datetime
    created_by: str
    disabled_reason: str | None = None
    secrets: tuple[StoredSecret, ...] = ()
    subscribed_at: Mapping[str, datetime] = {}
    failing_since: datetime | None = None

    @property
    def etag(self) -> str:
        """Strong entity tag of the endpoint's definition, with its quotes."""
        return compute_definition_etag(self.to_definition())

    def to_definition(self) -> dict[str, Any]:
        """Return the definition of the endpoint as JSON, without secrets and times."""
        return {
            "id": self.id,
            "url": self.url,
            "format": self.format.value,
            "description": self.description,
            "eventTypes": [str(each) for each in self.event_types],
            "filter": self.filter.model_dump(mode="json", exclude_none=True),
            "enabled": self.enabled,
            "disabledReason": self.disabled_reason,
        }

    def accepts_event(self, event: WebhookEvent, at: datetime) -> bool:
        """Return whether the endpoint is enabled and subscribed to an event, and its filter accepts the event.

        Args:
            event: event that is published now.
            at: the current time. If the endpoint subscribed later than this, the clock was set back afterwards, or the
                clocks of two instances differ. The endpoint then receives the events of the last ``CLOCK_TOLERANCE``.
        """
        since = self.subscribed_at.get(event.type)
        if not self.enabled or since is None:
            return False
        earliest = since if since <= at else at - CLOCK_TOLERANCE
        return earliest <= event.at and self.filter.accepts(event)

    def list_active_secrets(self, at: datetime) -> list[StoredSecret]:
        """Return the secrets with which a delivery that is sent at a given time must be signed, newest first."""
        return [secret for secret in self.secrets if secret.expires_at is None or at < secret.expires_at]


class PendingAudit(_Record):
    """Audit event of an endpoint change that is possibly not yet appended to its audit chain."""

    append_id: str
    user_id: str
    event: Mapping[str, Any]


class EndpointList(_Record):
    """All endpoints and their pending audit events.

    They are stored as one document, so each change is a single write.
    """

    endpoints: Mapping[str, WebhookEndpoint] = {}
    audit: tuple[PendingAudit, ...] = ()

    def count_filter_bytes(self) -> int:
        """Return the size of all filters together as JSON text, in bytes; each character is ASCII and has one byte."""
        return sum(len(endpoint.filter.model_dump_json()) for endpoint in self.endpoints.values())


class Attempt(_Record):
    """Result of one attempt to send a webhook delivery.

    Attributes:
        at: start of the attempt.
        http_status: status of the reply; None without a reply.
        error: sentence that describes the failure; None after a success.
        duration_ms: length of the attempt in milliseconds.
        reply: start of the reply's body.
    """

    at: datetime
    http_status: int | None = None
    error: str | None = None
    duration_ms: int = 0
    reply: str = ""


class Delivery(_Record):
    """Delivery of one event to one endpoint.

    Attributes:
        id: id of the message, derived from the endpoint and the key of the event; the header ``webhook-id``.
        endpoint: id of the webhook endpoint.
        event_type: type of the event. A newer version of the service may have stored a type that this version does not
            know.
        body: the event as JSON text in the format ``standard``.
        retries: number of automatic retries that were scheduled so far; larger than their maximum if a caller requested
            a retry after the delivery had ended.
        attempts: the last 20 attempts, oldest first.
        next_attempt_at: time of the next attempt; None if the delivery has ended.
        scheduled_at: time at which the next attempt was scheduled or a worker claimed the delivery.
        lease: id of the claim of the worker that sends the delivery now; empty if the delivery waits.
    """

    id: str
    endpoint: str
    event_type: str
    body: str
    status: DeliveryStatus = DeliveryStatus.PENDING
    retries: int = 0
    attempts: tuple[Attempt, ...] = ()
    created_at: datetime
    next_attempt_at: datetime | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime
    lease: str = ""

    def copy_with_attempt(self, attempt: Attempt, **changes: Any) -> "Delivery":
        """Return a copy of the delivery with one more attempt and without a lease.

        ``changes`` are new values of other attributes.
        """
        attempts = (*self.attempts, attempt)[-MAX_SHOWN_ATTEMPTS:]
        return self.model_copy(update={"attempts": attempts, "lease": "", **changes})


def parse_stored_delivery_or_log_error(endpoint_id: str, delivery_id: str, delivery_json: str) -> Delivery | None:
    """Parse the stored JSON text of a delivery; log an error and return None if this is not possible.

    A newer version of the service possibly stored the delivery, and it must not stop the other deliveries.

    Args:
        endpoint_id: id of the webhook endpoint, for the log.
        delivery_id: id of the delivery, for the log.
        delivery_json: the stored JSON text.
    """
    try:
        return Delivery.model_validate_json(delivery_json)
    except ValidationError:
        _LOG.exception("a webhook delivery cannot be parsed", extra=fields(webhook=endpoint_id, delivery=delivery_id))
        return None


def reschedule_stored_delivery(delivery_json: str, next_attempt_at: datetime) -> str:
    """Return the JSON text of a stored delivery with a new time of the next attempt; the lease does not change.

    Other values are not parsed, because a newer version of the service possibly stored them.
    """
    time = format_rfc3339(next_attempt_at)
    return json.dumps({**json.loads(delivery_json), "next_attempt_at": time, "scheduled_at": time}, ensure_ascii=False)


def build_delivery_id(endpoint_id: str, event_key: str) -> str:
    """Compute a delivery's id from the endpoint's id and the event's key; an event published again has the same id."""
    digest = hashlib.sha256(f"{endpoint_id}\n{event_key}".encode()).digest()[:20]
    return "msg_" + b32encode(digest).decode().lower()
