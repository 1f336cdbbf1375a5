"""Handing impulses on: once each, in order, fresh ones only, and no further than the service lets."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import ABSENT_SECONDS, PRESENT_SECONDS, Audience
from shared.live_stream.ports import OpenStream
from shared.live_stream.publishing import ATTEMPTS, FRESH_FOR, LivePublisher
from shared.telemetry.impulses import decode, encode
from shared.telemetry.models import UNROUTED, HubEvent, Impulse
from shared.timestamps import now

AT = now()


class Service:
    """A message service in memory, at the port."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.readers_of: set[str] = {"a", "b"}
        self.failing: dict[bytes, list[WorkspaceError]] = {}
        self.asked = 0

    async def publish(self, group: str, text: bytes) -> None:
        """Keep a message, or fail as told."""
        if self.failing.get(text):
            raise self.failing[text].pop()
        self.sent.append((group, text))

    async def has_streams(self, group: str) -> bool:
        """Return whether the test put somebody there."""
        self.asked += 1
        return group in self.readers_of

    async def list_streams(self, _group: str) -> AsyncIterator[OpenStream]:
        """Give nobody."""
        for _ in ():
            yield OpenStream("", "")

    async def disconnect(self, _connection_id: str, _reason: str) -> None:
        """Do nothing."""

    async def link(self, _user: str, _expires_at: datetime) -> str:
        """Return nothing."""
        return ""

    async def close(self) -> None:
        """Do nothing."""


def event(number: int, connection: str = "a", age: timedelta = timedelta(0)) -> HubEvent:
    """Return an event of the hub of impulses."""
    return HubEvent(b"%d" % number, "0", number, AT - age, {}, "", connection)


def down() -> WorkspaceError:
    """Return what the port raises when the service does not answer."""
    return WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", "down")


async def _no_sleep(_: float) -> None:
    return


def publisher(service: Service) -> LivePublisher:
    """Return a publisher that does not wait."""
    return LivePublisher(service, Audience(service), sleep=_no_sleep)


async def test_order_per_connection() -> None:
    """Messages of one connection keep their order; the impulses that no connection claimed are nobody's."""
    service = Service()
    events = [event(number, "ab"[number % 2]) for number in range(100)]
    await publisher(service).run([*events, event(100, UNROUTED), event(101, "")], AT)
    for offset, group in enumerate("ab"):
        assert [text for name, text in service.sent if name == group] == [b"%d" % n for n in range(offset, 100, 2)]
    assert len(service.sent) == 100


async def test_what_is_stale_is_left_out() -> None:
    """What waited longer than a minute is not told as live."""
    service, fresh_for = Service(), FRESH_FOR
    tried = publisher(service)
    await tried.run([event(1, age=fresh_for * 2), event(2, age=fresh_for), event(3)], AT)
    assert [text for _, text in service.sent] == [b"2", b"3"]
    assert (tried.counters.stale, tried.counters.published) == (1, 2)


async def test_nothing_is_sent_where_nobody_listens() -> None:
    """The service is asked once for a group, not for each message."""
    service = Service()
    service.readers_of = {"b"}
    tried = publisher(service)
    await tried.run([event(number, "ab"[number % 2]) for number in range(20)], AT)
    assert {group for group, _ in service.sent} == {"b"}
    assert (tried.counters.unheard, service.asked) == (10, 2)


async def test_a_short_failure_is_outlasted() -> None:
    """A message is tried again before the next one is sent, and only once more than needed."""
    service = Service()
    service.failing = {b"2": [down()] * (ATTEMPTS - 1)}
    await publisher(service).run([event(number) for number in range(5)], AT)
    assert [text for _, text in service.sent] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_batch_given_again_repeats_nothing() -> None:
    """After an outage the rest of a batch is sent, and nothing that was sent before."""
    service = Service()
    service.failing = {b"4": [down()] * ATTEMPTS}
    tried = publisher(service)
    events = [event(number, "ab"[number % 2]) for number in range(10)]
    with pytest.raises(WorkspaceError):
        await tried.run(events, AT)
    await tried.run(events, AT)
    assert sorted(text for _, text in service.sent) == [b"%d" % number for number in range(10)]
    assert tried.counters.failures == 1


def _named(number: int, message_id: str, connection: str = "a") -> HubEvent:
    impulse = Impulse(message_id, AT, connection, (), "d", {}, {"n": number})
    return HubEvent(encode(impulse), "0", number, AT, {}, "", connection)


async def test_what_is_sent_again_is_not_heard_again() -> None:
    """An ID goes out once for each connection, within a batch and over batches."""
    service = Service()
    tried = publisher(service)
    await tried.run([_named(1, "x"), _named(2, "x"), _named(3, "y"), _named(4, "x", "b")], AT)
    await tried.run([_named(5, "x"), _named(6, "z")], AT)
    assert sorted((group, decode(text).message_id) for group, text in service.sent) == [
        ("a", "x"),
        ("a", "y"),
        ("a", "z"),
        ("b", "x"),
    ]
    assert tried.counters.repeated == 2


async def test_what_failed_is_no_repeat() -> None:
    """An impulse that could not be handed on is, when its batch or its sender comes again."""
    service = Service()
    first, again = _named(1, "x"), _named(2, "x")
    service.failing = {first.body: [down()] * ATTEMPTS}
    tried = publisher(service)
    with pytest.raises(WorkspaceError):
        await tried.run([first], AT)
    await tried.run([first], AT)
    await tried.run([again], AT)
    assert service.sent == [("a", first.body)]


async def test_what_the_service_will_never_take_is_left_out() -> None:
    """A refused message does not stop those after it."""
    service = Service()
    service.failing = {b"1": [WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", "too large")]}
    tried = publisher(service)
    await tried.run([event(number) for number in range(3)], AT)
    assert [text for _, text in service.sent] == [b"0", b"2"]
    assert tried.counters.refused == 1


async def test_a_listener_that_is_let_in_is_never_overlooked() -> None:
    """A group counts as listened to from before its listener joins it; an empty one is asked for again soon."""
    service, moment = Service(), 0.0
    audience = Audience(service, lambda: moment)
    service.readers_of = set()
    assert not await audience.can_have_listeners("a")
    audience.expect(("a",))
    assert await audience.can_have_listeners("a")
    moment += PRESENT_SECONDS
    assert not await audience.can_have_listeners("a")
    service.readers_of = {"a"}
    assert not await audience.can_have_listeners("a")
    moment += ABSENT_SECONDS
    assert await audience.can_have_listeners("a")


async def test_a_listener_let_in_while_the_service_is_asked() -> None:
    """An answer that was overtaken by a listener does not count."""
    service = Service()
    audience = Audience(service)
    asked = service.has_streams

    async def overtaken(group: str) -> bool:
        answer = await asked(group)
        audience.expect((group,))
        return answer

    service.readers_of = set()
    service.has_streams = overtaken  # type: ignore[method-assign]  # the answer comes late
    assert await audience.can_have_listeners("a")


@pytest.mark.parametrize(("apart_ms", "rests"), [(0.1, True), (10, False)])
async def test_only_busy_ingestion_goes_first(apart_ms: float, rests: bool) -> None:  # noqa: FBT001  a parameter
    """Who is seconds behind makes room for ingestion where events come fast, and catches up where they do not."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    service = Service()
    events = [event(number, age=timedelta(seconds=5, milliseconds=-apart_ms * number)) for number in range(100)]
    publisher = LivePublisher(service, Audience(service), shares_processor=True, sleep=sleep)
    await publisher.run(events, AT)
    assert len(service.sent) == 100
    assert bool(slept) is rests
