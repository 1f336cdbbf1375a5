"""Webhook endpoints and deliveries in SQLite."""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.timestamps import format_rfc3339
from shared.webhooks.models import (
    Delivery,
    DeliveryStatus,
    parse_stored_delivery_or_log_error,
    reschedule_stored_delivery,
)
from shared.webhooks.ports import DeliveryPlace

SCHEMA = """
CREATE TABLE IF NOT EXISTS webhook_documents (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS webhook_deliveries (
  endpoint TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, due_at TEXT,
  lease TEXT NOT NULL, expires_at TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (endpoint, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_due ON webhook_deliveries (endpoint, due_at)
  WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_creation ON webhook_deliveries (endpoint, created_at, id);
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_schedule ON webhook_deliveries
  (json_extract(content, '$.scheduled_at')) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_end ON webhook_deliveries (expires_at);
"""
_INSERT = "INSERT OR IGNORE INTO webhook_deliveries VALUES (?,?,?,?,?,?,?,?)"
_UPDATE = (
    "UPDATE webhook_deliveries SET status = ?, created_at = ?, due_at = ?, lease = ?, expires_at = ?, content = ? "
    "WHERE endpoint = ? AND id = ?"
)
_DELAY = "UPDATE webhook_deliveries SET due_at = ? WHERE endpoint = ? AND id = ?"
_RESCHEDULE = "UPDATE webhook_deliveries SET due_at = ?, content = ? WHERE endpoint = ? AND id = ?"


