"""Functions that read and write orchestration instances in an open SQLite transaction."""

import json
import sqlite3
from datetime import datetime
from typing import Any

from emulators.durable import events
from emulators.durable.events import Event
from emulators.durable.records import ENDED, Instance, MessageKind, NewInstance, OrchestrationStatus, Parent
from shared.timestamps import format_rfc3339, parse_rfc3339

COLUMNS = (
    "id, execution, name, version, input, parent_id, parent_execution, parent_task, status, output, custom_status, "
    "created_at, updated_at"
)


def instance_from_row(row: tuple[Any, ...]) -> Instance:
    """Convert a database row with the columns ``COLUMNS`` to an orchestration instance."""
    parent = Parent(row[5], row[6], row[7]) if row[5] is not None else None
    start = NewInstance(row[0], row[1], row[2], row[3], row[4], parent)
    return Instance(start, OrchestrationStatus(row[8]), row[9], row[10], parse_rfc3339(row[11]), parse_rfc3339(row[12]))


def find_instance(connection: sqlite3.Connection, instance_id: str) -> Instance | None:
    """Return an orchestration instance; None if the id is unknown."""
    row = connection.execute(f"SELECT {COLUMNS} FROM instances WHERE id = ?", (instance_id,)).fetchone()  # noqa: S608  constants
    return instance_from_row(row) if row else None


def try_start_instance(connection: sqlite3.Connection, new_instance: NewInstance, at: datetime) -> bool:
    """Store a new orchestration instance; replace an ended instance with the same id.

    Return False if an instance with this id has not ended.
    """
    found = find_instance(connection, new_instance.instance)
    if found is not None and not found.status.has_ended:
        return False
    connection.execute("DELETE FROM instances WHERE id = ?", (new_instance.instance,))
    parent = (
        (new_instance.parent.instance, new_instance.parent.execution, new_instance.parent.task)
        if new_instance.parent
        else (None, None, None)
    )
    connection.execute(
        "INSERT INTO instances (id, execution, name, version, input, status, created_at, updated_at, parent_id,"
        " parent_execution, parent_task) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new_instance.instance,
            new_instance.execution,
            new_instance.name,
            new_instance.version,
            new_instance.input,
            OrchestrationStatus.PENDING,
            format_rfc3339(at),
            format_rfc3339(at),
            *parent,
        ),
    )
    send_message(connection, new_instance.instance, MessageKind.START, {}, at)
    return True


def send_message(
    connection: sqlite3.Connection,
    instance_id: str,
    kind: MessageKind,
    event: Event,
    due: datetime,
    *,
    event_name_or_timer_id: str | None = None,
) -> None:
    """Store a message to an orchestration instance.

    Args:
        connection: connection with an open transaction.
        instance_id: id of the instance.
        kind: kind of the message.
        event: history event that the message adds when it is delivered.
        due: time of delivery for the message of a timer; all other messages are delivered as soon as possible.
        event_name_or_timer_id: name of the external event, or id of the timer; None for other kinds of messages.
    """
    connection.execute(
        "INSERT INTO messages (instance, kind, name, due, event) VALUES (?, ?, ?, ?, ?)",
        (instance_id, kind, event_name_or_timer_id, format_rfc3339(due), json.dumps(event)),
    )


def send_result_to_parent(connection: sqlite3.Connection, ended_instance: Instance, at: datetime) -> None:
    """Store the result of an ended sub-orchestration as a message to its caller, if the caller has not ended."""
    parent = ended_instance.start.parent
    if parent is None or not is_active_run(connection, parent.instance, parent.execution):
        return
    if ended_instance.status is OrchestrationStatus.COMPLETED:
        event = events.build_sub_orchestration_completed(parent.task, ended_instance.output, at)
    else:
        event = events.build_sub_orchestration_failed(parent.task, _format_failure_reason(ended_instance), at)
    send_message(connection, parent.instance, MessageKind.DONE, event, at)


def is_active_run(connection: sqlite3.Connection, instance_id: str, execution_id: str) -> bool:
    """Return whether a run of an instance is active: neither ended nor replaced by another run."""
    found = find_instance(connection, instance_id)
    return found is not None and found.start.execution == execution_id and found.status not in ENDED


def _format_failure_reason(ended_instance: Instance) -> str:
    output = json.loads(ended_instance.output) if ended_instance.output is not None else str(ended_instance.status)
    return f"Sub-orchestrator function '{ended_instance.start.name}' failed: {output}"


def append_history(connection: sqlite3.Connection, instance_id: str, new_events: list[Event]) -> None:
    """Append events to the history of an orchestration instance."""
    values = [(instance_id, json.dumps(event)) for event in new_events]
    connection.executemany("INSERT INTO history (instance, event) VALUES (?, ?)", values)
