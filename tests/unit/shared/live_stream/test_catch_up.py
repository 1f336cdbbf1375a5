"""Replays to streams that are live already."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.live_stream import catch_up
from shared.live_stream.catch_up import CONCURRENT_REPLAYS, MAX_WAITING, MESSAGES_PER_CHECK, CatchUp
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History, StoredImpulse
from shared.timestamps import now

SINCE = datetime(2026, 1, 5, 8, tzinfo=UTC)
ASKED = StreamFilters.model_validate({"since": "2026-01-05T08:00:00Z"})


class Service:
    """A message service that keeps what it is told."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed: list[tuple[str, str]] = []
        self.open_for = 1_000_000
        self.tries = 0
        self.failures: list[WorkspaceError] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.most_at_once = self.at_once = 0

    async def send(self, connection_id: str, text: bytes) -> None:
        """Take a message once the gate is open."""
        assert connection_id
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        self.sent.append(text)

    async def is_open(self, connection_id: str) -> bool:
        """Say that the stream is there until it took so many messages."""
        assert connection_id
        return len(self.sent) < self.open_for

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream."""
        self.closed.append((connection_id, reason))


class Table(History):
    """The table, as it is at each of its readings."""

    def __init__(self, *readings: Sequence[str]) -> None:
        self.readings = list(readings)
        self.asked: list[tuple[datetime, datetime]] = []
        self.error: Exception | None = None

    async def read_pages(
        self, connections: Sequence[str], since: datetime, until: datetime = SINCE
    ) -> AsyncIterator[Any]:
        """Give one page of what the table holds now."""
        assert list(connections) == []
        if self.error:
            raise self.error
        self.asked.append((since, until))
        yield [StoredImpulse(("a", each), SINCE, each.encode()) for each in self.readings.pop(0)]


async def workspace() -> Catalog:
    """Return a workspace without connections."""
    return Catalog()


async def no_time(_: float) -> None:
    """Wait for nothing."""


def replays(table: Table, service: Service, **options: Any) -> CatchUp:
    """Return the replays of a table to a service."""
    return CatchUp(workspace, table, service, **{"sleep": no_time} | options)


async def test_what_reaches_the_table_late_is_replayed_once() -> None:
    """After the table had time, what it lacked at first comes, and nothing that it had."""
    service, table = Service(), Table(["1", "2"], ["2", "3"])
    before = now()
    await replays(table, service).run("c", ASKED)
    assert service.sent == [b"1", b"2", b"3"]
    (first, opened), (again, until) = table.asked
    assert (first, service.closed) == (SINCE, [])
    assert before <= opened <= now()
    assert (again, until) == (opened - catch_up.REREAD_TIME, opened + catch_up.SKEW)


async def test_a_short_window_is_never_made_longer() -> None:
    """The second reading begins where the first did, when that is later."""
    service, table = Service(), Table(["1"], ["1"])
    since = now() - timedelta(seconds=30)
    await replays(table, service).run("c", StreamFilters.model_validate({"since": since.isoformat()}))
    assert [begin for begin, _ in table.asked] == [since, since]


async def test_nothing_asked_for() -> None:
    """A stream without since, and an event of no connection, make no query."""
    service, table = Service(), Table()
    await replays(table, service).run("c", StreamFilters.model_validate({}))
    await replays(table, service).run("", ASKED)
    assert (service.sent, table.asked) == ([], [])


async def test_a_listener_that_left_ends_its_replay() -> None:
    """Whoever has gone is not sent to for long, and the table not asked again."""
    service, table = Service(), Table([str(number) for number in range(3 * MESSAGES_PER_CHECK)], ["late"])
    service.open_for = 1
    await replays(table, service).run("c", ASKED)
    assert len(service.sent) == MESSAGES_PER_CHECK
    assert (len(table.asked), service.closed) == (1, [])


async def test_too_many_impulses() -> None:
    """A replay longer than its bound is told to the listener, whose stream is closed."""
    service, table = Service(), Table(["1", "2", "3"], [])
    await replays(table, service, most=2).run("c", ASKED)
    assert service.sent == [b"1", b"2"]
    assert service.closed == [("c", "The replay exceeds 2 impulses; request a shorter time range.")]


async def test_too_much_time() -> None:
    """A replay that does not end is given up."""
    service, table = Service(), Table(["1"], [])
    service.gate.clear()
    await replays(table, service, seconds=0.01).run("c", ASKED)
    assert service.closed == [("c", "The replay takes too long; request a shorter time range.")]


async def test_an_engine_that_fails() -> None:
    """A failure of the query engine closes the stream with its code and nothing else of it."""
    service, table = Service(), Table()
    table.error = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "secret")
    await replays(table, service).run("c", ASKED)
    assert service.closed == [("c", "The replay failed: QUERY_ENGINE_UNAVAILABLE.")]


async def test_an_error_that_nobody_foresaw() -> None:
    """Whatever ends a replay early, the stream is closed, so that nobody waits for the rest."""
    service, table = Service(), Table()
    table.error = KeyError("secret")
    await replays(table, service).run("c", ASKED)
    assert service.closed == [("c", "The replay failed.")]


async def test_messages_that_the_service_does_not_take() -> None:
    """One that it cannot take now is sent again; one that it never takes is left out, and the rest goes on."""
    service, table = Service(), Table(["1", "2"], [])
    busy = WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", "busy")
    service.failures = [busy, busy, WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", "no")]
    await replays(table, service).run("c", ASKED)
    assert (service.sent, service.tries, service.closed) == ([b"2"], 4, [])
    service.failures = [busy] * 3
    await replays(Table(["1"], []), service).run("c", ASKED)
    assert service.closed == [("c", "The replay failed: LIVE_STREAM_UNAVAILABLE.")]


async def test_few_at_once_and_the_rest_in_line() -> None:
    """So many replays run at a time, so many wait, and one beyond is told to try again."""
    service = Service()
    table = Table(*[["1"]] * 2 * (MAX_WAITING + 1))
    service.gate.clear()
    replaying = replays(table, service)
    tasks = [asyncio.create_task(replaying.run(f"c{number}", ASKED)) for number in range(MAX_WAITING)]
    async with asyncio.timeout(20):
        while service.at_once < CONCURRENT_REPLAYS:  # noqa: ASYNC110  the tasks have no event to wait for
            await asyncio.sleep(0)
    await replaying.run("late", ASKED)
    assert service.closed == [("late", "Too many concurrent replays; try again.")]
    service.gate.set()
    await asyncio.gather(*tasks)
    assert (len(service.sent), service.most_at_once) == (MAX_WAITING, CONCURRENT_REPLAYS)
    await replaying.run("after", ASKED)
    assert (len(service.sent), len(service.closed)) == (MAX_WAITING + 1, 1)


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"since": "yesterday"}', b'{"since": 1}', b"\xff"])
def test_states_of_others_are_no_replay(state: bytes) -> None:
    """What is not a state of ours asks for no replay."""
    assert StreamFilters.from_state(state).since is None


@given(st.sampled_from([None, "pump-rig"]), st.sampled_from([None, "cooling"]), st.integers(1, 3600))
def test_filters_are_recalled(connection: str | None, surface: str | None, seconds: int) -> None:
    """What the message service keeps gives the same filters back, the window as the instant that it began."""
    asked = StreamFilters.model_validate({"connection": connection, "surface": surface, "windowSec": str(seconds)})
    moment = SINCE + timedelta(microseconds=1)
    kept = asked.to_state(moment)
    recalled = StreamFilters.from_state(
        b"{%s}" % ",".join(f'"{name}":"{each}"' for name, each in kept.items()).encode()
    )
    assert (recalled.connection, recalled.surface) == (connection, surface)
    assert recalled.since == moment - timedelta(seconds=seconds)
    assert StreamFilters(connection=connection).to_state(moment) == {}
