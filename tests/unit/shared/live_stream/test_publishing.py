"""Tests of publishing impulses: once, in order, while recent, and within the limits of Web PubSub."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import ABSENT_SECONDS, PRESENT_SECONDS, Audience
from shared.live_stream.ports import OpenStream
from shared.live_stream.publishing import ATTEMPTS, FRESH_FOR, REMEMBERED_SECONDS, LivePublisher, RecentImpulses
from shared.runtime import Runtime
from shared.telemetry.impulses import decode_impulse, encode_impulse
from shared.telemetry.models import UNROUTED, HubEvent, Impulse
from shared.timestamps import now
from tests.virtual_time import VirtualTime

AT = now()


class Service:
    """Fake message service in memory."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.readers_of: set[str] = {"a", "b"}
        self.failing: dict[bytes, list[WorkspaceError]] = {}
        self.asked = 0

    async def publish(self, group: str, text: bytes) -> None:
        """Record a message, or raise the error that the test has set."""
        if self.failing.get(text):
            raise self.failing[text].pop()
        self.sent.append((group, text))

    async def has_streams(self, group: str) -> bool:
        """Return whether the test has added a listener to the group."""
        self.asked += 1
        return group in self.readers_of

    async def iterate_streams(self, _group: str) -> AsyncIterator[OpenStream]:
        """Yield no streams, because no test needs them."""
        for _ in ():
            yield OpenStream("", "")

    async def disconnect(self, _connection_id: str, _reason: str) -> None:
        """Do nothing: this fake service has no open streams."""

    async def create_stream_url(self, _user: str, _expires_at: datetime) -> str:
        """Return an empty URL, because no test opens a stream."""
        return ""

    async def close(self) -> None:
        """Do nothing, because this fake holds no resources."""


def build_event(number: int, connection: str = "a", age: timedelta = timedelta(0)) -> HubEvent:
    """Return an event with an impulse (telemetry message)."""
    return HubEvent(b"%d" % number, "0", number, AT - age, {}, "", connection)


def build_outage_error() -> WorkspaceError:
    """Return the error that the port raises during an outage."""
    return WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", "down")


async def _skip_sleep(_: float) -> None:
    return


def build_publisher(service: Service) -> LivePublisher:
    """Return a publisher that does not wait between attempts."""
    return LivePublisher(service, Audience(service), runtime=Runtime(sleep=_skip_sleep))


async def test_messages_of_a_connection_are_published_in_order() -> None:
    """Messages of a connection are published in order; impulses without a connection are not published."""
    service = Service()
    events = [build_event(number, "ab"[number % 2]) for number in range(100)]
    await build_publisher(service).publish_events([*events, build_event(100, UNROUTED), build_event(101, "")], AT)
    for offset, group in enumerate("ab"):
        assert [text for name, text in service.sent if name == group] == [b"%d" % n for n in range(offset, 100, 2)]
    assert len(service.sent) == 100


async def test_stale_impulses_are_not_published() -> None:
    """Impulses older than a minute are not published."""
    service, fresh_for = Service(), FRESH_FOR
    tried = build_publisher(service)
    await tried.publish_events([build_event(1, age=fresh_for * 2), build_event(2, age=fresh_for), build_event(3)], AT)
    assert [text for _, text in service.sent] == [b"2", b"3"]
    assert (tried.counters.stale, tried.counters.published) == (1, 2)


async def test_groups_without_listeners_get_no_messages() -> None:
    """If a group has no listeners, Web PubSub is called once for a batch instead of once for each message."""
    service = Service()
    service.readers_of = {"b"}
    tried = build_publisher(service)
    await tried.publish_events([build_event(number, "ab"[number % 2]) for number in range(20)], AT)
    assert {group for group, _ in service.sent} == {"b"}
    assert (tried.counters.unheard, service.asked) == (10, 2)


async def test_a_message_is_repeated_during_an_outage() -> None:
    """During an outage, a message is sent repeatedly until it succeeds; only then the next one is sent."""
    service = Service()
    service.failing = {b"2": [build_outage_error()] * (ATTEMPTS - 1)}
    await build_publisher(service).publish_events([build_event(number) for number in range(5)], AT)
    assert [text for _, text in service.sent] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_batch_retried_after_an_outage_repeats_no_message() -> None:
    """After an outage, the messages of a batch that were not published before the outage are published."""
    service = Service()
    service.failing = {b"4": [build_outage_error()] * ATTEMPTS}
    tried = build_publisher(service)
    events = [build_event(number, "ab"[number % 2]) for number in range(10)]
    with pytest.raises(WorkspaceError):
        await tried.publish_events(events, AT)
    await tried.publish_events(events, AT)
    assert sorted(text for _, text in service.sent) == [b"%d" % number for number in range(10)]
    assert tried.counters.failures == 1


def _build_event(number: int, message_id: str, connection: str = "a") -> HubEvent:
    impulse = Impulse(message_id, AT, connection, (), "d", {}, {"n": number})
    return HubEvent(encode_impulse(impulse), "0", number, AT, {}, "", connection)


async def test_messages_with_a_repeated_id_are_published_once() -> None:
    """A message id is published once per connection, in one batch and over several batches."""
    service = Service()
    tried = build_publisher(service)
    await tried.publish_events(
        [_build_event(1, "x"), _build_event(2, "x"), _build_event(3, "y"), _build_event(4, "x", "b")], AT
    )
    await tried.publish_events([_build_event(5, "x"), _build_event(6, "z")], AT)
    assert sorted((group, decode_impulse(text).message_id) for group, text in service.sent) == [
        ("a", "x"),
        ("a", "y"),
        ("a", "z"),
        ("b", "x"),
    ]
    assert tried.counters.repeated == 2


