"""Tests of replays: each impulse is received once, for any order of arrival."""

import asyncio
import itertools
import re
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.live_stream.history import History
from shared.live_stream.replay import (
    MAX_PASSES_WITHOUT_PROGRESS,
    MAX_REPLAYS,
    NOT_CAUGHT_UP,
    REPEATS_SECONDS,
    SERVICE_IS_BUSY,
    TOO_MANY_REPLAYS,
    Replay,
    ReplayError,
    ReplayMemory,
    ReplayPlaces,
    SentImpulses,
    create_replay_scheduler,
)
from shared.runtime import Runtime
from shared.telemetry.impulses import decode_impulse, encode_impulse
from shared.telemetry.models import Impulse
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = tuple(
    Column(name, kind)
    for name, kind in (
        ("Timestamp", "datetime"),
        ("ConnectionLookup", "string"),
        ("SurfaceLookups", "dynamic"),
        ("DeviceId", "string"),
        ("MessageId", "string"),
        ("Payload", "string"),
    )
)


class ReplaySimulation:
    """Simulated hub with two consumers that can be late: the query table and the live stream."""

    def __init__(self, script: Sequence[tuple[int, int, int]]) -> None:
        self.script = list(script)
        self.hub: list[Impulse] = []
        self.in_table = self.live = 0
        self.held: list[bytes] | None = None
        self.room = 3
        self.is_spilled = False
        self.heard: list[bytes] = []

    def advance(self) -> None:
        """Append impulses (telemetry messages) to the hub, and let each consumer process some."""
        if not self.script:
            return
        second, table_steps, live_steps = self.script.pop(0)
        self.hub.append(Impulse(f"m{len(self.hub)}", START + timedelta(seconds=second), "a", ("s",), "d", {}, {"n": 1}))
        self.in_table = min(self.in_table + table_steps, len(self.hub))
        for _ in range(live_steps):
            self.publish()

    def open_stream(self) -> None:
        """Open the stream, which receives later live messages only."""
        self.heard.clear()
        self.start_buffering()

    def publish(self) -> None:
        """Publish the next impulse to the stream, if it is open."""
        if self.live == len(self.hub):
            return
        text = encode_impulse(self.hub[self.live])
        self.live += 1
        if self.held is None:
            self.heard.append(text)
        elif not self.is_spilled:
            self.held.append(text)
            self.is_spilled = len(self.held) > self.room

    async def wait_for_query_table(self) -> None:
        """Let the query table process all events of the hub."""
        self.in_table = len(self.hub)

    async def advance_live(self) -> None:
        """Let the live stream process all events of the hub."""
        while self.live < len(self.hub):
            self.publish()

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the result of the replay's query."""
        self.advance()
        since, until = (
            datetime.fromisoformat(bound.removeprefix("datetime(").removesuffix(")"))
            for bound in query.parameters.values()
        )
        rows = sorted(
            (each.timestamp, each.message_id) for each in self.hub[: self.in_table] if since <= each.timestamp < until
        )
        skipped = re.search(r"_oi_row > (\d+)", query.text)
        page = rows[int(skipped[1]) if skipped else 0 :][: query.max_records]
        cells = [[f"{at:%Y-%m-%dT%H:%M:%S.%fZ}", "a", '["s"]', "d", name, '{"n":1}'] for at, name in page]
        return EngineResult(COLUMNS, cells, 1.0)

    async def ping(self) -> None:
        """Report that the service is reachable."""

    def start_buffering(self) -> None:
        """Start to hold back the live messages of the stream."""
        self.held, self.is_spilled = [], False

    def has_overflowed(self) -> bool:
        """Return whether too many messages were held back."""
        return self.is_spilled

    async def try_send(self, texts: Sequence[bytes]) -> bool:
        """Receive replayed messages."""
        self.advance()
        self.heard += texts
        return True

    async def send_buffered(self, repeated: Callable[[bytes], bool]) -> None:
        """Send the messages that were held back, and stop holding back."""
        while self.held:
            text = self.held.pop(0)
            if not repeated(text):
                self.heard.append(text)
        self.held = None


