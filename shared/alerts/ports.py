"""Storage port of alerts and of the states of alert rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.alerts.models import Alert, AlertState, RuleState
from shared.catalog.alert_rule_models import Severity


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """Stored state and open alerts of an alert rule.

    Attributes:
        rule: lookup (id in URLs) of the alert rule.
        state: result of the newest evaluation; None before the first one.
        alerts: the pending and firing alerts, and the resolved alerts about which an event is not yet published (alerts
            with marks).
        token: opaque token of the stored version; empty if nothing is stored.
    """

    rule: str
    state: RuleState | None = None
    alerts: tuple[Alert, ...] = ()
    token: str = ""


@dataclass(frozen=True, slots=True)
class AlertPlace:
    """Position in the list of alerts, which is sorted by start time, newest first, and then by id."""

    started_at: str
    alert_id: str


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Filter of the list of alerts; an attribute that is None allows any value."""

    state: AlertState | None = None
    severity: Severity | None = None
    surface: str | None = None


class AlertStore(Protocol):
    """Storage of alerts and of the states of alert rules, shared by all instances of the service.

    Every method raises WorkspaceError UNAVAILABLE ``ALERTS_UNAVAILABLE`` if the store does not respond.
    """

    async def list_rule_states(self) -> Sequence[RuleState]:
        """Return the stored states of all alert rules, in any order."""
        ...

    async def load_rule_record(self, rule_lookup: str) -> RuleRecord:
        """Return the stored state and the open alerts of the rule with this lookup (id in URLs).

        The record has neither state nor alerts if nothing is stored.
        """
        ...

    async def try_save_rule_changes_and_return_token(
        self,
        record: RuleRecord,
        new_state: RuleState | None,
        changed_alerts: Sequence[Alert],
        deleted_alert_ids: Sequence[str] = (),
    ) -> str | None:
        """Store the state of an alert rule together with its new, changed and deleted alerts.

        Return the new token of the record. Return None and store nothing if another process has changed the record.

        The new state is stored last, because a store may need several transactions for many changes. If the process
        ends between them, only some of the alerts are stored; the stored state is then not idle, so the caller
        processes the rule again.

        Args:
            record: the record that the changes are based on.
            new_state: the new state; None deletes the state.
            changed_alerts: alerts to create or replace.
            deleted_alert_ids: ids of alerts to delete.
        """
        ...

    async def find_alert(self, alert_id: str) -> Alert | None:
        """Return the alert with this id; None if it does not exist."""
        ...

    async def list_alerts(self, alert_filter: AlertFilter, after: AlertPlace | None, limit: int) -> Sequence[Alert]:
        """Return a page of alerts, newest first.

        Args:
            alert_filter: conditions on the alerts.
            after: return only alerts after this position; None begins with the newest alert.
            limit: maximum number of alerts.
        """
        ...

    async def delete_and_count_resolved_alerts(self, resolved_before: datetime) -> int:
        """Delete alerts that were resolved before a time and have no marks (unpublished events); return their number.

        A store in which resolved alerts expire by themselves returns 0.
        """
        ...
