"""Operations of clients on orchestrations: start, find, list, raise events, terminate, suspend, purge, restart."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from emulators.durable import events, rows, store
from emulators.durable.clock import Clock
from emulators.durable.events import EventType
from emulators.durable.records import ENDED, Instance, MessageKind, NewInstance, OrchestrationStatus, new_id
from emulators.durable.store import OrchestrationStore
from shared.timestamps import rfc3339


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """Conditions on instances; None and empty values match all."""

    created_from: datetime | None = None
    created_to: datetime | None = None
    statuses: Collection[OrchestrationStatus] = ()
    prefix: str = ""


class Management:
    """Reads and changes of orchestrations; each change is on disk when its call returns."""

    def __init__(self, orchestrations: OrchestrationStore, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = orchestrations.database
        self._clock = clock
        self._wake = wake

    async def start(self, new: NewInstance) -> bool:
        """Start an instance; return False if an instance with its id has not ended."""
        at = self._clock.now()
        started = await self._database.write(lambda connection: rows.start(connection, new, at))
        self._wake()
        return started

    async def find(self, instance: str) -> Instance | None:
        """Return an instance, None if the id is unknown."""
        return await self._database.read(lambda connection: rows.find(connection, instance))

    async def wait(self, instance: str, seconds: float, pause: float) -> Instance | None:
        """Return an instance when it has ended, None after the given seconds; check again after each pause."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    found = await self.find(instance)
                    if found is None or found.status.ended:
                        return found
                    await asyncio.sleep(pause)
        return None

    async def history(self, instance: str) -> list[str]:
        """Return the events of an instance as JSON texts."""
        query = "SELECT event FROM history WHERE instance = ? ORDER BY number"
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(query, (instance,))])

    async def page(self, instance_filter: InstanceFilter, after: str, limit: int) -> list[Instance]:
        """Return up to ``limit`` instances with ids after the given one, sorted by id."""
        condition, values = _build_condition(instance_filter)
        query = f"SELECT {rows.COLUMNS} FROM instances WHERE {condition} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608  constants
        return await self._database.read(
            lambda connection: [
                rows.instance_from_row(row) for row in connection.execute(query, (*values, after, limit))
            ]
        )

    async def raise_event(self, instance: str, name: str, data: str) -> OrchestrationStatus | None:
        """Raise an event with JSON text as data; return the previous status, None if the instance is unknown."""

        def change(connection: sqlite3.Connection, at: datetime) -> None:
            rows.send(connection, instance, MessageKind.RAISED, events.event_raised(name, data, at), at, name=name)

        return await self._change(instance, change)

    async def terminate(self, instance: str, output: str | None) -> OrchestrationStatus | None:
        """Terminate an instance and drop its pending activities."""

        def change(connection: sqlite3.Connection, at: datetime) -> None:
            _append_event(connection, instance, events.event(EventType.EXECUTION_TERMINATED, at, Input=output))
            query = "UPDATE instances SET status = ?, output = ?, updated_at = ? WHERE id = ?"
            connection.execute(query, (OrchestrationStatus.TERMINATED, output, rfc3339(at), instance))
            for table in ("activities", "waits"):
                connection.execute(f"DELETE FROM {table} WHERE instance = ?", (instance,))  # noqa: S608  constants
            store.end(connection, instance, at)

        return await self._change(instance, change)

    async def suspend(self, instance: str, reason: str | None) -> OrchestrationStatus | None:
        """Stop the turns of an instance until it is resumed; running activities continue."""
        return await self._set_status(instance, OrchestrationStatus.SUSPENDED, EventType.EXECUTION_SUSPENDED, reason)

    async def resume(self, instance: str, reason: str | None) -> OrchestrationStatus | None:
        """Resume a suspended instance."""
        return await self._set_status(instance, OrchestrationStatus.RUNNING, EventType.EXECUTION_RESUMED, reason)

    async def purge(self, instance: str) -> OrchestrationStatus | None:
        """Delete an instance that has ended; return its status, None if the instance is unknown."""

        def work(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find(connection, instance)
            if found is not None and found.status.ended:
                connection.execute("DELETE FROM instances WHERE id = ?", (instance,))
            return found.status if found is not None else None

        return await self._database.write(work)

    async def purge_all(self, instance_filter: InstanceFilter) -> int:
        """Delete all ended instances that match a filter; return their number."""
        statuses = ENDED.intersection(instance_filter.statuses) if instance_filter.statuses else ENDED
        condition, values = _build_condition(replace(instance_filter, statuses=statuses))
        query = f"DELETE FROM instances WHERE {condition}"  # noqa: S608  constants
        if not statuses:
            return 0
        return await self._database.write(lambda connection: connection.execute(query, values).rowcount)

    async def restart(self, instance: str, *, new_instance: bool) -> str | None:
        """Restart an instance with its input; return the id, None if it is unknown or has not ended.

        Args:
            instance: its id.
            new_instance: whether it gets a new id; otherwise it replaces the ended instance.
        """
        found = await self.find(instance)
        if found is None:
            return None
        restarted = replace(
            found.start, instance=new_id() if new_instance else instance, execution=new_id(), parent=None
        )
        return restarted.instance if await self.start(restarted) else None

    async def _set_status(
        self, instance: str, status: OrchestrationStatus, kind: EventType, reason: str | None
    ) -> OrchestrationStatus | None:
        def change(connection: sqlite3.Connection, at: datetime) -> None:
            if connection.execute("SELECT 1 FROM history WHERE instance = ? LIMIT 1", (instance,)).fetchone():
                _append_event(connection, instance, events.event(kind, at, Reason=reason))
                to = status
            else:
                to = (
                    OrchestrationStatus.SUSPENDED
                    if status is OrchestrationStatus.SUSPENDED
                    else OrchestrationStatus.PENDING
                )
            query = "UPDATE instances SET status = ?, updated_at = ? WHERE id = ?"
            connection.execute(query, (to, rfc3339(at), instance))

        return await self._change(instance, change)

    async def _change(
        self, instance: str, change: Callable[[sqlite3.Connection, datetime], None]
    ) -> OrchestrationStatus | None:
        """Change an instance that has not ended; return its previous status."""
        at = self._clock.now()

        def work(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find(connection, instance)
            if found is not None and not found.status.ended:
                change(connection, at)
            return found.status if found is not None else None

        before = await self._database.write(work)
        self._wake()
        return before


def _append_event(connection: sqlite3.Connection, instance: str, event: events.Event) -> None:
    rows.append_history(connection, instance, [event])


def _build_condition(instance_filter: InstanceFilter) -> tuple[str, tuple[str, ...]]:
    conditions: list[str] = ["TRUE"]
    values: list[str] = []
    if instance_filter.created_from is not None:
        conditions.append("created_at >= ?")
        values.append(rfc3339(instance_filter.created_from))
    if instance_filter.created_to is not None:
        conditions.append("created_at <= ?")
        values.append(rfc3339(instance_filter.created_to))
    if instance_filter.statuses:
        conditions.append(f"status IN ({', '.join('?' * len(instance_filter.statuses))})")
        values.extend(instance_filter.statuses)
    if instance_filter.prefix:
        conditions.append("substr(id, 1, length(?)) = ?")
        values.extend((instance_filter.prefix, instance_filter.prefix))
    return " AND ".join(conditions), tuple(values)
