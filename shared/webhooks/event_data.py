"""Data of each type of webhook event: its properties, a description for people and an example."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from shared.webhooks.events import WebhookEventType


class AlertEventData(TypedDict):
    """An alert that fires or is resolved."""

    alertId: str
    rule: str
    name: str
    severity: Literal["info", "warning", "critical"]
    state: str
    labels: dict[str, Any]
    value: float | None
    startedAt: datetime
    surface: str | None
    runbookUrl: str | None


class ConnectionEventData(TypedDict):
    """A connection whose status has changed."""

    connection: str
    before: Literal["CONNECTING", "CONNECTED", "DISCONNECTED", "ERROR"]
    after: Literal["CONNECTING", "CONNECTED", "DISCONNECTED", "ERROR"]
    lastMessage: datetime | None


class AmendmentEventData(TypedDict):
    """An amendment that is pending, approved or rejected; `decidedBy` is null if no person has decided."""

    scopeKey: str
    recordId: str
    entityType: str | None
    entityId: str | None
    reasonCategory: str | None
    amendedBy: str | None
    status: Literal["pending", "approved", "rejected"]
    decidedBy: str | None


class WarmQueryEventData(TypedDict):
    """A warm query that waits for approval, or was approved or rejected."""

    lookup: str
    name: str
    surface: str
    editedBy: str
    approvedBy: str | None


class DownloadEventData(TypedDict):
    """A download that was completed or has failed."""

    downloadId: str
    status: Literal["completed", "failed"]
    rows: int
    bytes: int


class BrokenChainEventData(TypedDict):
    """An audit chain in which the background verification found a fault."""

    target: str
    scopeKey: str | None
    brokenAt: str | None
    reason: str


class SuspiciousSignatureEventData(TypedDict):
    """A member whose signatures were refused several times."""

    userId: str
    attempts: int
    since: datetime


class WebhookTestEventData(TypedDict):
    """A test event that a person requested."""

    webhookId: str
    requestedBy: str


@dataclass(frozen=True, slots=True)
class EventDescription:
    """Documentation of a type of webhook event.

    Attributes:
        text: sentence that says when the event occurs.
        data: type of the event's property ``data``.
        example: example of the event's property ``data``.
    """

    text: str
    data: Any
    example: Mapping[str, Any]


_ALERT: Final = {
    "alertId": "5f0c6a1d9b3e4c7f",
    "rule": "chiller-hot",
    "name": "Chiller too hot",
    "severity": "critical",
    "state": "firing",
    "labels": {"device": "chiller-1"},
    "value": 9.4,
    "startedAt": "2026-01-05T08:00:00.000000Z",
    "surface": "cooling",
    "runbookUrl": "https://wiki.example/chiller",
}
_AMENDMENT: Final = {
    "scopeKey": "line-1",
    "recordId": "000000000007",
    "entityType": "Measurement",
    "entityId": "m-17",
    "reasonCategory": "sensor-drift",
    "amendedBy": "editor@plant-a.example",
    "status": "pending",
    "decidedBy": None,
}
_QUERY: Final = {
    "lookup": "pressure-5m",
    "name": "Pressure per five minutes",
    "surface": "cooling",
    "editedBy": "editor@plant-a.example",
    "approvedBy": None,
}
DESCRIPTIONS: Final[Mapping[WebhookEventType, EventDescription]] = {
    WebhookEventType.ALERT_FIRING: EventDescription("An alert begins to fire.", AlertEventData, _ALERT),
    WebhookEventType.ALERT_RESOLVED: EventDescription(
        "An alert is resolved.", AlertEventData, {**_ALERT, "state": "resolved"}
    ),
    WebhookEventType.CONNECTION_STATUS_CHANGED: EventDescription(
        "The status of a connection changes.",
        ConnectionEventData,
        {
            "connection": "pump-rig",
            "before": "CONNECTED",
            "after": "DISCONNECTED",
            "lastMessage": "2026-01-05T08:00:00.000000Z",
        },
    ),
    WebhookEventType.AMENDMENT_PENDING: EventDescription(
        "An amendment waits for approval.", AmendmentEventData, _AMENDMENT
    ),
    WebhookEventType.AMENDMENT_DECIDED: EventDescription(
        "An amendment was approved or rejected, or needs no approval.",
        AmendmentEventData,
        {**_AMENDMENT, "status": "approved", "decidedBy": "admin@plant-a.example"},
    ),
    WebhookEventType.WARM_QUERY_PENDING_APPROVAL: EventDescription(
        "A warm query was changed and waits for approval.", WarmQueryEventData, _QUERY
    ),
    WebhookEventType.WARM_QUERY_APPROVED: EventDescription(
        "A warm query was approved.", WarmQueryEventData, {**_QUERY, "approvedBy": "admin@plant-a.example"}
    ),
    WebhookEventType.WARM_QUERY_REJECTED: EventDescription(
        "The draft of a warm query was rejected.", WarmQueryEventData, _QUERY
    ),
    WebhookEventType.DOWNLOAD_COMPLETED: EventDescription(
        "A download was completed or has failed.",
        DownloadEventData,
        {"downloadId": "0b6f7c1e5d2a4f38", "status": "completed", "rows": 86400, "bytes": 1843200},
    ),
    WebhookEventType.AUDIT_CHAIN_BROKEN: EventDescription(
        "The verification in the background found a broken audit chain; repeated once a day while it is broken.",
        BrokenChainEventData,
        {
            "target": "DomainEvents",
            "scopeKey": "line-1",
            "brokenAt": "000000000042",
            "reason": "000000000042 does not match its hash",
        },
    ),
    WebhookEventType.SIGNATURE_SUSPICIOUS: EventDescription(
        "Signatures of a member were refused several times.",
        SuspiciousSignatureEventData,
        {"userId": "editor@plant-a.example", "attempts": 5, "since": "2026-01-05T08:00:00.000000Z"},
    ),
    WebhookEventType.WEBHOOK_TEST: EventDescription(
        "A person sent a test to this webhook, whatever its event types.",
        WebhookTestEventData,
        {"webhookId": "3b1f8e0c7a5d4e2f9c6b8a7d5e4f3c2b", "requestedBy": "admin@plant-a.example"},
    ),
}
