"""Documentation of replies about alerts."""

from datetime import datetime
from typing import Final, NotRequired, TypedDict

from shared.alerts.models import AlertState
from shared.catalog.alert_rule_models import Severity
from shared.http.operation_docs import IDEMPOTENT, DocumentedReply, OperationDocs


class AlertDescription(TypedDict):
    """An alert: one group of a rule, from the time when its condition began to hold until the condition ended."""

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
LISTED = OperationDocs((DocumentedReply(200, "The alerts.", AlertList, {"alerts": [_ALERT]}),))
ACKNOWLEDGED = OperationDocs(
    (DocumentedReply(200, "The acknowledged alert.", AlertDescription, _ALERT),),
    error_statuses=(404, 409),
    example={"comment": "The valve is being replaced"},
    headers=IDEMPOTENT,
)