class SimulationProgress:
    """IngestionProgress implementation that reports the progress of the simulated hub."""

    def __init__(self, simulation: ReplaySimulation) -> None:
        self.wait_for_query_table = simulation.wait_for_query_table
        self.wait_for_live_stream = simulation.advance_live


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=60),
    st.integers(0, 30),
    st.integers(1, 4),
)
def test_each_impulse_is_received_once(script: list[tuple[int, int, int]], before: int, page: int) -> None:
    """However late the query table and the live stream are, a listener receives each impulse exactly once."""
    simulation = ReplaySimulation(script)
    for _ in range(before):
        simulation.advance()
    simulation.open_stream()
    replay = Replay(History(simulation, page), SimulationProgress(simulation))
    asyncio.run(replay.replay_to_stream(simulation, ["a"], START))
    while simulation.script:
        simulation.advance()
    asyncio.run(simulation.advance_live())
    assert sorted(decode_impulse(text).message_id for text in simulation.heard) == sorted(
        each.message_id for each in simulation.hub
    )
    assert dict.fromkeys(simulation.heard) == {encode_impulse(decode_impulse(text)): None for text in simulation.heard}


async def test_a_replay_sends_impulses_in_time_order() -> None:
    """A replay sends impulses in time order from the requested start, for any order of arrival."""
    simulation = ReplaySimulation([(second, 1, 1) for second in (5, 3, 9, 3, 7)])
    for _ in range(5):
        simulation.advance()
    simulation.open_stream()
    await Replay(History(simulation, 2), SimulationProgress(simulation)).replay_to_stream(
        simulation, ["a"], START + timedelta(seconds=3)
    )
    assert [decode_impulse(text).timestamp.second for text in simulation.heard] == [3, 3, 5, 7, 9]


async def test_listeners_that_read_nothing_do_not_delay_the_replays_of_others() -> None:
    """A replay holds its turn only while it reads the table, so stalled replays of some leave turns to others."""
    scheduler, gate, stalled = create_replay_scheduler(), asyncio.Event(), list[ReplaySimulation]()

    def start_replay(member: str, simulation: ReplaySimulation) -> asyncio.Task[None]:
        simulation.advance()
        simulation.open_stream()
        take_turn = partial(scheduler.occupy_slot, member)
        replay = Replay(History(simulation), SimulationProgress(simulation), take_turn)
        return asyncio.create_task(replay.replay_to_stream(simulation, ["a"], START))

    class StalledListener(ReplaySimulation):
        """Simulation with a listener that reads nothing until the test ends."""

        async def try_send(self, texts: Sequence[bytes]) -> bool:
            """Wait until the test ends."""
            stalled.append(self)
            await gate.wait()
            return await super().try_send(texts)

    members = ["a"] * 10 + ["b"] * 10 + ["c", "d"]
    waiting = [start_replay(member, StalledListener([(0, 1, 1)])) for member in members]
    async with asyncio.timeout(20):
        while len(stalled) < len(members):  # noqa: ASYNC110  the listeners offer no event to wait for
            await asyncio.sleep(0)
    simulation = ReplaySimulation([(0, 1, 1)])
    await start_replay("e", simulation)
    assert [decode_impulse(text).message_id for text in simulation.heard] == ["m0"]
    gate.set()
    await asyncio.gather(*waiting)


