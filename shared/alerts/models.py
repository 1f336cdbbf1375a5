"""Models of alerts, and of the stored states of alert rules."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from pydantic import AwareDatetime, BaseModel, ConfigDict

from shared.catalog.alert_rule_models import Severity

type Labels = Mapping[str, str | None]
"""Values of the groupBy columns of a threshold rule, or `connection` of an absence rule."""

type Number = int | float


class AlertState(StrEnum):
    """State of an alert: pending, firing or resolved."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class RuleStatus(StrEnum):
    """Status of an alert rule in replies of the API."""

    OK = "ok"
    PENDING = "pending"
    FIRING = "firing"
    ERROR = "error"


class Mark(StrEnum):
    """Event about a stored alert that is not yet published.

    A mark is removed after its event is published, so a crash loses no event. An acknowledgement has a mark only if the
    workspace had provenance (audit chains) at that time.
    """

    FIRING = "firing"
    """Publish that the alert fires."""

    RESOLVED = "resolved"
    """Publish that the alert is resolved."""

    ACKNOWLEDGED = "acknowledged"
    """Append the audit event of the acknowledgement."""


class Alert(BaseModel):
    """Alert for one group of a rule's data; it exists from the time when the group first meets the rule's condition.

    Attributes:
        id: unique id; if the condition ends and later holds again, a new alert is created.
        rule: lookup (id in URLs) of the alert rule.
        name: name of the rule when the alert began to fire; ``severity``, ``surface`` and ``runbook_url`` are also
            values of the rule at that time.
        value: group's value in the newest evaluation; for rules with more than 100 alerts, the value at the alert's
            last change of state.
        started_at: time at which the condition began to hold.
        message_count: number of messages of the connection before the newest evaluation of an absence rule; None for a
            threshold rule, and for an alert that an earlier version of the service stored.
        marks: events about the alert that are not yet published; see :class:`Mark`.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    rule: str
    name: str
    severity: Severity
    surface: str
    runbook_url: str | None
    labels: dict[str, str | None]
    connection: str | None = None
    message_count: int | None = None
    state: AlertState
    value: int | float | None
    started_at: AwareDatetime
    fired_at: AwareDatetime | None = None
    resolved_at: AwareDatetime | None = None
    acknowledged_by: str | None = None
    acknowledged_at: AwareDatetime | None = None
    comment: str | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def is_active(self) -> bool:
        """True if the alert is pending or firing."""
        return self.state is not AlertState.RESOLVED

    def copy_with_changes(self, **changes: object) -> Self:
        """Return a copy of the alert with changed attributes."""
        return self.model_copy(update=changes)

    def copy_without_marks(self, *marks: Mark) -> Self:
        """Return a copy of the alert without the given marks, because their events are published."""
        return self.copy_with_changes(marks=tuple(mark for mark in self.marks if mark not in marks))


class RuleState(BaseModel):
    """Stored result of the newest evaluation of a rule.

    Attributes:
        rule: lookup (id in URLs) of the alert rule.
        revision: revision of the definition that was evaluated.
        condition_digest: digest of the data source and the condition that the active alerts met; empty in a state that
            an earlier version of the service stored.
        due_at: time of the next evaluation.
        error: reason why the newest evaluation failed; None if it succeeded.
        error_alert: alert that notifies about failed evaluations; it is not in the list of alerts.
        firing: number of firing alerts.
        pending: number of pending alerts.
        has_marks: True if an alert of this rule has marks: events that are not yet published.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    revision: str
    condition_digest: str = ""
    evaluated_at: AwareDatetime | None = None
    due_at: AwareDatetime
    error: str | None = None
    error_alert: Alert | None = None
    firing: int = 0
    pending: int = 0
    has_marks: bool = False

    @property
    def status(self) -> RuleStatus:
        """Status of the rule, derived from its errors and alerts."""
        if self.error is not None:
            return RuleStatus.ERROR
        if self.firing:
            return RuleStatus.FIRING
        return RuleStatus.PENDING if self.pending else RuleStatus.OK

    @property
    def is_idle(self) -> bool:
        """True if the rule has no active alert, no error and no unpublished event."""
        return not (self.firing or self.pending or self.has_marks or self.error_alert or self.error)
