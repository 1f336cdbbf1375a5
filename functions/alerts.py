"""HTTP operations on alerts: list, acknowledge."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from functions.idempotency import make_idempotent
from functions.reply_docs import alerts as replies
from shared.alerts.models import Alert, AlertState
from shared.alerts.ports import AlertFilter, AlertPlace
from shared.auth.rights import AccessRight
from shared.catalog.alert_rule_models import Severity
from shared.catalog.models import Lookup
from shared.errors import ValidationErrors
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.provenance.cursors import ListCursor
from shared.timestamps import format_rfc3339
from shared.validation.whole_numbers import parse_whole_number
from shared.wiring import services

GROUP = Group("alerts")
MAX_LIMIT: Final = 1_000
_CURSOR: Final = ListCursor("alerts", (str, str), AlertPlace, ("state", "severity", "surface"))
_ALERT_SIZE: Final = 500
"""Estimated number of characters of one alert in a reply."""


def _parse_limit(text: Any) -> int:
    return parse_whole_number(text, MAX_LIMIT)


class AlertsQuery(BaseModel):
    """Query parameters of the list of alerts."""

    state: AlertState | None = Field(None, description="Only alerts in this state.")
    severity: Severity | None = Field(None, description="Only alerts of this severity.")
    surface: Lookup | None = Field(None, description="Only alerts of rules of this surface.")
    limit: Annotated[int, BeforeValidator(_parse_limit)] = Field(
        100, ge=1, le=MAX_LIMIT, description="Maximum number of alerts, 1 to 1000. Default: 100."
    )
    cursor: str | None = Field(None, description="`cursor` of the previous page. Default: the first page.")

    @property
    def alert_filter(self) -> AlertFilter:
        """Filter of the alerts, built from the query parameters."""
        return AlertFilter(self.state, self.severity, self.surface)

    @property
    def cursor_filter_text(self) -> str:
        """Values of all filters as one text, such as ``firing critical cooling``.

        The paging cursor contains this text, so that a cursor of a list with other filters is rejected.
        """
        return f"{self.state or ''} {self.severity or ''} {self.surface or ''}"


async def _check_alerts_page(call: Call[AlertsQuery], faults: ValidationErrors) -> None:
    _CURSOR.add_cursor_error_if_invalid(faults, call.query.cursor, call.query.cursor_filter_text)


@GROUP.endpoint(
    "GET",
    "oi-api/alerts",
    right=AccessRight.ALERT_READ,
    query=AlertsQuery,
    check=_check_alerts_page,
    docs=replies.ALERTS_LISTED,
)
async def list_alerts(call: Call[AlertsQuery]) -> Reply:
    """Return alerts, newest first."""
    query = call.query
    after = _CURSOR.decode(query.cursor, query.cursor_filter_text)
    page, has_more = await services().alerts.service.list_alerts(query.alert_filter, after, query.limit)
    cursor = {}
    if has_more:
        cursor["cursor"] = _CURSOR.encode(query.cursor_filter_text, (format_rfc3339(page[-1].started_at), page[-1].id))

    def build_reply() -> Reply:
        return build_json_reply({"alerts": [alert_to_json(alert) for alert in page], **cursor})

    return await services().runtime.run_in_thread_if_large(len(page) * _ALERT_SIZE, build_reply)


class AcknowledgementBody(BaseModel):
    """Request body that acknowledges an alert."""

    comment: Annotated[str, StringConstraints(strict=True, max_length=4_000)] | None = None


@GROUP.endpoint(
    "POST",
    "oi-api/alerts/{id}/acknowledge",
    right=AccessRight.ALERT_MANAGE,
    requires_user=True,
    body=AcknowledgementBody,
    docs=replies.ALERT_ACKNOWLEDGED,
)
@make_idempotent
async def acknowledge_alert(call: Call[Any, AcknowledgementBody]) -> Reply:
    """Record that a person has seen an alert; a repetition changes nothing."""
    alert = await services().alerts.service.acknowledge(call.path["id"], call.principal.member_id, call.body.comment)
    return build_json_reply(alert_to_json(alert))


def alert_to_json(alert: Alert) -> dict[str, Any]:
    """Convert an alert to the JSON object of replies."""
    times = {"startedAt": alert.started_at, "firedAt": alert.fired_at, "resolvedAt": alert.resolved_at}
    return {
        "id": alert.id,
        "rule": alert.rule,
        "name": alert.name,
        "labels": alert.labels,
        "state": alert.state,
        "severity": alert.severity,
        "surface": alert.surface,
        "value": alert.value,
        **{name: None if at is None else format_rfc3339(at) for name, at in times.items()},
        "acknowledgedBy": alert.acknowledged_by,
        "acknowledgedAt": None if alert.acknowledged_at is None else format_rfc3339(alert.acknowledged_at),
        "comment": alert.comment,
    }
