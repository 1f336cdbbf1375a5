"""In-memory alert store, webhook outbox, audit log, and builders for tests of alerts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.alerts.models import Alert, RuleState
from shared.alerts.ports import AlertFilter, AlertPlace, RuleRecord
from shared.catalog.models import AlertRule, Approval, Connection, ConnectionType, StoredWarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import Target
from shared.warm_queries.ports import Column
from shared.warm_queries.results import QueryResult
from shared.webhooks.events import WebhookEvent

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def build_rule(**changes: Any) -> AlertRule:
    """Return an alert rule: by default a threshold rule without groups, with the given fields changed."""
    fields: dict[str, Any] = {
        "lookup": "hot",
        "name": "Hot",
        "severity": "critical",
        "surface": "hall",
        "kind": "threshold",
        "every": "PT1M",
        "query": "temperatures",
        "condition": {"column": "value", "operator": "gt", "value": 5},
    }
    return AlertRule.model_validate({**fields, **changes})


def build_absence_rule(**changes: Any) -> AlertRule:
    """Return an absence rule (an alert rule about connections that send no messages)."""
    absence = {"lookup": "silent", "kind": "absence", "query": None, "condition": None}
    return build_rule(**{**absence, "connections": ["press"], "after": "PT5M", **changes})


def build_entry(rule: AlertRule, created_at: datetime = AT, updated_at: datetime = AT) -> CatalogEntry[AlertRule]:
    """Return the catalog entry of a rule, with its times of creation and change."""
    return CatalogEntry(rule, created_at, updated_at, "editor@t")


def build_catalog(*rules: CatalogEntry[AlertRule], version: int = 1, **changes: Any) -> Catalog:
    """Return a catalog with the given rules, the connection ``press`` and an approved query."""
    approval = Approval(approved_by="admin@t", approved_at=AT)
    query = StoredWarmQuery(lookup="temperatures", name="T", surface="hall", kql="Telemetry", approval=approval)
    press = Connection(lookup="press", name="Press", type=ConnectionType.CLOUD_EVENT_HUB)
    catalog = Catalog(
        version=version,
        connections={"press": CatalogEntry(press, AT, AT, "t")},
        queries={"temperatures": CatalogEntry(query, AT, AT, "t")},
        alert_rules={entry.value.lookup: entry for entry in rules},
    )
    return replace(catalog, **changes)


def build_result(*rows: Mapping[str, Any], truncated: bool = False, **types: str) -> QueryResult:
    """Return a query result, whose columns have the type real by default."""
    names = dict.fromkeys(name for row in rows for name in row) or {"value": None, "device": None}
    columns = tuple(Column(name, types.get(name, "real")) for name in names)
    return QueryResult("T", AT, columns, [dict(row) for row in rows], truncated, 1.0, None)


def build_unavailable_error() -> WorkspaceError:
    """Return the error of a store that does not respond."""
    return WorkspaceError(Kind.UNAVAILABLE, "ALERTS_UNAVAILABLE", "The store does not respond.")


class MemoryAlertStore:
    """In-memory implementation of the AlertStore port; a test can make operations fail.

    Attributes:
        failures: number of operations that raise an error before anything is stored.
        states: states by rule.
        alerts: alerts by id.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.states: dict[str, RuleState] = {}
        self.alerts: dict[str, Alert] = {}
        self._tokens: dict[str, str] = {}
        self._writes = 0

    async def list_rule_states(self) -> Sequence[RuleState]:
        """Return the stored states of all alert rules."""
        self._raise_error()
        return list(self.states.values())

    async def load_rule_record(self, rule_lookup: str) -> RuleRecord:
        """Return the stored record of an alert rule."""
        self._raise_error()
        if rule_lookup not in self.states:
            return RuleRecord(rule_lookup)
        alerts = tuple(one for one in self.alerts.values() if one.rule == rule_lookup and (one.is_active or one.marks))
        return RuleRecord(rule_lookup, self.states[rule_lookup], alerts, self._tokens[rule_lookup])

    async def try_save_rule_changes_and_return_token(
        self,
        record: RuleRecord,
        new_state: RuleState | None,
        changed_alerts: Sequence[Alert],
        deleted_alert_ids: Sequence[str] = (),
    ) -> str | None:
        """Store a changed record, unless it was changed meanwhile."""
        self._raise_error()
        if self._tokens.get(record.rule, "") != record.token:
            return None
        self._writes += 1
        self.alerts |= {alert.id: alert for alert in changed_alerts}
        for alert_id in deleted_alert_ids:
            del self.alerts[alert_id]
        self.states.pop(record.rule, None)
        self._tokens.pop(record.rule, None)
        if new_state is not None:
            self.states[record.rule] = new_state
            self._tokens[record.rule] = f"token {self._writes}"
        return f"token {self._writes}"

    async def find_alert(self, alert_id: str) -> Alert | None:
        """Return an alert."""
        self._raise_error()
        return self.alerts.get(alert_id)

    async def list_alerts(self, wanted: AlertFilter, after: AlertPlace | None, limit: int) -> Sequence[Alert]:
        """Return all stored alerts, in no particular order."""
        del wanted, after
        return list(self.alerts.values())[:limit]

    async def delete_and_count_resolved_alerts(self, resolved_before: datetime) -> int:
        """Do nothing, because no test needs the expiry."""
        del resolved_before
        return 0

    def _raise_error(self) -> None:
        if self.failures:
            self.failures -= 1
            raise build_unavailable_error()


class ListOutbox:
    """Fake webhook outbox that collects events, each key once; a test can make calls fail.

    Attributes:
        failures: number of calls that fail.
        events: published events by key, in order.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.events: dict[str, WebhookEvent] = {}

    async def publish(self, events: Sequence[WebhookEvent]) -> None:
        """Collect webhook events, each key once."""
        if self.failures:
            self.failures -= 1
            raise build_unavailable_error()
        for event in events:
            self.events.setdefault(event.key, event)

    def list_transitions(self) -> list[tuple[str, str]]:
        """Return the type and the rule of each published event, in order."""
        return [(event.type.value, event.data["rule"]) for event in self.events.values()]


class ListAuditLog:
    """Fake audit log that collects events, each append id once; a test can make calls fail.

    Attributes:
        failures: number of calls that fail.
        events: appended events by append id.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.events: dict[str, dict[str, Any]] = {}

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Collect an audit event."""
        if self.failures:
            self.failures -= 1
            raise build_unavailable_error()
        record = {"Target": target, "ScopeKey": scope_key, "UserID": user_id, **event}
        return self.events.setdefault(append_id, record)
