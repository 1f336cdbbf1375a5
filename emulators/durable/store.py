"""Store of orchestrations in SQLite.

Each operation is one transaction, so that the data is consistent after a crash.
"""

import json
import sqlite3
from datetime import datetime

from emulators.durable import records, rows
from emulators.durable.events import Event, build_sub_orchestration_failed, build_timer_fired
from emulators.durable.ports import OrchestrationDatabase
from emulators.durable.records import (
    Activity,
    Instance,
    JsonText,
    MessageKind,
    OrchestrationMessage,
    OrchestrationStatus,
    PendingActivity,
    TaskId,
    TurnInput,
)
from emulators.durable.turns import Turn
from shared.timestamps import format_rfc3339, parse_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS instances (
    id TEXT PRIMARY KEY, execution TEXT NOT NULL, name TEXT NOT NULL, version TEXT, input TEXT, output TEXT,
    custom_status TEXT, status TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    parent_id TEXT, parent_execution TEXT, parent_task INTEGER, progress TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    event TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS history_of_instance ON history (instance, number);
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    kind TEXT NOT NULL, name TEXT, due TEXT NOT NULL, event TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS messages_of_instance ON messages (instance, due, number);
CREATE INDEX IF NOT EXISTS messages_due ON messages (kind, due);
CREATE TABLE IF NOT EXISTS waits (
    instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE, name TEXT NOT NULL,
    PRIMARY KEY (instance, name)
) STRICT;
CREATE TABLE IF NOT EXISTS activities (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    execution TEXT NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL, input TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS activities_of_instance ON activities (instance);
"""
"""Tables of the SQLite file.

The ``name`` of a message is an event name or a timer id; ``waits`` contains the names of the external events for which
an orchestrator waits.
"""

_BATCH = 200
"""Maximum number of messages that one turn (replay of the orchestrator function) delivers."""


class OrchestrationStore:
    """Store through which the engine reads and writes the SQLite file of orchestrations."""

    def __init__(self, database: OrchestrationDatabase) -> None:
        self.database = database

    async def close(self) -> None:
        """Wait for running transactions and close the SQLite file."""
        await self.database.close()

    async def list_ready_instance_ids(self, at: datetime, limit: int) -> list[str]:
        """Return the ids of up to ``limit`` instances with a message that can be delivered at the time ``at``."""
        return await self.database.read(
            lambda connection: [row[0] for row in connection.execute(_READY, (format_rfc3339(at), limit))]
        )

    async def find_next_due_time(self, at: datetime) -> datetime | None:
        """Return the earliest due time after ``at`` of the timers of all instances; None if no timer is due later."""
        query = "SELECT min(due) FROM messages WHERE kind = 'timer' AND due > ?"
        text = await self.database.read(
            lambda connection: connection.execute(query, (format_rfc3339(at),)).fetchone()[0]
        )
        return parse_rfc3339(text) if text else None

    async def find_next_turn_input(self, instance_id: str, at: datetime) -> TurnInput | None:
        """Return the input of an instance's next turn (replay); None if no message can be delivered to the instance."""
        return await self.database.read(lambda connection: _find_next_turn_input(connection, instance_id, at))

    async def try_commit_turn(self, turn_input: TurnInput, turn: Turn, at: datetime) -> bool:
        """Store the result of a turn (one replay of the orchestrator function), and return True.

        Store nothing and return False if this run of the instance has ended or was replaced, or if a message of the
        turn is no longer stored.
        """
        return await self.database.write(lambda connection: _try_commit_turn(connection, turn_input, turn, at))

    async def list_pending_activities(self, after_number: int, limit: int) -> list[PendingActivity]:
        """Return up to ``limit`` pending activities whose number is above ``after_number``, oldest first."""
        query = (
            "SELECT number, instance, execution, task, name, input FROM activities WHERE number > ?"
            " ORDER BY number LIMIT ?"
        )
        return await self.database.read(
            lambda connection: [
                PendingActivity(row[0], Activity(*row[1:])) for row in connection.execute(query, (after_number, limit))
            ]
        )

    async def store_activity_result(self, pending: PendingActivity, event: Event, at: datetime) -> None:
        """Store the result of an activity, unless its orchestration has ended or was restarted meanwhile."""
        await self.database.write(lambda connection: _store_activity_result(connection, pending, event, at))


_READY = """
SELECT instance FROM (
    SELECT instance FROM messages WHERE kind IN ('start', 'done')
    UNION SELECT instance FROM messages WHERE kind = 'timer' AND due <= ?
    UNION SELECT instance FROM waits JOIN messages USING (instance, name) WHERE messages.kind = 'raised'
) AS happened JOIN instances ON instances.id = happened.instance
WHERE instances.status IN ('Pending', 'Running') LIMIT ?
"""

_MESSAGES = """
SELECT number, kind, event FROM messages LEFT JOIN waits USING (instance, name)
WHERE instance = ? AND CASE kind WHEN 'timer' THEN due <= ? WHEN 'raised' THEN waits.name IS NOT NULL ELSE TRUE END
ORDER BY kind != 'start', due, number LIMIT ?
"""


def _find_next_turn_input(connection: sqlite3.Connection, instance_id: str, at: datetime) -> TurnInput | None:
    found = rows.find_instance(connection, instance_id)
    if found is None or found.status not in {OrchestrationStatus.PENDING, OrchestrationStatus.RUNNING}:
        return None
    given = connection.execute(_MESSAGES, (instance_id, format_rfc3339(at), _BATCH)).fetchall()
    progress = connection.execute("SELECT progress FROM instances WHERE id = ?", (instance_id,)).fetchone()[0]
    messages = _select_deliverable_messages(
        [OrchestrationMessage(row[0], MessageKind(row[1]), json.loads(row[2])) for row in given], progress
    )
    if not messages:
        return None
    query = "SELECT event FROM history WHERE instance = ? ORDER BY number"
    history = [row[0] for row in connection.execute(query, (instance_id,))]
    return TurnInput(found, history, progress, messages)


def _select_deliverable_messages(
    messages: list[OrchestrationMessage], progress_json: JsonText
) -> list[OrchestrationMessage]:
    """Return the messages that the next turn of an orchestration can deliver together.

    A result that can cause a retry is delivered alone, because the SDK assigns the task id of the retry when the SDK
    reads the result. An external event is delivered alone, so that continue-as-new does not lose unread events.
    """
    retried = _parse_retryable_task_ids(progress_json)
    taken: list[OrchestrationMessage] = []
    for message in messages:
        if _must_be_delivered_alone(message, retried):
            return taken or [message]
        taken.append(message)
    return taken


def _parse_retryable_task_ids(progress_json: JsonText) -> set[TaskId]:
    """Return the ids of the calls that have a retry policy, and of the timers that start their retries."""
    members = json.loads(progress_json)
    return {int(task) for task in (*members.get("running", ()), *members.get("waiting", ()))}


def _must_be_delivered_alone(message: OrchestrationMessage, retryable_task_ids: set[TaskId]) -> bool:
    """Return whether no other message may be delivered in the same turn."""
    if message.kind in {MessageKind.START, MessageKind.RAISED}:
        return True
    return message.event.get("TimerId", message.event.get("TaskScheduledId")) in retryable_task_ids


def _try_commit_turn(connection: sqlite3.Connection, turn_input: TurnInput, turn: Turn, at: datetime) -> bool:
    start = turn_input.instance.start
    stored_instance = rows.find_instance(connection, start.instance)
    if (
        stored_instance is None
        or stored_instance.start.execution != start.execution
        or stored_instance.status.has_ended
    ):
        return False
    taken = [(message.number,) for message in turn_input.messages]
    stored_count = connection.execute(
        f"SELECT count(*) FROM messages WHERE number IN ({','.join(str(number) for (number,) in taken)})"  # noqa: S608  numbers
    ).fetchone()[0]
    if stored_count != len(taken):
        return False
    connection.executemany("DELETE FROM messages WHERE number = ?", taken)
    if turn.continue_with is not None:
        _start_new_run(connection, stored_instance, turn, at)
        return True
    _store_turn(connection, stored_instance, turn, at)
    for child in turn.children:
        if not rows.try_start_instance(connection, child, at) and child.parent is not None:
            reason = f"An Orchestration instance with the ID {child.instance} already exists."
            failed = build_sub_orchestration_failed(child.parent.task, reason, at)
            rows.send_message(connection, start.instance, MessageKind.DONE, failed, at)
    return True


def _store_turn(connection: sqlite3.Connection, stored_instance: Instance, turn: Turn, at: datetime) -> None:
    instance = stored_instance.start.instance
    status = (
        OrchestrationStatus.SUSPENDED
        if stored_instance.status is OrchestrationStatus.SUSPENDED and not turn.status.has_ended
        else turn.status
    )
    connection.execute(
        "UPDATE instances SET status = ?, output = ?, custom_status = ?, updated_at = ?, progress = ? WHERE id = ?",
        (status, turn.output, turn.custom_status, format_rfc3339(at), turn.progress.to_json(), instance),
    )
    connection.executemany("INSERT INTO history (instance, event) VALUES (?, ?)", [(instance, e) for e in turn.history])
    connection.executemany(
        "INSERT INTO activities (instance, execution, task, name, input) VALUES (?, ?, ?, ?, ?)",
        [(a.instance, a.execution, a.task, a.name, a.input) for a in turn.activities],
    )
    for task, due in turn.timers:
        rows.send_message(
            connection, instance, MessageKind.TIMER, build_timer_fired(task, due), due, event_name_or_timer_id=str(task)
        )
    for task in turn.cancelled:
        query = "DELETE FROM messages WHERE instance = ? AND kind = 'timer' AND name = ?"
        connection.execute(query, (instance, str(task)))
    connection.execute("DELETE FROM waits WHERE instance = ?", (instance,))
    waits = [(instance, name) for name, count in turn.progress.waits.items() if count > 0]
    connection.executemany("INSERT INTO waits VALUES (?, ?)", waits)
    if status.has_ended:
        clean_up_ended_instance(connection, instance, at)


def clean_up_ended_instance(connection: sqlite3.Connection, instance_id: str, at: datetime) -> None:
    """Delete the undelivered messages to an ended instance, and send its result to its caller, if any."""
    connection.execute("DELETE FROM messages WHERE instance = ?", (instance_id,))
    ended = rows.find_instance(connection, instance_id)
    if ended is not None:
        rows.send_result_to_parent(connection, ended, at)


def _start_new_run(connection: sqlite3.Connection, stored_instance: Instance, turn: Turn, at: datetime) -> None:
    """Start a new run of an instance; of the undelivered messages, keep only external events."""
    instance = stored_instance.start.instance
    connection.execute("DELETE FROM messages WHERE instance = ? AND kind != 'raised'", (instance,))
    for table in ("history", "waits", "activities"):
        connection.execute(f"DELETE FROM {table} WHERE instance = ?", (instance,))  # noqa: S608  constants
    connection.execute(
        "UPDATE instances SET execution = ?, input = ?, custom_status = ?, updated_at = ?, progress = '{}'"
        " WHERE id = ?",
        (records.create_random_id(), turn.continue_with, turn.custom_status, format_rfc3339(at), instance),
    )
    rows.send_message(connection, instance, MessageKind.START, {}, at)


def _store_activity_result(
    connection: sqlite3.Connection, pending: PendingActivity, event: Event, at: datetime
) -> None:
    deleted = connection.execute("DELETE FROM activities WHERE number = ?", (pending.number,)).rowcount
    activity = pending.activity
    if deleted and rows.is_active_run(connection, activity.instance, activity.execution):
        rows.send_message(connection, activity.instance, MessageKind.DONE, event, at)
