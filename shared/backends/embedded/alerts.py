"""Alerts and the states of alert rules in SQLite."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from shared.alerts.models import Alert, RuleState
from shared.alerts.ports import AlertFilter, AlertPlace, RuleRecord
from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.timestamps import format_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS alert_rule_states (
  rule TEXT PRIMARY KEY, token TEXT NOT NULL, state TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS alerts (
  id TEXT PRIMARY KEY, rule TEXT NOT NULL, is_open INTEGER NOT NULL, state TEXT NOT NULL, severity TEXT NOT NULL,
  surface TEXT NOT NULL, started_at TEXT NOT NULL, resolved_at TEXT, alert TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_alerts ON alerts (rule) WHERE is_open;
CREATE INDEX IF NOT EXISTS alerts_by_start ON alerts (started_at, id);
CREATE INDEX IF NOT EXISTS alerts_by_state ON alerts (state, started_at, id);
CREATE INDEX IF NOT EXISTS resolved_alerts ON alerts (resolved_at) WHERE NOT is_open;
"""


class SqliteAlertStore:
    """Implementation of AlertStore: stores alerts and the states of alert rules in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def list_rule_states(self) -> Sequence[RuleState]:
        def select_states(connection: sqlite3.Connection) -> list[RuleState]:
            rows = connection.execute("SELECT state FROM alert_rule_states")
            return [RuleState.model_validate_json(state) for (state,) in rows]

        with _convert_sqlite_errors():
            return await self._database.read(select_states)

    async def load_rule_record(self, rule_lookup: str) -> RuleRecord:
        def select_rule_state(connection: sqlite3.Connection) -> RuleRecord:
            sql = "SELECT token, state FROM alert_rule_states WHERE rule = ?"
            stored = connection.execute(sql, (rule_lookup,)).fetchone()
            if stored is None:
                return RuleRecord(rule_lookup)
            rows = connection.execute("SELECT alert FROM alerts WHERE rule = ? AND is_open ORDER BY id", (rule_lookup,))
            alerts = tuple(Alert.model_validate_json(alert) for (alert,) in rows)
            return RuleRecord(rule_lookup, RuleState.model_validate_json(stored[1]), alerts, stored[0])

        with _convert_sqlite_errors():
            return await self._database.read(select_rule_state)

    async def try_save_rule_changes_and_return_token(
        self,
        record: RuleRecord,
        new_state: RuleState | None,
        changed_alerts: Sequence[Alert],
        deleted_alert_ids: Sequence[str] = (),
    ) -> str | None:
        token = self._database.runtime.new_id()

        def save_changes_and_return_token(connection: sqlite3.Connection) -> str | None:
            stored = connection.execute("SELECT token FROM alert_rule_states WHERE rule = ?", (record.rule,)).fetchone()
            if (stored[0] if stored else "") != record.token:
                return None
            connection.executemany(
                "INSERT OR REPLACE INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_alert_to_row, changed_alerts)
            )
            connection.executemany("DELETE FROM alerts WHERE id = ?", [(alert_id,) for alert_id in deleted_alert_ids])
            if new_state is None:
                connection.execute("DELETE FROM alert_rule_states WHERE rule = ?", (record.rule,))
            else:
                row = (record.rule, token, new_state.model_dump_json())
                connection.execute("INSERT OR REPLACE INTO alert_rule_states VALUES (?, ?, ?)", row)
            return token

        with _convert_sqlite_errors():
            return await self._database.write(save_changes_and_return_token)

    async def find_alert(self, alert_id: str) -> Alert | None:
        def select_alert(connection: sqlite3.Connection) -> Alert | None:
            row = connection.execute("SELECT alert FROM alerts WHERE id = ?", (alert_id,)).fetchone()
            return None if row is None else Alert.model_validate_json(row[0])

        with _convert_sqlite_errors():
            return await self._database.read(select_alert)

    async def list_alerts(self, alert_filter: AlertFilter, after: AlertPlace | None, limit: int) -> Sequence[Alert]:
        conditions: list[str] = []
        values: list[str | int] = []
        for column, value in (
            ("state", alert_filter.state),
            ("severity", alert_filter.severity),
            ("surface", alert_filter.surface),
        ):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(str(value))
        if after is not None:
            conditions.append("(started_at, id) < (?, ?)")
            values += [after.started_at, after.alert_id]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = f"SELECT alert FROM alerts{where} ORDER BY started_at DESC, id DESC LIMIT ?"  # noqa: S608  our own names

        def select_alerts(connection: sqlite3.Connection) -> list[Alert]:
            rows = connection.execute(sql, (*values, limit))
            return [Alert.model_validate_json(alert) for (alert,) in rows]

        with _convert_sqlite_errors():
            return await self._database.read(select_alerts)

    async def delete_and_count_resolved_alerts(self, resolved_before: datetime) -> int:
        sql = "DELETE FROM alerts WHERE NOT is_open AND resolved_at < ?"
        with _convert_sqlite_errors():
            return await self._database.write(
                lambda connection: connection.execute(sql, (format_rfc3339(resolved_before),)).rowcount
            )


def _alert_to_row(alert: Alert) -> tuple[str | int | None, ...]:
    return (
        alert.id,
        alert.rule,
        int(alert.is_active or bool(alert.marks)),
        alert.state.value,
        alert.severity.value,
        alert.surface,
        format_rfc3339(alert.started_at),
        None if alert.resolved_at is None else format_rfc3339(alert.resolved_at),
        alert.model_dump_json(),
    )


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("ALERTS_UNAVAILABLE", "the store of alerts")
