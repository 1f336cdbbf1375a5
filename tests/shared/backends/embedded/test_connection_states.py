"""Status and statistics of connections in SQLite."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from shared.backends.embedded.connection_states import EmbeddedConnectionStates
from shared.telemetry.ports import Arrivals, ConnectionState

MOMENT = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.fixture
async def states(tmp_path: Path) -> AsyncIterator[EmbeddedConnectionStates]:
    """A store over a new file."""
    store = EmbeddedConnectionStates(tmp_path / "workspace.sqlite")
    yield store
    await store.close()


def _arrivals(*numbers: int, connection: str = "rig", source: str = "telemetry/0", after: int = 0) -> Arrivals:
    return Arrivals(connection, source, numbers, MOMENT + timedelta(seconds=after))


async def test_counts(states: EmbeddedConnectionStates) -> None:
    """Messages are counted per connection over all its sources; the newest one's time is kept."""
    await states.record([_arrivals(1, 2, after=5), _arrivals(1, source="telemetry/1"), _arrivals(7, connection="b")])
    await states.record([_arrivals(3, after=4)])
    found = await states.states()
    assert found["rig"].messages_received == 4
    assert found["rig"].last_message == MOMENT + timedelta(seconds=5)
    assert found["b"].messages_received == 1


@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=10), st.integers(0, 10**9))
async def test_redelivery(states: EmbeddedConnectionStates, deliveries: list[tuple[int, int]], example: int) -> None:
    """However often delivery goes back, each sequence number counts once."""
    name, reached = f"c-{example}-{len(deliveries)}-{hash(tuple(deliveries))}", 0
    before = (await states.states()).get(name, ConnectionState("", 0, None)).messages_received
    for back_to, size in deliveries:
        start = min(back_to, reached)
        await states.record([_arrivals(*range(start, start + size), connection=name)])
        reached = max(reached, start + size)
    after = (await states.states()).get(name, ConnectionState("", 0, None)).messages_received
    assert after == max(before, reached)


async def test_status(states: EmbeddedConnectionStates) -> None:
    """A connection that was only counted is CONNECTING; a status that was set stays beside the counts."""
    await states.record([_arrivals(1)])
    assert (await states.states())["rig"].status == "CONNECTING"
    await states.set_status("rig", "CONNECTED")
    await states.record([_arrivals(2)])
    await states.set_status("new", "ERROR")
    found = await states.states()
    assert found["rig"] == ConnectionState("CONNECTED", 2, MOMENT)
    assert found["new"] == ConnectionState("ERROR", 0, None)


async def test_survives_a_restart(tmp_path: Path) -> None:
    """A second process, and the next start, see what was recorded and go on counting once."""
    path = tmp_path / "workspace.sqlite"
    first, second = EmbeddedConnectionStates(path), EmbeddedConnectionStates(path)
    await asyncio.gather(*(store.record([_arrivals(1, 2, 3)]) for store in (first, second)))
    await first.close()
    assert (await second.states())["rig"].messages_received == 3
    await second.close()


async def test_large_counts(states: EmbeddedConnectionStates, tmp_path: Path) -> None:
    """Counts beyond 32 bits are kept."""
    await states.record([_arrivals(1)])
    with sqlite3.connect(tmp_path / "workspace.sqlite") as database:
        database.execute("UPDATE connection_states SET messages_received = ?", (2**40,))
    database.close()
    await states.record([_arrivals(2)])
    assert (await states.states())["rig"].messages_received == 2**40 + 1


async def test_nothing_of_a_failed_record_stays(states: EmbeddedConnectionStates, tmp_path: Path) -> None:
    """When one part cannot be stored, none is counted."""
    await states.record([_arrivals(1)])
    with pytest.raises(OverflowError):
        await states.record([_arrivals(2), _arrivals(2**70, connection="b")])
    assert (await states.states()).keys() == {"rig"}
    await states.record([])
    assert (await states.states())["rig"].messages_received == 1