async def test_a_failed_impulse_is_published_when_it_is_delivered_again() -> None:
    """An impulse that could not be published is published when it is delivered again."""
    service = Service()
    first, again = _build_event(1, "x"), _build_event(2, "x")
    service.failing = {first.body: [build_outage_error()] * ATTEMPTS}
    tried = build_publisher(service)
    with pytest.raises(WorkspaceError):
        await tried.publish_events([first], AT)
    await tried.publish_events([first], AT)
    await tried.publish_events([again], AT)
    assert service.sent == [("a", first.body)]


async def test_rejected_message_is_skipped() -> None:
    """If Web PubSub rejects a message, the next messages are still published."""
    service = Service()
    service.failing = {b"1": [WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", "too large")]}
    tried = build_publisher(service)
    await tried.publish_events([build_event(number) for number in range(3)], AT)
    assert [text for _, text in service.sent] == [b"0", b"2"]
    assert tried.counters.refused == 1


async def test_a_group_can_have_listeners_from_the_admission_on() -> None:
    """From the admission of a listener, its group counts as occupied; an empty group is checked again soon."""
    service, clock = Service(), VirtualTime()
    audience = Audience(service, runtime=clock.runtime)
    service.readers_of = set()
    assert not await audience.can_have_listeners("a")
    audience.expect_listener(("a",))
    assert await audience.can_have_listeners("a")
    clock.advance(PRESENT_SECONDS)
    assert not await audience.can_have_listeners("a")
    service.readers_of = {"a"}
    assert not await audience.can_have_listeners("a")
    clock.advance(ABSENT_SECONDS)
    assert await audience.can_have_listeners("a")


async def test_a_group_is_occupied_after_an_admission_during_its_check() -> None:
    """If a listener is admitted during a check, its group counts as occupied, whatever the check returns."""
    service = Service()
    audience = Audience(service)
    asked = service.has_streams

    async def admit_during_check(group: str) -> bool:
        answer = await asked(group)
        audience.expect_listener((group,))
        return answer

    service.readers_of = set()
    service.has_streams = admit_during_check  # type: ignore[method-assign]  # the reply is delayed
    assert await audience.can_have_listeners("a")


async def test_batch_without_listeners_is_skipped() -> None:
    """A batch is skipped only if none of its groups can have listeners; skipped messages are counted."""
    service = Service()
    service.readers_of = {"a"}
    heard = LivePublisher(service, Audience(service))
    assert await heard.try_skip_batch_without_listeners({"b", UNROUTED}, 7)
    assert not await heard.try_skip_batch_without_listeners({"a", "b"}, 5)
    assert heard.counters.unheard == 7
    everybody = LivePublisher(service, None)
    assert not await everybody.try_skip_batch_without_listeners({"b"}, 3)
    assert everybody.counters.unheard == 0


@pytest.mark.parametrize(("apart_ms", "rests"), [(0.1, True), (10, False)])
async def test_a_publisher_behind_pauses_for_busy_ingestion(apart_ms: float, rests: bool) -> None:  # noqa: FBT001  a parameter
    """If many events arrive, a publisher that is seconds behind pauses, so that ingestion has priority."""
    slept: list[float] = []

    async def record_sleep(seconds: float) -> None:
        slept.append(seconds)

    service = Service()
    events = [build_event(number, age=timedelta(seconds=5, milliseconds=-apart_ms * number)) for number in range(100)]
    publisher = LivePublisher(service, Audience(service), shares_processor=True, runtime=Runtime(sleep=record_sleep))
    await publisher.publish_events(events, AT)
    assert len(service.sent) == 100
    assert bool(slept) is rests


AT = datetime(2026, 1, 5, tzinfo=UTC)


def encode_impulse_text(message_id: str, number: int = 0) -> bytes:
    """Return an impulse as JSON text."""
    return encode_impulse(Impulse(message_id, AT, "a", (), "d", {}, {"n": number, "t": '","Timestamp":"'}))


IDS = st.text(min_size=1, max_size=8) | st.sampled_from(['","Timestamp":"', '\\","Timestamp":"', "\\", '"', '\\"'])


@given(IDS, IDS)
def test_only_the_id_identifies_an_impulse(one: str, other: str) -> None:
    """An impulse is a repetition if its id was published before, whatever its payload is."""
    repeats = RecentImpulses()
    repeats.remember_published("a", encode_impulse_text(one))
    assert repeats.is_recently_published("a", encode_impulse_text(one, 1))
    assert repeats.is_recently_published("a", encode_impulse_text(other)) is (one == other)
    assert not repeats.is_recently_published("b", encode_impulse_text(one))


def test_a_text_that_is_not_an_impulse_is_never_a_repetition() -> None:
    """A text that is not an impulse is never a repetition."""
    repeats = RecentImpulses()
    repeats.remember_published("a", b"{}")
    assert not repeats.is_recently_published("a", b"{}")


def test_published_ids_are_forgotten_after_ten_minutes_or_many_others() -> None:
    """A published id is forgotten after ten minutes, or after a number of other ids."""
    clock = VirtualTime()
    repeats = RecentImpulses(2, runtime=clock.runtime)
    repeats.remember_published("a", encode_impulse_text("old"))
    clock.advance(REMEMBERED_SECONDS)
    assert not repeats.is_recently_published("a", encode_impulse_text("old"))
    for number in range(3):
        repeats.remember_published("a", encode_impulse_text(str(number)))
    assert [repeats.is_recently_published("a", encode_impulse_text(str(number))) for number in range(3)] == [
        False,
        True,
        True,
    ]
