"""Tests of functions that read and write orchestration instances in an SQLite transaction."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emulators.durable import rows
from emulators.durable.records import MessageKind, NewInstance, OrchestrationStatus, Parent
from emulators.durable.store import SCHEMA

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = AT + timedelta(hours=1)
PARENT = Parent("p", "p-run", 3)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Return a connection to an empty SQLite database of orchestrations."""
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        opened.executescript(SCHEMA)
        yield opened


def _insert_running_instance(connection: sqlite3.Connection, name: str, run: str, parent: Parent | None = None) -> bool:
    return rows.try_start_instance(connection, NewInstance(name, run, "Main", "1.0", "5", parent), AT)


def _end_instance(
    connection: sqlite3.Connection, name: str, status: OrchestrationStatus, output: str | None = None
) -> None:
    connection.execute("UPDATE instances SET status = ?, output = ? WHERE id = ?", (status, output, name))


def _list_messages(connection: sqlite3.Connection, name: str) -> list[tuple[str, dict[str, Any]]]:
    query = "SELECT kind, event FROM messages WHERE instance = ? ORDER BY number"
    return [(kind, json.loads(event)) for kind, event in connection.execute(query, (name,))]


def test_a_new_instance_is_pending_and_gets_a_start_message(connection: sqlite3.Connection) -> None:
    """A new orchestration instance is stored unchanged, is pending, and has a message that starts it."""
    assert _insert_running_instance(connection, "i", "run", PARENT)
    found = rows.find_instance(connection, "i")
    assert found is not None
    assert found.start == NewInstance("i", "run", "Main", "1.0", "5", PARENT)
    assert (found.status, found.created, found.updated) == (OrchestrationStatus.PENDING, AT, AT)
    assert _list_messages(connection, "i") == [(MessageKind.START, {})]
    assert rows.find_instance(connection, "unknown") is None


def test_a_running_orchestration_instance_is_not_replaced(connection: sqlite3.Connection) -> None:
    """An instance id can be used again only after the instance has ended; its history is then deleted."""
    assert _insert_running_instance(connection, "i", "first")
    rows.append_history(connection, "i", [{"EventType": 12}, {"EventType": 0}])
    assert not _insert_running_instance(connection, "i", "second")
    assert connection.execute("SELECT count(*) FROM history").fetchone() == (2,)
    _end_instance(connection, "i", OrchestrationStatus.TERMINATED)
    assert _insert_running_instance(connection, "i", "second")
    assert connection.execute("SELECT count(*) FROM history").fetchone() == (0,)
    assert rows.is_active_run(connection, "i", "second")


def test_the_run_of_an_instance_is_active_until_it_ends_or_is_replaced(connection: sqlite3.Connection) -> None:
    """The current run of an instance is active until it ends or a new run replaces it."""
    _insert_running_instance(connection, "i", "run")
    assert rows.is_active_run(connection, "i", "run")
    assert not rows.is_active_run(connection, "i", "earlier")
    assert not rows.is_active_run(connection, "other", "run")
    _end_instance(connection, "i", OrchestrationStatus.FAILED)
    assert not rows.is_active_run(connection, "i", "run")


def _add_notification(connection: sqlite3.Connection, status: OrchestrationStatus, output: str | None) -> None:
    _insert_running_instance(connection, "child", "run", PARENT)
    _end_instance(connection, "child", status, output)
    ended = rows.find_instance(connection, "child")
    assert ended is not None
    rows.send_result_to_parent(connection, ended, LATER)


def test_the_caller_of_a_sub_orchestration_receives_its_output(connection: sqlite3.Connection) -> None:
    """A completed sub-orchestration sends its output to the caller's task."""
    _insert_running_instance(connection, "p", "p-run")
    _add_notification(connection, OrchestrationStatus.COMPLETED, "[1]")
    _, (kind, event) = _list_messages(connection, "p")
    assert (kind, event["TaskScheduledId"], event["Result"]) == (MessageKind.DONE, 3, "[1]")


@pytest.mark.parametrize(
    ("status", "output", "reason"),
    [(OrchestrationStatus.FAILED, '"broken"', "broken"), (OrchestrationStatus.TERMINATED, None, "Terminated")],
)
def test_the_caller_of_a_failed_sub_orchestration_receives_the_reason(
    connection: sqlite3.Connection, status: OrchestrationStatus, output: str | None, reason: str
) -> None:
    """A failed sub-orchestration sends its output or, without output, its status as the reason."""
    _insert_running_instance(connection, "p", "p-run")
    _add_notification(connection, status, output)
    _, (_, event) = _list_messages(connection, "p")
    assert event["Reason"] == f"Sub-orchestrator function 'Main' failed: {reason}"


def test_an_ended_caller_receives_no_message_of_its_sub_orchestration(connection: sqlite3.Connection) -> None:
    """If the calling orchestration has ended or was restarted, it gets no message of its old sub-orchestration."""
    _insert_running_instance(connection, "p", "another run")
    _add_notification(connection, OrchestrationStatus.COMPLETED, "1")
    assert [kind for kind, _ in _list_messages(connection, "p")] == [MessageKind.START]


def test_a_message_is_stored_with_its_name_and_due_time(connection: sqlite3.Connection) -> None:
    """A message is stored with its name and its delivery time."""
    _insert_running_instance(connection, "i", "run")
    rows.send_message(connection, "i", MessageKind.TIMER, {"TimerId": 1}, LATER, event_name_or_timer_id="1")
    query = "SELECT name, due, event FROM messages WHERE kind = 'timer'"
    [(name, due, event)] = connection.execute(query).fetchall()
    assert (name, datetime.fromisoformat(due), json.loads(event)) == ("1", LATER, {"TimerId": 1})