class SqliteWebhookStore:
    """Implementation of WebhookStore: stores webhook endpoints and deliveries in SQLite.

    Args:
        database: open database whose schema statements include :data:`SCHEMA`.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read_state_document(self, document_name: str) -> str | None:
        return await self._run_read(lambda connection: _find_state_document(connection, document_name))

    async def change_state_document(self, document_name: str, change: Callable[[str | None], str | None]) -> str | None:
        def replace_state_document(connection: sqlite3.Connection) -> str | None:
            before = _find_state_document(connection, document_name)
            after = change(before)
            if after is None:
                return before
            connection.execute("INSERT OR REPLACE INTO webhook_documents VALUES (?, ?)", (document_name, after))
            return after

        return await self._run_write(replace_state_document)

    async def add_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        def insert_deliveries(connection: sqlite3.Connection) -> None:
            connection.executemany(
                _INSERT, ((each.endpoint, each.id, *_delivery_to_columns(each)) for each in deliveries)
            )

        await self._run_write(insert_deliveries)

    async def find_due_endpoint_id(self, at: datetime, excluded_ids: Collection[str]) -> str | None:
        marks = ",".join("?" * len(excluded_ids))
        sql = f"SELECT endpoint FROM webhook_deliveries WHERE due_at <= ? AND endpoint NOT IN ({marks}) LIMIT 1"  # noqa: S608  marks

        def select_due_endpoint(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(sql, (format_rfc3339(at), *excluded_ids)).fetchone()
            return None if row is None else str(row[0])

        return await self._run_read(select_due_endpoint)

    async def claim_due_deliveries(
        self, endpoint_id: str, at: datetime, leased_until: datetime, lease_id: str, limit: int
    ) -> Sequence[Delivery]:
        sql = "SELECT id, content FROM webhook_deliveries WHERE endpoint = ? AND due_at <= ? ORDER BY due_at LIMIT ?"
        values = (endpoint_id, format_rfc3339(at), limit)

        def claim_deliveries(connection: sqlite3.Connection) -> list[Delivery]:
            claimed: list[Delivery] = []
            for delivery_id, content in connection.execute(sql, values).fetchall():
                found = parse_stored_delivery_or_log_error(endpoint_id, delivery_id, content)
                if found is None:
                    connection.execute(_DELAY, (format_rfc3339(leased_until), endpoint_id, delivery_id))
                    continue
                claimed.append(found.model_copy(update={"lease": lease_id, "scheduled_at": at}))
                _update_delivery(connection, claimed[-1], format_rfc3339(leased_until))
            return claimed

        return await self._run_write(claim_deliveries)

    async def reschedule_and_count_after_clock_setback(
        self, waiting_due_at: datetime, claimed_due_at: datetime, scheduled_after: datetime, limit: int
    ) -> int:
        sql = (
            "SELECT endpoint, id, lease, content FROM webhook_deliveries WHERE due_at IS NOT NULL "
            "AND json_extract(content, '$.scheduled_at') > ? LIMIT ?"
        )

        def reschedule_and_count_rows(connection: sqlite3.Connection) -> int:
            rows = connection.execute(sql, (format_rfc3339(scheduled_after), limit)).fetchall()
            for endpoint, delivery_id, lease, content in rows:
                values = (
                    format_rfc3339(claimed_due_at if lease else waiting_due_at),
                    reschedule_stored_delivery(content, waiting_due_at),
                )
                connection.execute(_RESCHEDULE, (*values, endpoint, delivery_id))
            return len(rows)

        return await self._run_write(reschedule_and_count_rows)

    async def try_save_claimed_delivery(self, delivery: Delivery, lease_id: str) -> bool:
        def try_save_delivery(connection: sqlite3.Connection) -> bool:
            sql = "SELECT lease FROM webhook_deliveries WHERE endpoint = ? AND id = ?"
            row = connection.execute(sql, (delivery.endpoint, delivery.id)).fetchone()
            if row is None or row[0] != lease_id:
                return False
            _update_delivery(connection, delivery, _format_due_time(delivery))
            return True

        return await self._run_write(try_save_delivery)

    async def change_delivery(
        self, endpoint_id: str, delivery_id: str, change: Callable[[Delivery], Delivery | None]
    ) -> Delivery | None:
        def replace_delivery(connection: sqlite3.Connection) -> Delivery | None:
            before = _find_delivery(connection, endpoint_id, delivery_id)
            after = None if before is None else change(before)
            if after is None:
                return before
            _update_delivery(connection, after, _format_due_time(after))
            return after

        return await self._run_write(replace_delivery)

    async def list_deliveries(
        self, endpoint_id: str, status: DeliveryStatus | None, after: DeliveryPlace | None, limit: int
    ) -> Sequence[Delivery]:
        conditions, values = ["endpoint = ?"], [endpoint_id]
        if status is not None:
            conditions, values = [*conditions, "status = ?"], [*values, status.value]
        if after is not None:
            conditions, values = [*conditions, "(created_at, id) < (?, ?)"], [*values, *after]
        sql = (
            f"SELECT id, content FROM webhook_deliveries WHERE {' AND '.join(conditions)} "  # noqa: S608  fixed texts
            "ORDER BY created_at DESC, id DESC"
        )

        def select_deliveries(connection: sqlite3.Connection) -> list[Delivery]:
            rows = connection.execute(sql, values)
            parsed = (parse_stored_delivery_or_log_error(endpoint_id, *row) for row in rows)
            return list(islice((each for each in parsed if each is not None), limit))

        return await self._run_read(select_deliveries)

    async def delete_and_count_expired_deliveries(self, at: datetime, limit: int) -> int:
        sql = (
            "DELETE FROM webhook_deliveries WHERE (endpoint, id) IN "
            "(SELECT endpoint, id FROM webhook_deliveries WHERE expires_at <= ? LIMIT ?)"
        )
        return await self._run_write(lambda connection: connection.execute(sql, (format_rfc3339(at), limit)).rowcount)

    async def _run_read[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with _convert_sqlite_errors():
            return await self._database.read(function)

    async def _run_write[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with _convert_sqlite_errors():
            return await self._database.write(function)


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("WEBHOOKS_UNAVAILABLE", "the store of webhooks")


def _find_state_document(connection: sqlite3.Connection, document_name: str) -> str | None:
    row = connection.execute("SELECT content FROM webhook_documents WHERE name = ?", (document_name,)).fetchone()
    return None if row is None else str(row[0])


def _find_delivery(connection: sqlite3.Connection, endpoint_id: str, delivery_id: str) -> Delivery | None:
    sql = "SELECT content FROM webhook_deliveries WHERE endpoint = ? AND id = ?"
    row = connection.execute(sql, (endpoint_id, delivery_id)).fetchone()
    return None if row is None else parse_stored_delivery_or_log_error(endpoint_id, delivery_id, row[0])


def _update_delivery(connection: sqlite3.Connection, delivery: Delivery, due_at: str | None) -> None:
    status, created_at, _, *others = _delivery_to_columns(delivery)
    connection.execute(_UPDATE, (status, created_at, due_at, *others, delivery.endpoint, delivery.id))


def _delivery_to_columns(delivery: Delivery) -> tuple[str | None, ...]:
    times = format_rfc3339(delivery.created_at), _format_due_time(delivery)
    return delivery.status, *times, delivery.lease, format_rfc3339(delivery.expires_at), delivery.model_dump_json()


def _format_due_time(delivery: Delivery) -> str | None:
    return None if delivery.next_attempt_at is None else format_rfc3339(delivery.next_attempt_at)
