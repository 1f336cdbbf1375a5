"""Tests of sending earlier messages to streams that are already open."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.models import Policies, TelemetryPolicy
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.fair_use.acting_member import acting_member
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History, HistoryPage, StoredImpulse
from shared.live_stream.replay import (
    CONCURRENT_REPLAYS,
    LAG_SECONDS,
    MAX_REPLAYS_PER_PRINCIPAL,
    MESSAGES_PER_CHECK,
    REREAD_TIME,
    SERVICE_IS_BUSY,
    SKEW,
    TOO_MANY_REPLAYS,
    CatchUp,
)
from tests.virtual_time import VirtualTime

SINCE = datetime(2026, 1, 5, 8, tzinfo=UTC)
OPENED = SINCE + timedelta(hours=1)
LONGEST_AHEAD = timedelta(seconds=TelemetryPolicy().max_ahead_seconds) + SKEW
ASKED = StreamFilters.model_validate({"since": "2026-01-05T08:00:00Z"})


class Service:
    """Fake message service that records its calls."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.receivers: list[str] = []
        self.closed: list[tuple[str, str]] = []
        self.open_for = 1_000_000
        self.tries = 0
        self.failures: list[WorkspaceError] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.most_at_once = self.at_once = 0

    async def send(self, connection_id: str, text: bytes) -> None:
        """Record a message when the test allows it."""
        assert connection_id
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        self.sent.append(text)
        self.receivers.append(connection_id)

    async def is_open(self, connection_id: str) -> bool:
        """Return whether the stream is open; it closes after a number of messages."""
        assert connection_id
        return len(self.sent) < self.open_for

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Record that a stream was closed."""
        self.closed.append((connection_id, reason))


class SlowService(Service):
    """Fake message service that takes 10 seconds to send a message."""

    time: VirtualTime

    async def send(self, connection_id: str, text: bytes) -> None:
        """Advance the clock, then record a message."""
        self.time.advance(10)
        await super().send(connection_id, text)


class Table(History):
    """Fake query table whose clock advances while a replay sleeps.

    Args:
        names: names of messages that were measured a minute before the stream opens.
        late: names of such messages that reach the table 10 seconds after the opening.
    """

    def __init__(self, *names: str, late: Sequence[str] = ()) -> None:
        self.time = VirtualTime(OPENED)
        self.rows: list[tuple[str, datetime, datetime]] = []
        self.add(names)
        self.add(late, stored=10)
        self.asked: list[tuple[datetime, datetime]] = []
        self.readers: set[str] = set()
        self.error: Exception | None = None

    def add(self, names: Iterable[str], *, measured: float = -60, stored: float = -60) -> None:
        """Add messages; the times of their measurement and storage are in seconds after the opening of the stream."""
        second = timedelta(seconds=1)
        self.rows += [(each, OPENED + measured * second, OPENED + stored * second) for each in names]

    async def read_pages(
        self, connection_lookups: Sequence[str], since: datetime, until: datetime = OPENED
    ) -> AsyncIterator[HistoryPage]:
        """Yield one page with the stored messages of a time range."""
        assert list(connection_lookups) == []
        if self.error:
            raise self.error
        self.asked.append((since, until))
        self.readers.add(acting_member.get())
        stored = [(name, at) for name, at, stored_at in self.rows if stored_at <= self.time.now]
        impulses = [StoredImpulse(("a", name), at, name.encode()) for name, at in stored if since <= at < until]
        yield HistoryPage(impulses, is_last=True)

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.time.advance(seconds)


async def get_catalog() -> Catalog:
    """Return a workspace without connections."""
    return Catalog()


def build_catch_up(table: Table, service: Service, **options: Any) -> CatchUp:
    """Return a CatchUp (the replay for open streams) that reads from the table and sends to the service."""
    runtime = replace(table.time.runtime, **{"sleep": table.sleep} | options.pop("runtime", {}))
    return CatchUp(get_catalog, table, service, runtime=runtime, **options)


async def test_late_impulses_are_replayed_once() -> None:
    """The second read of a replay adds only impulses that reached the table after the first read."""
    service, table = Service(), Table("1", "2", late=["3"])
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert (service.sent, service.closed) == ([b"1", b"2", b"3"], [])
    again = OPENED + timedelta(seconds=LAG_SECONDS)
    assert table.asked == [
        (OPENED, OPENED + LONGEST_AHEAD),
        (SINCE, OPENED),
        (again, OPENED + LONGEST_AHEAD),
        (OPENED - REREAD_TIME, again),
    ]


async def test_messages_of_devices_with_fast_clocks_are_replayed() -> None:
    """A replay contains messages that were published before the stream opened, but have later timestamps."""
    service, table = Service(), Table("on time")
    for number, ahead in enumerate([1, 60, 299]):
        table.add([f"stored {number}"], measured=ahead)
        table.add([f"late {number}"], measured=ahead, stored=10)
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    names = [name for name, _, _ in table.rows]
    assert sorted(text.decode() for text in service.sent) == sorted(names)


async def test_a_policy_without_fast_clocks_limits_a_replay_to_the_opening() -> None:
    """If the telemetry policy accepts no timestamps that are ahead, a replay ends at the opening of the stream."""
    service, table = Service(), Table("on time")
    table.add(["live"], measured=6, stored=6)
    policies = Policies(telemetry=TelemetryPolicy.model_validate({"maxAheadSeconds": 0}))

    async def get_strict_catalog() -> Catalog:
        return Catalog(policies=policies)

    runtime = replace(table.time.runtime, sleep=table.sleep)
    await CatchUp(get_strict_catalog, table, service, runtime=runtime).replay_or_close_stream("c", "ann", ASKED)
    assert service.sent == [b"on time"]
    assert all(begin < end for begin, end in table.asked)


async def test_a_long_replay_reads_late_messages_of_fast_clocks_before_its_remaining_messages() -> None:
    """A long replay continues with the messages of fast clocks, because the live messages soon reach their times."""
    service, table = SlowService(), Table("1", "2", "3")
    service.time = table.time
    table.add(["late"], measured=60, stored=10)
    table.add(["live"], measured=22, stored=22)
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert service.sent == [b"1", b"2", b"late", b"3"]


async def test_the_second_read_of_a_replay_does_not_begin_before_since() -> None:
    """If ``since`` is only seconds ago, the second read also begins at ``since``."""
    service, table = Service(), Table("1")
    since = OPENED - timedelta(seconds=30)
    await build_catch_up(table, service).replay_or_close_stream(
        "c", "ann", StreamFilters.model_validate({"since": since.isoformat()})
    )
    assert [begin for begin, _ in table.asked if begin < OPENED] == [since, since]


async def test_without_since_or_connection_id_there_is_no_replay() -> None:
    """No query is executed for a stream without ``since`` or for an event without a connection id."""
    service, table = Service(), Table()
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", StreamFilters.model_validate({}))
    await build_catch_up(table, service).replay_or_close_stream("", "ann", ASKED)
    assert (service.sent, table.asked) == ([], [])


async def test_replay_ends_when_the_stream_closes() -> None:
    """After a stream has closed, it gets no more messages, and the table is not read again."""
    service, table = Service(), Table(*(str(number) for number in range(3 * MESSAGES_PER_CHECK)), late=["late"])
    service.open_for = 1
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert len(service.sent) == MESSAGES_PER_CHECK
    assert (len(table.asked), service.closed) == (2, [])


async def test_replay_over_the_limit_closes_the_stream() -> None:
    """A replay that exceeds its limit closes the stream with the reason."""
    service, table = Service(), Table("1", "2", "3")
    await build_catch_up(table, service, max_impulses=2).replay_or_close_stream("c", "ann", ASKED)
    assert service.sent == [b"1", b"2"]
    assert service.closed == [("c", "The replay exceeds 2 messages; request a shorter time range.")]


async def test_replay_timeout_closes_the_stream() -> None:
    """A replay that exceeds its maximum duration closes the stream with the reason."""
    service, table = Service(), Table("1")
    service.gate.clear()
    await build_catch_up(table, service, max_seconds=0.01).replay_or_close_stream("c", "ann", ASKED)
    assert service.closed == [("c", "The replay takes too long; request a shorter time range.")]


async def test_engine_error_closes_the_stream() -> None:
    """An error of the query engine closes the stream with its code and no other details."""
    service, table = Service(), Table()
    table.error = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "secret")
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert service.closed == [("c", "The replay failed: QUERY_ENGINE_UNAVAILABLE.")]


async def test_unexpected_error_closes_the_stream() -> None:
    """An unexpected error closes the stream, so that its client does not wait in vain."""
    service, table = Service(), Table()
    table.error = KeyError("secret")
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert service.closed == [("c", "The replay failed.")]


async def test_failed_messages_are_retried_and_rejected_ones_skipped() -> None:
    """A replayed message is repeated during an outage, and skipped if Web PubSub rejects it."""
    service, table = Service(), Table("1", "2")
    busy = WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", "busy")
    service.failures = [busy, busy, WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", "no")]
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert (service.sent, service.tries, service.closed) == ([b"2"], 4, [])
    service.failures = [busy] * 3
    await build_catch_up(Table("1"), service).replay_or_close_stream("c", "ann", ASKED)
    assert service.closed == [("c", "The replay failed: LIVE_STREAM_UNAVAILABLE.")]


def start_replay(replaying: CatchUp, member: str, number: int | str = "") -> asyncio.Task[None]:
    """Start the replay of a stream whose id is the member's id with a number."""
    return asyncio.create_task(replaying.replay_or_close_stream(f"{member}{number}", member, ASKED))


