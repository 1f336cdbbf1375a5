"""Operations of the Durable Task API on orchestration instances, such as start, list, terminate, suspend and purge."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from emulators.durable import events, rows, store
from emulators.durable.clock import Clock
from emulators.durable.events import EventType
from emulators.durable.records import (
    ENDED,
    Instance,
    JsonText,
    MessageKind,
    NewInstance,
    OrchestrationStatus,
    create_random_id,
)
from emulators.durable.store import OrchestrationStore
from shared.timestamps import format_rfc3339


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """Filter for orchestration instances by start time, status and id prefix; None or empty matches every instance."""

    created_from: datetime | None = None
    created_to: datetime | None = None
    statuses: Collection[OrchestrationStatus] = ()
    prefix: str = ""


class _InstanceCondition(NamedTuple):
    """Condition of an SQL query, and the values of its placeholders."""

    sql: str
    values: tuple[str, ...]


class Management:
    """Operations of the Durable Task API; each change is stored on disk before its method returns."""

    def __init__(self, orchestrations: OrchestrationStore, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = orchestrations.database
        self._clock = clock
        self._wake = wake

    async def try_start_instance(self, new_instance: NewInstance) -> bool:
        """Start an orchestration instance; return False if an instance with the same id has not ended."""
        at = self._clock.now()
        started = await self._database.write(lambda connection: rows.try_start_instance(connection, new_instance, at))
        self._wake()
        return started

    async def find_instance(self, instance_id: str) -> Instance | None:
        """Return an orchestration instance; None if the id is unknown."""
        return await self._database.read(lambda connection: rows.find_instance(connection, instance_id))

    async def wait_for_ended_instance(
        self, instance_id: str, timeout_seconds: float, poll_seconds: float
    ) -> Instance | None:
        """Wait until an instance has ended and return it; None after the timeout, or if the id is unknown.

        The instance is read every ``poll_seconds`` seconds.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while True:
                    found = await self.find_instance(instance_id)
                    if found is None or found.status.has_ended:
                        return found
                    await asyncio.sleep(poll_seconds)
        return None

    async def load_history_events(self, instance_id: str) -> list[JsonText]:
        """Return the history events of an instance, oldest first."""
        query = "SELECT event FROM history WHERE instance = ? ORDER BY number"
        return await self._database.read(
            lambda connection: [row[0] for row in connection.execute(query, (instance_id,))]
        )

    async def list_instance_page(
        self, instance_filter: InstanceFilter, after_instance_id: str, limit: int
    ) -> list[Instance]:
        """Return up to ``limit`` instances whose ids follow ``after_instance_id``, sorted by id."""
        condition, values = _build_filter_condition(instance_filter)
        query = f"SELECT {rows.COLUMNS} FROM instances WHERE {condition} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608  constants
        return await self._database.read(
            lambda connection: [
                rows.instance_from_row(row) for row in connection.execute(query, (*values, after_instance_id, limit))
            ]
        )

    async def raise_event_and_find_previous_status(
        self, instance_id: str, name: str, data_json: JsonText
    ) -> OrchestrationStatus | None:
        """Send an external event to an instance, unless the instance has ended.

        Return the previous status of the instance; None if the id is unknown.
        """

        def store_event(connection: sqlite3.Connection, at: datetime) -> None:
            rows.send_message(
                connection,
                instance_id,
                MessageKind.RAISED,
                events.build_event_raised(name, data_json, at),
                at,
                event_name_or_timer_id=name,
            )

        return await self._change_unless_ended_and_find_status(instance_id, store_event)

    async def terminate_and_find_previous_status(
        self, instance_id: str, output_json: JsonText | None
    ) -> OrchestrationStatus | None:
        """Terminate an instance and delete its pending activities, unless the instance has ended.

        Return the previous status of the instance; None if the id is unknown.
        """

        def store_termination(connection: sqlite3.Connection, at: datetime) -> None:
            _append_event(
                connection, instance_id, events.build_event(EventType.EXECUTION_TERMINATED, at, Input=output_json)
            )
            query = "UPDATE instances SET status = ?, output = ?, updated_at = ? WHERE id = ?"
            connection.execute(query, (OrchestrationStatus.TERMINATED, output_json, format_rfc3339(at), instance_id))
            for table in ("activities", "waits"):
                connection.execute(f"DELETE FROM {table} WHERE instance = ?", (instance_id,))  # noqa: S608  constants
            store.clean_up_ended_instance(connection, instance_id, at)

        return await self._change_unless_ended_and_find_status(instance_id, store_termination)

    async def suspend_and_find_previous_status(
        self, instance_id: str, reason: str | None
    ) -> OrchestrationStatus | None:
        """Suspend an instance: its orchestrator does not run until it is resumed; running activities continue.

        Return the previous status of the instance; None if the id is unknown.
        """
        return await self._store_status_and_event_unless_ended(
            instance_id, OrchestrationStatus.SUSPENDED, EventType.EXECUTION_SUSPENDED, reason
        )

    async def resume_and_find_previous_status(self, instance_id: str, reason: str | None) -> OrchestrationStatus | None:
        """Resume a suspended instance.

        Return the previous status of the instance; None if the id is unknown.
        """
        return await self._store_status_and_event_unless_ended(
            instance_id, OrchestrationStatus.RUNNING, EventType.EXECUTION_RESUMED, reason
        )

    async def purge_if_ended_and_find_status(self, instance_id: str) -> OrchestrationStatus | None:
        """Delete an instance if it has ended; return the status of the instance, or None if the id is unknown."""

        def delete_if_ended_and_find_status(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find_instance(connection, instance_id)
            if found is not None and found.status.has_ended:
                connection.execute("DELETE FROM instances WHERE id = ?", (instance_id,))
            return found.status if found is not None else None

        return await self._database.write(delete_if_ended_and_find_status)

    async def purge_and_count_matching_instances(self, instance_filter: InstanceFilter) -> int:
        """Delete all ended instances that match a filter; return the number of deleted instances."""
        statuses = ENDED.intersection(instance_filter.statuses) if instance_filter.statuses else ENDED
        condition, values = _build_filter_condition(replace(instance_filter, statuses=statuses))
        query = f"DELETE FROM instances WHERE {condition}"  # noqa: S608  constants
        if not statuses:
            return 0
        return await self._database.write(lambda connection: connection.execute(query, values).rowcount)

    async def restart_and_find_instance_id(self, instance_id: str, *, assign_new_id: bool) -> str | None:
        """Start an ended instance again with the same input.

        Return the id of the restarted instance; None if the id is unknown or the instance has not ended.

        Args:
            instance_id: id of the ended instance.
            assign_new_id: True to start a new instance with a new id, False to replace the ended instance.
        """
        found = await self.find_instance(instance_id)
        if found is None:
            return None
        restarted = replace(
            found.start,
            instance=create_random_id() if assign_new_id else instance_id,
            execution=create_random_id(),
            parent=None,
        )
        return restarted.instance if await self.try_start_instance(restarted) else None

    async def _store_status_and_event_unless_ended(
        self, instance_id: str, status: OrchestrationStatus, kind: EventType, reason: str | None
    ) -> OrchestrationStatus | None:
        def store_instance_status(connection: sqlite3.Connection, at: datetime) -> None:
            if connection.execute("SELECT 1 FROM history WHERE instance = ? LIMIT 1", (instance_id,)).fetchone():
                _append_event(connection, instance_id, events.build_event(kind, at, Reason=reason))
                to = status
            else:
                to = (
                    OrchestrationStatus.SUSPENDED
                    if status is OrchestrationStatus.SUSPENDED
                    else OrchestrationStatus.PENDING
                )
            query = "UPDATE instances SET status = ?, updated_at = ? WHERE id = ?"
            connection.execute(query, (to, format_rfc3339(at), instance_id))

        return await self._change_unless_ended_and_find_status(instance_id, store_instance_status)

    async def _change_unless_ended_and_find_status(
        self, instance_id: str, change: Callable[[sqlite3.Connection, datetime], None]
    ) -> OrchestrationStatus | None:
        """Call ``change`` in a write transaction, but only if the instance has not ended.

        Return the previous status of the instance; None if the id is unknown.
        """
        at = self._clock.now()

        def change_unless_ended_and_find_status(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find_instance(connection, instance_id)
            if found is not None and not found.status.has_ended:
                change(connection, at)
            return found.status if found is not None else None

        before = await self._database.write(change_unless_ended_and_find_status)
        self._wake()
        return before


def _append_event(connection: sqlite3.Connection, instance_id: str, event: events.Event) -> None:
    rows.append_history(connection, instance_id, [event])


def _build_filter_condition(instance_filter: InstanceFilter) -> _InstanceCondition:
    conditions: list[str] = ["TRUE"]
    values: list[str] = []
    if instance_filter.created_from is not None:
        conditions.append("created_at >= ?")
        values.append(format_rfc3339(instance_filter.created_from))
    if instance_filter.created_to is not None:
        conditions.append("created_at <= ?")
        values.append(format_rfc3339(instance_filter.created_to))
    if instance_filter.statuses:
        conditions.append(f"status IN ({', '.join('?' * len(instance_filter.statuses))})")
        values.extend(instance_filter.statuses)
    if instance_filter.prefix:
        conditions.append("substr(id, 1, length(?)) = ?")
        values.extend((instance_filter.prefix, instance_filter.prefix))
    return _InstanceCondition(" AND ".join(conditions), tuple(values))
