"""Tests of status and statistics of connections in SQLite that do not apply to other stores."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.backends.embedded.connection_states import SqliteConnectionStates
from shared.telemetry.ports import ArrivedMessages
from shared.timestamps import now

MOMENT = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.fixture
async def states(tmp_path: Path) -> AsyncIterator[SqliteConnectionStates]:
    """Provide a store in a new file."""
    store = SqliteConnectionStates(tmp_path / "workspace.sqlite")
    yield store
    await store.close()


def _build_arrivals(
    *numbers: int, connection: str = "rig", source: str = "telemetry/0", after: int = 0
) -> ArrivedMessages:
    at = MOMENT + timedelta(seconds=after)
    return ArrivedMessages(connection, source, numbers, at, at)


async def test_message_counts_survive_a_restart(tmp_path: Path) -> None:
    """A second or restarted process continues the message counts and counts each message once."""
    path = tmp_path / "workspace.sqlite"
    first, second = SqliteConnectionStates(path), SqliteConnectionStates(path)
    await asyncio.gather(
        *(store.add_arrived_messages_to_counts([_build_arrivals(1, 2, 3)]) for store in (first, second))
    )
    await first.close()
    assert (await second.load_states_by_connection())["rig"].messages_received == 3
    await second.close()


async def test_message_counts_beyond_32_bits_are_exact(states: SqliteConnectionStates, tmp_path: Path) -> None:
    """Message counts beyond 32 bits are stored exactly."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1)])
    with sqlite3.connect(tmp_path / "workspace.sqlite") as database:
        database.execute("UPDATE connection_states SET messages_received = ?", (2**40,))
    database.close()
    await states.add_arrived_messages_to_counts([_build_arrivals(2)])
    assert (await states.load_states_by_connection())["rig"].messages_received == 2**40 + 1


async def test_a_clock_setback_is_handled_while_the_file_cannot_be_written(
    states: SqliteConnectionStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a time in the future cannot be corrected in the file, the current time is still returned in its place."""
    at = now()
    future = at + timedelta(hours=1)
    await states.add_arrived_messages_to_counts([ArrivedMessages("rig", "telemetry/0", (1,), future, future)])

    async def fail_to_write(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(states._database, "write", fail_to_write)
    last = (await states.load_states_by_connection())["rig"].last_message
    assert last is not None
    assert at <= last <= now()


async def test_a_failed_count_of_a_batch_stores_nothing(states: SqliteConnectionStates, tmp_path: Path) -> None:
    """If a part of a batch cannot be stored, no message of the batch is counted."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1)])
    with pytest.raises(OverflowError):
        await states.add_arrived_messages_to_counts([_build_arrivals(2), _build_arrivals(2**70, connection="b")])
    assert (await states.load_states_by_connection()).keys() == {"rig"}
    await states.add_arrived_messages_to_counts([])
    assert (await states.load_states_by_connection())["rig"].messages_received == 1


async def test_unchanged_states_are_parsed_once(states: SqliteConnectionStates) -> None:
    """If a state has not changed since the last read, the same object is returned."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1), _build_arrivals(1, connection="press")])
    before = await states.load_states_by_connection()
    await states.add_arrived_messages_to_counts([_build_arrivals(2, after=1)])
    await states.set_status(["lathe"], "ERROR")
    after = await states.load_states_by_connection()
    assert after["press"] is before["press"]
    assert (after["rig"].messages_received, after["rig"].last_message) == (2, MOMENT + timedelta(seconds=1))
    assert after.keys() == {"rig", "press", "lathe"}


async def test_counts_of_earlier_versions_continue(states: SqliteConnectionStates, tmp_path: Path) -> None:
    """If an earlier version stored no time for a hub partition, redeliveries and hub resets are still recognised."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1, 2, 3)])
    with sqlite3.connect(tmp_path / "workspace.sqlite") as database:
        database.execute("DELETE FROM connection_source_times")
    database.close()
    await states.add_arrived_messages_to_counts([_build_arrivals(1, 2, 3)])
    assert (await states.load_states_by_connection())["rig"].messages_received == 3
    await states.add_arrived_messages_to_counts([_build_arrivals(0, 1, after=60)])
    assert (await states.load_states_by_connection())["rig"].messages_received == 5