async def wait_until_sending(service: Service, count: int) -> None:
    """Wait until this number of replays send a message at the same time."""
    async with asyncio.timeout(20):
        while service.at_once < count:  # noqa: ASYNC110  the tasks offer no event to wait for
            await asyncio.sleep(0)


async def test_concurrent_and_waiting_replays_of_a_principal_are_limited() -> None:
    """Half of the replays can be of one principal, a limited number waits, and further ones are rejected."""
    service = Service()
    service.gate.clear()
    replaying = build_catch_up(Table("1"), service)
    tasks = [start_replay(replaying, "many", number) for number in range(MAX_REPLAYS_PER_PRINCIPAL)]
    await wait_until_sending(service, CONCURRENT_REPLAYS // 2)
    await start_replay(replaying, "many", "late")
    assert service.closed == [("manylate", TOO_MANY_REPLAYS)]
    tasks.append(start_replay(replaying, "one"))
    await wait_until_sending(service, CONCURRENT_REPLAYS // 2 + 1)
    assert service.most_at_once == CONCURRENT_REPLAYS // 2 + 1
    service.gate.set()
    await asyncio.gather(*tasks)
    await start_replay(replaying, "many", "again")
    assert (len(service.sent), len(service.closed)) == (MAX_REPLAYS_PER_PRINCIPAL + 2, 1)


async def test_a_replay_that_gets_no_turn_in_time_is_closed_with_the_reason() -> None:
    """A stream whose replay waits too long for a turn learns that the service has too many replays, not its own one."""
    service = Service()
    service.gate.clear()
    replaying = build_catch_up(Table("1"), service)
    occupied = [start_replay(replaying, f"c{number}") for number in range(CONCURRENT_REPLAYS)]
    await wait_until_sending(service, CONCURRENT_REPLAYS)
    replaying._seconds = 0
    await start_replay(replaying, "late")
    assert service.closed == [("late", SERVICE_IS_BUSY)]
    service.gate.set()
    await asyncio.gather(*occupied)


async def test_a_replay_counts_as_work_of_the_member_whose_stream_it_is() -> None:
    """The query engine limits the queries of a replay together with the other queries of the stream's member."""
    service, table = Service(), Table("1")
    await build_catch_up(table, service).replay_or_close_stream("c", "ann", ASKED)
    assert table.readers == {"ann"}
    assert acting_member.get() == ""


async def test_a_replay_that_waits_for_late_messages_delays_no_other_replay() -> None:
    """A replay that waits for late messages does not count as concurrent or waiting, so more replays can begin."""
    service, table, sleeps = Service(), Table("1"), asyncio.Event()
    count = 2 * MAX_REPLAYS_PER_PRINCIPAL

    async def wait_for_late_messages(_: float) -> None:
        await sleeps.wait()

    replaying = build_catch_up(table, service, runtime={"sleep": wait_for_late_messages})
    tasks = [start_replay(replaying, "ann", number) for number in range(count)]
    async with asyncio.timeout(20):
        while len(service.sent) + len(service.closed) < count:  # noqa: ASYNC110  the tasks offer no event to wait for
            await asyncio.sleep(0)
    sleeps.set()
    await asyncio.gather(*tasks)
    assert (len(service.sent), service.closed) == (count, [])


async def test_a_long_replay_ends_before_waiting_replays_begin() -> None:
    """A replay of over 15 seconds does not wait for late messages, so it ends before a waiting replay begins."""
    service, table = SlowService(), Table("1", "2", "3")
    service.time = table.time
    service.gate.clear()
    replaying = build_catch_up(table, service)
    tasks = [start_replay(replaying, f"c{number}") for number in range(2 * CONCURRENT_REPLAYS)]
    await wait_until_sending(service, CONCURRENT_REPLAYS)
    service.gate.set()
    await asyncio.gather(*tasks)
    first = service.receivers[: 3 * CONCURRENT_REPLAYS]
    assert set(first) == {f"c{number}" for number in range(CONCURRENT_REPLAYS)}


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"since": "yesterday"}', b'{"since": 1}', b"\xff"])
def test_an_unknown_connection_state_requests_no_replay(state: bytes) -> None:
    """If the connection state has an unknown format, there is no replay."""
    assert StreamFilters.from_stream_state(state).since is None


@given(st.sampled_from([None, "pump-rig"]), st.sampled_from([None, "cooling"]), st.integers(1, 3600))
def test_filters_are_restored_from_the_state(connection: str | None, surface: str | None, seconds: int) -> None:
    """The filters of a stream are restored from its connection state, with a start time in place of ``windowSec``."""
    asked = StreamFilters.model_validate({"connection": connection, "surface": surface, "windowSec": str(seconds)})
    moment = SINCE + timedelta(microseconds=1)
    kept = asked.to_stream_state(moment)
    recalled = StreamFilters.from_stream_state(
        b"{%s}" % ",".join(f'"{name}":"{each}"' for name, each in kept.items()).encode()
    )
    assert (recalled.connection, recalled.surface) == (connection, surface)
    assert recalled.since == moment - timedelta(seconds=seconds)
    assert StreamFilters(connection=connection).to_stream_state(moment) == {}