@pytest.mark.parametrize(("page_rows", "turns"), [(5, 1), (4, 2), (2, 4)])
async def test_a_long_wait_for_a_turn_does_not_repeat_a_replay(page_rows: int, turns: int) -> None:
    """Live messages that overflow the buffer before the replay's first turn are read once, with one turn for a page."""
    simulation, taken = ReplaySimulation([(second, 0, 1) for second in range(4)]), list[int]()
    simulation.open_stream()

    @asynccontextmanager
    async def take_late_turn() -> AsyncIterator[None]:
        while simulation.script:
            simulation.advance()
        taken.append(len(simulation.heard))
        yield

    replay = Replay(History(simulation, page_rows), SimulationProgress(simulation), take_late_turn)
    await replay.replay_to_stream(simulation, ["a"], START)
    assert [decode_impulse(text).message_id for text in simulation.heard] == ["m0", "m1", "m2", "m3"]
    assert len(taken) == turns


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, 4 + 1 + 1), (REPEATS_SECONDS, 4 + 4 + 4)])
async def test_pages_with_only_repeats_share_a_turn(seconds: float, turns: int) -> None:
    """Passes after overflows read pages of repeats in one turn, which ends after some seconds."""

    class TwiceOverflowingStream(ReplaySimulation):
        """Simulation whose live messages overflow the buffer during the first two passes."""

        passes = 0

        def start_buffering(self) -> None:
            """Count the passes; the buffer overflows at once before the third pass."""
            super().start_buffering()
            self.passes += 1
            self.is_spilled = self.passes < 4

    simulation, taken = TwiceOverflowingStream([(second, 1, 1) for second in range(4)]), list[int]()
    while simulation.script:
        simulation.advance()
    simulation.open_stream()

    @asynccontextmanager
    async def take_turn() -> AsyncIterator[None]:
        taken.append(len(simulation.heard))
        yield

    runtime = Runtime(monotonic=partial(next, itertools.count(step=seconds)))
    replay = Replay(History(simulation, 2), SimulationProgress(simulation), take_turn, runtime=runtime)
    await replay.replay_to_stream(simulation, ["a"], START)
    assert [decode_impulse(text).message_id for text in simulation.heard] == ["m0", "m1", "m2", "m3"]
    assert (len(taken), simulation.passes) == (turns, 4)


async def test_a_replay_whose_buffer_always_overflows_fails_with_the_reason() -> None:
    """A replay reads the table a limited number of times if its buffer overflows each time."""

    class OverflowingStream(ReplaySimulation):
        """Simulation whose live messages always overflow the buffer."""

        passes = 0

        def start_buffering(self) -> None:
            """Count the passes; the buffer overflows at once."""
            self.passes += 1
            self.is_spilled = True

    simulation = OverflowingStream([])
    simulation.start_buffering()
    with pytest.raises(ReplayError, match=f"^{NOT_CAUGHT_UP}$"):
        await Replay(History(simulation), SimulationProgress(simulation)).replay_to_stream(simulation, ["a"], START)
    assert simulation.passes == 1 + MAX_PASSES_WITHOUT_PROGRESS


async def test_a_replay_that_catches_up_slowly_continues() -> None:
    """Passes that send fewer messages than the pass before do not count towards the limit of passes."""
    passes = MAX_PASSES_WITHOUT_PROGRESS + 5

    class CatchingUpStream(ReplaySimulation):
        """Simulation with fewer live messages before each pass, which overflow the buffer until the last pass."""

        passes = 0

        def start_buffering(self) -> None:
            """Add live messages, which the buffer has dropped."""
            super().start_buffering()
            self.script = [(self.passes, 1, 1)] * (passes - self.passes)
            while self.script:
                self.advance()
            self.passes += 1
            self.is_spilled = self.passes <= passes

    simulation = CatchingUpStream([])
    simulation.open_stream()
    await Replay(History(simulation), SimulationProgress(simulation)).replay_to_stream(simulation, ["a"], START)
    assert simulation.passes == 1 + passes
    assert sorted(decode_impulse(text).message_id for text in simulation.heard) == sorted(
        each.message_id for each in simulation.hub
    )


def test_each_replay_occupies_a_place_until_it_ends() -> None:
    """The replays of a principal and of all principals are limited, and some principals leave places to others."""
    places = ReplayPlaces(8, per_principal=3)
    with ExitStack() as replays:
        for _ in range(3):
            replays.enter_context(places.occupy_place("a"))
        with pytest.raises(ReplayError, match=f"^{TOO_MANY_REPLAYS}$"), places.occupy_place("a"):
            pass
        for principal in ("b", "b", "b", "c"):
            replays.enter_context(places.occupy_place(principal))
        with pytest.raises(ReplayError, match=f"^{SERVICE_IS_BUSY}$"), places.occupy_place("c"):
            pass
        replays.enter_context(places.occupy_place("d"))
        with pytest.raises(ReplayError, match=f"^{SERVICE_IS_BUSY}$"), places.occupy_place("e"):
            pass
    with places.occupy_place("a"):
        pass


