"""What clients do with orchestrations: start, find, list, raise events, end, suspend, purge and restart them."""

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
    """Which instances are meant; None and empty leave a condition out."""

    created_from: datetime | None = None
    created_to: datetime | None = None
    statuses: Collection[OrchestrationStatus] = ()
    prefix: str = ""


class Management:
    """Reads and changes orchestrations; each change is on disk when its call returns."""

    def __init__(self, orchestrations: OrchestrationStore, clock: Clock, wake: Callable[[], None]) -> None:
        """Take the store, the time, and what to call after a change."""
        self._database = orchestrations.database
        self._clock = clock
        self._wake = wake

    async def start(self, new: NewInstance) -> bool:
        """Start an instance; return False when one of its id has not ended."""
        at = self._clock.now()
        started = await self._database.write(lambda connection: rows.start(connection, new, at))
        self._wake()
        return started

    async def find(self, instance: str) -> Instance | None:
        """Return an instance, None when there is none of this id."""
        return await self._database.read(lambda connection: rows.find(connection, instance))

    async def wait(self, instance: str, seconds: float, pause: float) -> Instance | None:
        """Return an instance once it has ended, None when it has not within so many seconds; look after each pause."""
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

    async def page(self, which: InstanceFilter, after: str, limit: int) -> list[Instance]:
        """Return up to so many instances whose ids follow the given one, by id."""
        condition, values = _build_condition(which)
        query = f"SELECT {rows.COLUMNS} FROM instances WHERE {condition} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608  constants
        return await self._database.read(
            lambda connection: [
                rows.instance_from_row(row) for row in connection.execute(query, (*values, after, limit))
            ]
        )

    async def raise_event(self, instance: str, name: str, data: str) -> OrchestrationStatus | None:
        """Raise an event, whose data is JSON text; return the status before, None when there is no such instance."""

        def change(connection: sqlite3.Connection, at: datetime) -> None:
            rows.send(connection, instance, MessageKind.RAISED, events.event_raised(name, data, at), at, name=name)

        return await self._change(instance, change)

    async def terminate(self, instance: str, output: str | None) -> OrchestrationStatus | None:
        """End an instance: what it has asked for and has not begun is dropped."""

        def change(connection: sqlite3.Connection, at: datetime) -> None:
            _note(connection, instance, events.event(EventType.EXECUTION_TERMINATED, at, Input=output))
            query = "UPDATE instances SET status = ?, output = ?, updated_at = ? WHERE id = ?"
            connection.execute(query, (OrchestrationStatus.TERMINATED, output, rfc3339(at), instance))
            for table in ("activities", "waits"):
                connection.execute(f"DELETE FROM {table} WHERE instance = ?", (instance,))  # noqa: S608  constants
            store.end(connection, instance, at)

        return await self._change(instance, change)

    async def suspend(self, instance: str, reason: str | None) -> OrchestrationStatus | None:
        """Let an instance take no turns until it is resumed; activities that run go on."""
        return await self._move(instance, OrchestrationStatus.SUSPENDED, EventType.EXECUTION_SUSPENDED, reason)

    async def resume(self, instance: str, reason: str | None) -> OrchestrationStatus | None:
        """Let a suspended instance go on."""
        return await self._move(instance, OrchestrationStatus.RUNNING, EventType.EXECUTION_RESUMED, reason)

    async def purge(self, instance: str) -> OrchestrationStatus | None:
        """Delete an instance that has ended; return its status, None when there is no such instance."""

        def work(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find(connection, instance)
            if found is not None and found.status.ended:
                connection.execute("DELETE FROM instances WHERE id = ?", (instance,))
            return found.status if found is not None else None

        return await self._database.write(work)

    async def purge_all(self, which: InstanceFilter) -> int:
        """Delete every instance that has ended and is meant; return how many."""
        statuses = ENDED.intersection(which.statuses) if which.statuses else ENDED
        condition, values = _build_condition(replace(which, statuses=statuses))
        query = f"DELETE FROM instances WHERE {condition}"  # noqa: S608  constants
        if not statuses:
            return 0
        return await self._database.write(lambda connection: connection.execute(query, values).rowcount)

    async def restart(self, instance: str, *, new_instance: bool) -> str | None:
        """Start an instance again with its input; return the id, None when there is none or it has not ended.

        Args:
            instance: its id.
            new_instance: whether under a new id, else in the place of the ended one.
        """
        found = await self.find(instance)
        if found is None:
            return None
        begun = replace(found.start, instance=new_id() if new_instance else instance, execution=new_id(), parent=None)
        return begun.instance if await self.start(begun) else None

    async def _move(
        self, instance: str, status: OrchestrationStatus, kind: EventType, reason: str | None
    ) -> OrchestrationStatus | None:
        def change(connection: sqlite3.Connection, at: datetime) -> None:
            if connection.execute("SELECT 1 FROM history WHERE instance = ? LIMIT 1", (instance,)).fetchone():
                _note(connection, instance, events.event(kind, at, Reason=reason))
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
        """Change an instance that has not ended; return the status before."""
        at = self._clock.now()

        def work(connection: sqlite3.Connection) -> OrchestrationStatus | None:
            found = rows.find(connection, instance)
            if found is not None and not found.status.ended:
                change(connection, at)
            return found.status if found is not None else None

        before = await self._database.write(work)
        self._wake()
        return before


def _note(connection: sqlite3.Connection, instance: str, event: events.Event) -> None:
    rows.append_history(connection, instance, [event])


def _build_condition(which: InstanceFilter) -> tuple[str, tuple[str, ...]]:
    conditions: list[str] = ["TRUE"]
    values: list[str] = []
    if which.created_from is not None:
        conditions.append("created_at >= ?")
        values.append(rfc3339(which.created_from))
    if which.created_to is not None:
        conditions.append("created_at <= ?")
        values.append(rfc3339(which.created_to))
    if which.statuses:
        conditions.append(f"status IN ({', '.join('?' * len(which.statuses))})")
        values.extend(which.statuses)
    if which.prefix:
        conditions.append("substr(id, 1, length(?)) = ?")
        values.extend((which.prefix, which.prefix))
    return " AND ".join(conditions), tuple(values)
