"""Tests that every store of connection states meets the same contract."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates
from shared.backends.embedded.connection_states import SqliteConnectionStates
from shared.telemetry.ports import ArrivedMessages, ConnectionState, ConnectionStateStore
from shared.timestamps import now
from tests.adapters.cosmos import KINDS, open_accounts
from tests.random_examples import scale_examples

MOMENT = datetime(2026, 1, 5, 8, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
type Opener = Callable[[], ConnectionStateStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> ConnectionStateStore:
            path = tmp_path / "workspace.sqlite"
            store = CosmosConnectionStates(account()) if account else SqliteConnectionStates(path)
            stack.push_async_callback(store.close)
            return store

        yield open_another


@pytest.fixture
def states(open_store: Opener) -> ConnectionStateStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def _build_arrivals(
    *numbers: int, connection: str = "rig", source: str = "telemetry/0", after: int = 0
) -> ArrivedMessages:
    at = MOMENT + timedelta(seconds=after)
    return ArrivedMessages(connection, source, numbers, at, at)


async def test_messages_of_all_hub_partitions_are_counted(states: ConnectionStateStore) -> None:
    """All messages of a connection are counted, over all partitions, with the time of the newest message."""
    assert await states.load_states_by_connection() == {}
    await states.add_arrived_messages_to_counts([])
    await states.add_arrived_messages_to_counts(
        [_build_arrivals(1, 2, after=5), _build_arrivals(1, source="telemetry/1"), _build_arrivals(7, connection="b")]
    )
    await states.add_arrived_messages_to_counts([_build_arrivals(3, after=4)])
    found = await states.load_states_by_connection()
    assert found["rig"].messages_received == 4
    assert found["rig"].last_message == MOMENT + timedelta(seconds=5)
    assert found["b"].messages_received == 1
    assert found.keys() == {"rig", "b"}


@hypothesis_settings(
    max_examples=scale_examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=8), st.integers(0, 10**9))
async def test_a_redelivered_message_counts_once(
    states: ConnectionStateStore, deliveries: list[tuple[int, int]], example: int
) -> None:
    """A message counts once, however often it is delivered."""
    name, reached = f"c-{example}-{len(deliveries)}-{hash(tuple(deliveries))}", 0
    before = (await states.load_states_by_connection()).get(name, ConnectionState("", 0, None)).messages_received
    for back_to, size in deliveries:
        start = min(back_to, reached)
        await states.add_arrived_messages_to_counts([_build_arrivals(*range(start, start + size), connection=name)])
        reached = max(reached, start + size)
    after = (await states.load_states_by_connection()).get(name, ConnectionState("", 0, None)).messages_received
    assert after == max(before, reached)


async def test_counts_continue_after_a_hub_was_reset(states: ConnectionStateStore) -> None:
    """If a new hub reuses sequence numbers, its messages are counted, and each of them counts once."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1000)])
    first = replace(_build_arrivals(0, 1, 2, after=60), mismatched=frozenset({2}))
    for _ in range(2):
        await states.add_arrived_messages_to_counts([first])
    found = (await states.load_states_by_connection())["rig"]
    assert found == ConnectionState("CONNECTING", 4, MOMENT + timedelta(seconds=60), 1)
    later = ArrivedMessages("rig", "telemetry/0", (1, 2, 3), first.first_message, MOMENT + timedelta(seconds=70))
    for arrivals in (later, first, later, _build_arrivals(4, after=70)):
        await states.add_arrived_messages_to_counts([arrivals])
    found = (await states.load_states_by_connection())["rig"]
    assert found == ConnectionState("CONNECTING", 6, MOMENT + timedelta(seconds=70), 1)