def test_the_streams_of_four_principals_leave_places_to_others() -> None:
    """Four principals that occupy as many places of a process as they can leave places to the next principals."""
    places = ReplayPlaces()
    with ExitStack() as replays:
        for principal in "abcd":
            with suppress(ReplayError):
                for _ in range(MAX_REPLAYS):
                    replays.enter_context(places.occupy_place(principal))
        for principal in "efgh":
            replays.enter_context(places.occupy_place(principal))


async def test_no_query_is_executed_without_selected_connections() -> None:
    """If the filters select no connections, no query is executed."""
    simulation = ReplaySimulation([(0, 1, 1)])
    simulation.start_buffering()
    await Replay(History(simulation), SimulationProgress(simulation)).replay_to_stream(simulation, [], START)
    assert len(simulation.script) == 1
    assert simulation.held is None


def test_replays_share_the_memory_for_sent_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """While all replays remember too many messages, each one remembers only its newest ones."""
    monkeypatch.setattr("shared.live_stream.replay.MIN_REMEMBERED", 2)
    memory = ReplayMemory(4)
    first, second = SentImpulses(10, memory), SentImpulses(10, memory)

    def list_remembered(sent: SentImpulses) -> list[int]:
        texts = [b'{"ID": "%d", "Metadata": {"ConnectionLookup": "a"}}' % number for number in range(5)]
        return [number for number, text in enumerate(texts) if sent.has_impulse(text)]

    for sent in (first, second):
        assert all(sent.add_if_new(("a", str(number)), START + timedelta(seconds=number)) for number in range(4))
    assert (list_remembered(first), list_remembered(second)) == ([0, 1, 2, 3], [2, 3])
    assert second.get_oldest_remembered_time(START) == START + timedelta(seconds=2)
    assert first.add_if_new(("a", "4"), START)
    assert list_remembered(first) == [2, 3, 4]
    first.forget_all()
    assert second.add_if_new(("a", "4"), START)
    assert (list_remembered(second), memory.remembered) == ([2, 3, 4], 3)


def test_late_messages_do_not_let_a_full_memory_forget_messages_that_are_read_again() -> None:
    """If the table is read again, and contains a late message, only this message is sent."""
    sent = SentImpulses(10)
    for second in range(20):
        assert sent.add_if_new(("a", str(second)), START + timedelta(seconds=second))
    assert sent.get_oldest_remembered_time(START) == START + timedelta(seconds=10)
    rows = [*range(10, 15), "late", *range(15, 20)]
    assert [name for name in rows if sent.add_if_new(("a", str(name)), START + timedelta(seconds=14))] == ["late"]


async def test_a_replay_that_has_ended_remembers_nothing() -> None:
    """A replay frees its part of the memory when it ends."""
    memory, simulation = ReplayMemory(), ReplaySimulation([(0, 1, 1)])
    simulation.advance()
    simulation.open_stream()
    replay = Replay(History(simulation), SimulationProgress(simulation), memory=memory)
    await replay.replay_to_stream(simulation, ["a"], START)
    assert (len(simulation.heard), memory.remembered) == (1, 0)


def test_a_remembered_message_takes_little_memory_also_with_a_long_id() -> None:
    """A replay remembers each sent message in less than 500 bytes, also if message ids have thousands of characters."""
    sent = SentImpulses(1_000)
    tracemalloc.start()
    for number in range(1_000):
        assert sent.add_if_new(("a", f"{number}{'x' * 5_000}"), START + timedelta(seconds=number))
    remembered, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert remembered < 500 * 1_000
    assert sent.has_impulse(b'{"ID": "7%b", "Metadata": {"ConnectionLookup": "a"}}' % (b"x" * 5_000))
    assert not sent.has_impulse(b'{"ID": "7%b", "Metadata": {"ConnectionLookup": "b"}}' % (b"x" * 5_000))
