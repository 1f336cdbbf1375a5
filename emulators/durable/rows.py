"""SQL statements on orchestrations within a transaction."""

import json
import sqlite3
from datetime import datetime
from typing import Any

from emulators.durable import events
from emulators.durable.events import Event
from emulators.durable.records import ENDED, Instance, MessageKind, NewInstance, OrchestrationStatus, Parent
from shared.timestamps import parse_rfc3339, rfc3339

COLUMNS = (
    "id, execution, name, version, input, parent_id, parent_execution, parent_task, status, output, custom_status, "
    "created_at, updated_at"
)


def instance_from_row(row: tuple[Any, ...]) -> Instance:
    """Return the instance of a row with ``COLUMNS``."""
    parent = Parent(row[5], row[6], row[7]) if row[5] is not None else None
    start = NewInstance(row[0], row[1], row[2], row[3], row[4], parent)
    return Instance(start, OrchestrationStatus(row[8]), row[9], row[10], parse_rfc3339(row[11]), parse_rfc3339(row[12]))


def find(connection: sqlite3.Connection, instance: str) -> Instance | None:
    """Return an instance, None if the id is unknown."""
    row = connection.execute(f"SELECT {COLUMNS} FROM instances WHERE id = ?", (instance,)).fetchone()  # noqa: S608  constants
    return instance_from_row(row) if row else None


def start(connection: sqlite3.Connection, new: NewInstance, at: datetime) -> bool:
    """Add an instance and replace an ended one; return False if an instance with this id has not ended."""
    found = find(connection, new.instance)
    if found is not None and not found.status.ended:
        return False
    connection.execute("DELETE FROM instances WHERE id = ?", (new.instance,))
    parent = (new.parent.instance, new.parent.execution, new.parent.task) if new.parent else (None, None, None)
    connection.execute(
        "INSERT INTO instances (id, execution, name, version, input, status, created_at, updated_at, parent_id,"
        " parent_execution, parent_task) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.instance,
            new.execution,
            new.name,
            new.version,
            new.input,
            OrchestrationStatus.PENDING,
            rfc3339(at),
            rfc3339(at),
            *parent,
        ),
    )
    send(connection, new.instance, MessageKind.START, {}, at)
    return True


def send(
    connection: sqlite3.Connection,
    instance: str,
    kind: MessageKind,
    event: Event,
    due: datetime,
    *,
    name: str | None = None,
) -> None:
    """Add a message; a timer message takes effect at its due time, others immediately."""
    connection.execute(
        "INSERT INTO messages (instance, kind, name, due, event) VALUES (?, ?, ?, ?, ?)",
        (instance, kind, name, rfc3339(due), json.dumps(event)),
    )


def notify_parent(connection: sqlite3.Connection, ended: Instance, at: datetime) -> None:
    """Send the result of an ended sub-orchestration to its caller, if that run is still active."""
    parent = ended.start.parent
    if parent is None or not is_active_run(connection, parent.instance, parent.execution):
        return
    if ended.status is OrchestrationStatus.COMPLETED:
        event = events.sub_orchestration_completed(parent.task, ended.output, at)
    else:
        event = events.sub_orchestration_failed(parent.task, _reason(ended), at)
    send(connection, parent.instance, MessageKind.DONE, event, at)


def is_active_run(connection: sqlite3.Connection, instance: str, execution: str) -> bool:
    """Return whether this run of an instance is still active."""
    found = find(connection, instance)
    return found is not None and found.start.execution == execution and found.status not in ENDED


def _reason(ended: Instance) -> str:
    output = json.loads(ended.output) if ended.output is not None else str(ended.status)
    return f"Sub-orchestrator function '{ended.start.name}' failed: {output}"


def append_history(connection: sqlite3.Connection, instance: str, new_events: list[Event]) -> None:
    """Append events to a history."""
    values = [(instance, json.dumps(event)) for event in new_events]
    connection.executemany("INSERT INTO history (instance, event) VALUES (?, ?)", values)