async def test_a_hub_reset_is_detected_in_each_partition(states: ConnectionStateStore) -> None:
    """A reset is detected in a partition although messages of another partition have arrived later."""
    for source in ("telemetry/0", "telemetry/1"):
        await states.add_arrived_messages_to_counts([_build_arrivals(1000, source=source)])
    await states.add_arrived_messages_to_counts([_build_arrivals(0, source="telemetry/1", after=60)])
    await states.add_arrived_messages_to_counts([_build_arrivals(0, after=30)])
    assert (await states.load_states_by_connection())["rig"] == ConnectionState(
        "CONNECTING", 4, MOMENT + timedelta(seconds=60)
    )


async def test_the_latest_message_moves_forward_without_a_new_number(states: ConnectionStateStore) -> None:
    """The time of the latest message moves forward even if the numbers of the messages seem to be counted."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1000, after=5)])
    await states.add_arrived_messages_to_counts([ArrivedMessages("rig", "telemetry/0", (0, 1), MOMENT, MOMENT + HOUR)])
    assert (await states.load_states_by_connection())["rig"] == ConnectionState("CONNECTING", 1, MOMENT + HOUR)


async def test_the_latest_message_is_corrected_after_a_clock_setback(states: ConnectionStateStore) -> None:
    """A message after a clock setback replaces a time in the future; a redelivery of an earlier message does not."""
    at = now()
    ahead = ArrivedMessages("rig", "telemetry/0", (1,), at + HOUR, at + HOUR)
    after = ArrivedMessages("rig", "telemetry/0", (2,), at, at)
    for arrivals, latest in ((ahead, at + HOUR), (after, now() + MINUTE), (ahead, now() + MINUTE)):
        await states.add_arrived_messages_to_counts([arrivals])
        last = (await states.load_states_by_connection())["rig"].last_message
        assert last is not None
        assert at <= last <= latest
    later = ArrivedMessages("rig", "telemetry/0", (3,), at + 2 * MINUTE, at + 2 * MINUTE)
    await states.add_arrived_messages_to_counts([later])
    assert (await states.load_states_by_connection())["rig"] == ConnectionState("CONNECTING", 3, at + 2 * MINUTE)


@pytest.mark.parametrize("earlier", [None, HOUR])
async def test_a_time_before_a_clock_setback_is_replaced_once(
    states: ConnectionStateStore, earlier: timedelta | None
) -> None:
    """The first read after a clock setback replaces a time in the future by the current time, and later reads keep it.

    An earlier message of another partition does not count as the latest message, and neither does the time in the
    future as soon as the clock reaches it.
    """
    at = now()
    if earlier is not None:
        await states.add_arrived_messages_to_counts(
            [ArrivedMessages("rig", "telemetry/1", (1,), at - earlier, at - earlier)]
        )
    await states.add_arrived_messages_to_counts([ArrivedMessages("rig", "telemetry/0", (1,), at + HOUR, at + HOUR)])
    [first, second] = [(await states.load_states_by_connection())["rig"].last_message for _ in range(2)]
    assert first is not None
    assert at <= first <= now()
    assert second == first


async def test_a_message_of_another_partition_corrects_the_latest_message(states: ConnectionStateStore) -> None:
    """After a clock setback, a message replaces a time in the future also if it arrives in another partition."""
    at = now()
    ahead = ArrivedMessages("rig", "telemetry/0", (1,), at + HOUR, at + HOUR)
    after = ArrivedMessages("rig", "telemetry/1", (1,), at, at)
    for arrivals in (ahead, after):
        await states.add_arrived_messages_to_counts([arrivals])
    last = (await states.load_states_by_connection())["rig"].last_message
    assert last is not None
    assert at <= last <= now() + MINUTE


async def test_connection_status_and_message_counts_are_independent(states: ConnectionStateStore) -> None:
    """Storing a count does not change the status, and storing a status does not change the counts."""
    await states.add_arrived_messages_to_counts([_build_arrivals(1)])
    assert (await states.load_states_by_connection())["rig"].status == "CONNECTING"
    await states.set_status(["rig"], "CONNECTED")
    await states.set_status(["rig"], "CONNECTED")
    await states.add_arrived_messages_to_counts([_build_arrivals(2)])
    await states.set_status(["new"], "ERROR")
    found = await states.load_states_by_connection()
    assert found["rig"] == ConnectionState("CONNECTED", 2, MOMENT)
    assert found["new"] == ConnectionState("ERROR", 0, None)
    await states.set_status(["rig", "new"], "CONNECTING")
    assert {lookup: state.status for lookup, state in (await states.load_states_by_connection()).items()} == {
        "rig": "CONNECTING",
        "new": "CONNECTING",
    }


async def test_statuses_are_read_without_message_counts(states: ConnectionStateStore) -> None:
    """Statuses can be read without message counts; a connection without a status is CONNECTING."""
    assert await states.load_statuses_by_connection() == {}
    await states.add_arrived_messages_to_counts([_build_arrivals(1)])
    await states.set_status(["press", "oven"], "CONNECTED")
    await states.set_status(["oven"], "CONNECTING")
    found = await states.load_statuses_by_connection()
    assert [found.get(lookup, "CONNECTING") for lookup in ("rig", "press", "oven", "missing")] == [
        "CONNECTING",
        "CONNECTED",
        "CONNECTING",
        "CONNECTING",
    ]


async def test_a_message_counted_by_two_processes_counts_once(open_store: Opener) -> None:
    """If two processes count the same messages, each message counts once."""
    first, second = open_store(), open_store()
    await asyncio.gather(
        *(store.add_arrived_messages_to_counts([_build_arrivals(1, 2, 3)]) for store in (first, second))
    )
    assert (await second.load_states_by_connection())["rig"].messages_received == 3
    await asyncio.gather(
        *(
            store.add_arrived_messages_to_counts([_build_arrivals(*range(100), source=f"h/{n}")])
            for n, store in enumerate((first, second) * 4)
        )
    )
    await first.add_arrived_messages_to_counts([_build_arrivals(4)])
    assert (await second.load_states_by_connection())["rig"].messages_received == 804


async def test_messages_that_arrive_while_counts_are_written_are_counted(states: ConnectionStateStore) -> None:
    """Messages that arrive while counts are being written are counted, even if a caller is cancelled."""
    names = [f"c{number}" for number in range(40)]
    waiting = [
        asyncio.create_task(states.add_arrived_messages_to_counts([_build_arrivals(1, 2, connection=name)]))
        for name in names
    ]
    await asyncio.sleep(0)
    waiting[0].cancel()
    for task in waiting:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    found = await states.load_states_by_connection()
    assert [found[name].messages_received for name in names[1:]] == [2] * 39


async def test_messages_with_type_mismatches_are_counted_once(open_store: Opener) -> None:
    """A message with a type mismatch counts once, however often it is delivered."""
    first, second = open_store(), open_store()
    mismatched = replace(_build_arrivals(1, 2, 3), mismatched=frozenset({2, 3}))
    for store in (first, second, first):
        await store.add_arrived_messages_to_counts([mismatched])
    await second.add_arrived_messages_to_counts(
        [replace(_build_arrivals(3, 4), mismatched=frozenset({3, 4})), _build_arrivals(1, connection="b")]
    )
    await first.add_arrived_messages_to_counts(
        [_build_arrivals(5), replace(_build_arrivals(1, source="telemetry/1"), mismatched=frozenset({1}))]
    )
    found = await second.load_states_by_connection()
    assert (found["rig"].messages_received, found["rig"].type_mismatches) == (6, 4)
    assert found["b"].type_mismatches == 0


async def test_event_sequence_numbers_above_32_bits_are_compared_exactly(states: ConnectionStateStore) -> None:
    """Sequence numbers above 32 bits are compared exactly."""
    await states.add_arrived_messages_to_counts([_build_arrivals(2**45)])
    await states.add_arrived_messages_to_counts([_build_arrivals(2**45), _build_arrivals(2**45 + 1)])
    assert (await states.load_states_by_connection())["rig"].messages_received == 2
