"""Documentation of the replies of the handler modules `alerts` and `webhooks`."""

from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict

from functions.conditions import CHANGE_CONDITIONS
from shared.alerts.models import AlertState
from shared.catalog.alert_rule_models import Severity
from shared.http.operation_docs import DEFINITION, IDEMPOTENT, NO_CONTENT, DocumentedReply, OperationDocs


class AlertDescription(TypedDict):
    """An alert: a period in which the condition of a rule holds for one group, such as one connection."""

    id: str
    rule: str
    name: str
    labels: dict[str, str | None]
    state: AlertState
    severity: Severity
    surface: str
    value: float | None
    startedAt: datetime
    firedAt: datetime | None
    resolvedAt: datetime | None
    acknowledgedBy: str | None
    acknowledgedAt: datetime | None
    comment: str | None


class AlertList(TypedDict):
    """A page of alerts; `cursor` is present if another page follows."""

    alerts: list[AlertDescription]
    cursor: NotRequired[str]


_ALERT: Final = {
    "id": "5f0c7a1e9b3d4f6a8c2e1d0b7a695847",
    "rule": "pressure-high",
    "name": "Pressure too high",
    "labels": {"DeviceId": "pump-1"},
    "state": "firing",
    "severity": "critical",
    "surface": "cooling",
    "value": 7.25,
    "startedAt": "2026-01-05T08:05:07.000000Z",
    "firedAt": "2026-01-05T08:10:07.000000Z",
    "resolvedAt": None,
    "acknowledgedBy": "editor@plant-a.example",
    "acknowledgedAt": "2026-01-05T08:12:00.000000Z",
    "comment": "The valve is being replaced",
}
ALERTS_LISTED = OperationDocs((DocumentedReply(200, "The alerts.", AlertList, {"alerts": [_ALERT]}),))
ALERT_ACKNOWLEDGED = OperationDocs(
    (DocumentedReply(200, "The acknowledged alert.", AlertDescription, _ALERT),),
    error_statuses=(404, 409),
    example={"comment": "The valve is being replaced"},
    headers=IDEMPOTENT,
)


class WebhookFilter(TypedDict):
    """Filter of a webhook's events by short names (lookups) and severities; a missing property restricts nothing."""

    surfaces: NotRequired[list[str]]
    connections: NotRequired[list[str]]
    severities: NotRequired[list[Literal["info", "warning", "critical"]]]


class Webhook(TypedDict):
    """A webhook endpoint. `disabledReason` is null unless the service disabled it; `etag` is the value for If-Match."""

    id: str
    url: str
    format: Literal["standard", "teams", "slack"]
    description: str | None
    eventTypes: list[str]
    filter: WebhookFilter
    enabled: bool
    createdAt: datetime
    createdBy: str
    disabledReason: str | None
    etag: str


class WebhookWithSecret(Webhook):
    """A webhook with its newest secret, which no other reply contains."""

    secret: str


class WebhookList(TypedDict):
    """The webhooks, oldest first."""

    webhooks: list[Webhook]


class DeliveryAttempt(TypedDict):
    """An attempt to send a delivery; `error` is null after a success, `reply` is the start of the reply's body."""

    at: datetime
    httpStatus: int | None
    error: str | None
    durationMs: int
    reply: str


class WebhookDelivery(TypedDict):
    """A delivery of an event; `id` equals the header `webhook-id`, `event` is the body in the format `standard`."""

    id: str
    webhookId: str
    eventType: str
    status: Literal["pending", "delivered", "failed"]
    attempts: list[DeliveryAttempt]
    nextAttemptAt: datetime | None
    createdAt: datetime
    event: dict[str, Any]


class WebhookDeliveryList(TypedDict):
    """A page of deliveries, newest first; `cursor` is null on the last page."""

    deliveries: list[WebhookDelivery]
    cursor: str | None


class WebhookEventTypeInfo(TypedDict):
    """A type of webhook events, with an example of the event's `data`."""

    type: str
    description: str
    example: dict[str, Any]


class WebhookEventTypeList(TypedDict):
    """List of all types of webhook events."""

    eventTypes: list[WebhookEventTypeInfo]


_ID: Final = "3b1f8e0c7a5d4e2f9c6b8a7d5e4f3c2b"
_DELIVERY_ID: Final = "msg_b2nq5tcyvxk4wdz7g3mhpf6rsajue2lo"
PATH: Final = {"id": {"type": "string", "minLength": 1, "maxLength": 64, "example": _ID}}
DELIVERY_PATH: Final = {
    **PATH,
    "deliveryId": {"type": "string", "minLength": 1, "maxLength": 64, "example": _DELIVERY_ID},
}
_SENT: Final = {
    "url": "https://hooks.example/plant-a",
    "format": "standard",
    "description": "Shift leader",
    "eventTypes": ["alert.firing", "alert.resolved"],
    "filter": {"surfaces": ["cooling"], "severities": ["critical"]},
    "enabled": True,
}
_WEBHOOK: Final = {
    "id": _ID,
    **_SENT,
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "createdBy": "admin@plant-a.example",
    "disabledReason": None,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
}
_WITH_SECRET: Final = {**_WEBHOOK, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}
_DELIVERY: Final = {
    "id": _DELIVERY_ID,
    "webhookId": _ID,
    "eventType": "webhook.test",
    "status": "delivered",
    "attempts": [
        {"at": "2026-01-05T08:00:01.000000Z", "httpStatus": 204, "error": None, "durationMs": 38, "reply": ""}
    ],
    "nextAttemptAt": None,
    "createdAt": "2026-01-05T08:00:01.000000Z",
    "event": {
        "type": "webhook.test",
        "timestamp": "2026-01-05T08:00:01.000000Z",
        "data": {"webhookId": _ID, "requestedBy": "admin@plant-a.example"},
    },
}
_TYPES: Final = {
    "eventTypes": [
        {
            "type": "download.completed",
            "description": "A download was completed or has failed.",
            "example": {"downloadId": "0b6f7c1e5d2a4f38", "status": "completed", "rows": 86400, "bytes": 1843200},
        }
    ]
}

WEBHOOKS_LISTED = OperationDocs((DocumentedReply(200, "The webhooks.", WebhookList, {"webhooks": [_WEBHOOK]}),))
WEBHOOK_READ = OperationDocs((DocumentedReply(200, "The webhook.", Webhook, _WEBHOOK, headers=DEFINITION),), path=PATH)
WEBHOOK_CREATED = OperationDocs(
    (DocumentedReply(201, "The new webhook with its secret.", WebhookWithSecret, _WITH_SECRET, headers=DEFINITION),),
    error_statuses=(409, 422),
    example=_SENT,
    headers=IDEMPOTENT,
)
WEBHOOK_PUT = OperationDocs(
    (DocumentedReply(200, "The changed webhook.", Webhook, _WEBHOOK, headers=DEFINITION),),
    error_statuses=(412,),
    example=_SENT,
    path=PATH,
    headers=CHANGE_CONDITIONS,
)
WEBHOOK_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(412,), path=PATH, headers=CHANGE_CONDITIONS)
SECRET_ROTATED = OperationDocs(
    (DocumentedReply(200, "The webhook with its new secret.", WebhookWithSecret, _WITH_SECRET, headers=DEFINITION),),
    error_statuses=(412, 422),
    path=PATH,
    headers={**CHANGE_CONDITIONS, **IDEMPOTENT},
)
SENT = OperationDocs(
    (DocumentedReply(202, "The delivery, which is sent in the background.", WebhookDelivery, _DELIVERY),),
    error_statuses=(409, 422),
    path=PATH,
    headers=IDEMPOTENT,
)
RETRIED = OperationDocs(
    (DocumentedReply(202, "The delivery, which is sent in the background.", WebhookDelivery, _DELIVERY),),
    error_statuses=(409, 422),
    path=DELIVERY_PATH,
    headers=IDEMPOTENT,
)
DELIVERIES = OperationDocs(
    (DocumentedReply(200, "The deliveries.", WebhookDeliveryList, {"deliveries": [_DELIVERY], "cursor": None}),),
    path=PATH,
)
EVENT_TYPES = OperationDocs((DocumentedReply(200, "The event types.", WebhookEventTypeList, _TYPES),))
