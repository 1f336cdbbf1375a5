"""Tests of sending to Azure Event Hubs, with a fake producer: batches, repeats and errors."""

import asyncio
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.eventhub import EventData, EventDataBatch, _client_base
from azure.eventhub._pyamqp.error import AMQPConnectionError, AMQPException
from azure.eventhub.aio import EventHubProducerClient, _client_base_async
from azure.eventhub.aio._producer_async import EventHubProducer
from azure.eventhub.exceptions import AuthenticationError, ConnectionLostError, EventHubError

from shared.backends.azure.event_hubs import ATTEMPTS, PRODUCERS_PER_HUB, EventHubsSender, Producer, _connect_producer
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime
from shared.telemetry.models import HubMessage


class FakeProducer:
    """Fake producer that records batches; the SDK creates them, with a small maximum size."""

    def __init__(self, size: int = 1000) -> None:
        self.size = size
        self.sent: list[tuple[str, list[bytes]]] = []
        self.properties: list[dict[Any, Any]] = []
        self.failures: list[Exception | None] = []
        self.closed = False

    async def create_batch(self, *, partition_key: str) -> EventDataBatch:
        """Return an empty batch, which the SDK creates."""
        return EventDataBatch(max_size_in_bytes=self.size, partition_key=partition_key)

    async def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:  # noqa: ASYNC109
        """Record a batch, or raise the error that the test has set for this attempt."""
        assert timeout > 0
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        events = [event for event in event_data_batch._internal_events if isinstance(event, EventData)]
        self.sent.append((str(event_data_batch._partition_key), [event.body_as_str().encode() for event in events]))
        self.properties += [dict(event.properties or {}) for event in events]

    async def close(self) -> None:
        """Record that the producer was closed."""
        self.closed = True


async def _skip_pause(_seconds: float) -> None:
    """Return at once."""


def _build_sender(producer: FakeProducer, sleep: Callable[[float], Awaitable[None]] = _skip_pause) -> EventHubsSender:
    return EventHubsSender("unused.example", "", connect=lambda _hub: producer, runtime=Runtime(sleep=sleep))


def _build_message(number: int, key: str = "rig", size: int = 0) -> HubMessage:
    return HubMessage(b"%06d" % number + bytes(size), key, {"messageId": f"m-{number}"})


async def test_messages_with_one_partition_key_are_in_one_batch() -> None:
    """Messages with one partition key are in one batch and in order."""
    producer = FakeProducer()
    sender = _build_sender(producer)
    await sender.send("impulses", [_build_message(1), _build_message(2, "press"), _build_message(3)])
    await sender.send("impulses", [_build_message(4)])
    assert producer.sent == [("rig", [b"000001", b"000003"]), ("press", [b"000002"]), ("rig", [b"000004"])]
    assert producer.properties[0] == {"messageId": "m-1"}


class StuckProducer(FakeProducer):
    """Fake producer that sends nothing until ``released`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.released = asyncio.Event(), asyncio.Event()

    async def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:  # noqa: ASYNC109
        """Record a batch after ``released`` is set; a second batch meanwhile is an error."""
        assert not self.started.is_set() or self.released.is_set()
        self.started.set()
        await self.released.wait()
        await super().send_batch(event_data_batch, timeout=timeout)


async def test_a_waiting_send_delays_no_keys_of_other_producers() -> None:
    """While one producer of a hub waits, the other ones send; each partition key always has the same producer."""
    stuck = StuckProducer()
    producers: list[FakeProducer] = []

    def connect(_hub: str) -> Producer:
        producers.append(FakeProducer() if producers else stuck)
        return producers[-1]

    sender = EventHubsSender("unused.example", "", connect=connect)
    waiting = asyncio.create_task(sender.send("telemetry", [_build_message(0, "rig")]))
    await stuck.started.wait()
    keys = [f"line-{number}" for number in range(100)]
    places = {key: zlib.crc32(key.encode()) % PRODUCERS_PER_HUB for key in ("rig", *keys)}
    independent = [key for key in keys if places[key] != places["rig"]]
    assert independent
    for _ in range(2):
        await sender.send("telemetry", [_build_message(1, key) for key in independent])
    assert not waiting.done()
    stuck.released.set()
    await waiting
    assert len(producers) == PRODUCERS_PER_HUB
    senders = Counter(key for producer in producers for key in {key for key, _ in producer.sent})
    assert senders == Counter(["rig", *independent])
    await sender.send("impulses", [_build_message(0, "rig")])
    await sender.close()
    assert len(producers) == PRODUCERS_PER_HUB + 1
    assert all(producer.closed for producer in producers)


async def test_batches_split_at_the_size_limit() -> None:
    """Messages that exceed one batch are sent in several batches, all of them and in order."""
    producer = FakeProducer(size=1000)
    sender = _build_sender(producer)
    await sender.send("impulses", [_build_message(number, size=200) for number in range(50)])
    assert len(producer.sent) > 10
    assert [body[:6] for _, bodies in producer.sent for body in bodies] == [b"%06d" % number for number in range(50)]


async def test_a_too_large_message_is_rejected() -> None:
    """A message that is larger than a batch is rejected as too large."""
    sender = _build_sender(FakeProducer(size=1000))
    with pytest.raises(WorkspaceError) as caught:
        await sender.send("impulses", [_build_message(1), _build_message(2, size=2000)])
    assert (caught.value.kind, caught.value.code) == (Kind.TOO_LARGE, "MESSAGE_TOO_LARGE")


def _build_busy_error() -> EventHubError:
    error = EventHubError("The request was terminated because the namespace is being throttled.")
    error.error = "server-busy"
    return error


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (_build_busy_error(), Kind.THROTTLED, "THROTTLED"),
        (ConnectionLostError("lost"), Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE"),
        (AuthenticationError("CBS token"), Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE"),
        (ClientAuthenticationError("no identity"), Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE"),
        (OSError("socket"), Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE"),
        (TimeoutError(), Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE"),
    ],
)
async def test_failures_of_a_hub_are_converted_to_errors(failure: Exception, kind: Kind, code: str) -> None:
    """If a hub fails, throttling or an outage is reported without details, and a later send can succeed."""
    producer = FakeProducer()
    producer.failures = [failure] * ATTEMPTS
    sender = _build_sender(producer)
    with pytest.raises(WorkspaceError) as caught:
        await sender.send("telemetry", [_build_message(1)])
    assert (caught.value.kind, caught.value.code) == (kind, code)
    assert caught.value.members["retryAfter"] == 2
    assert str(failure) not in str(caught.value) or not str(failure)
    await sender.send("telemetry", [_build_message(1)])
    assert producer.sent == [("rig", [b"000001"])]


async def test_the_error_is_throttled_only_if_the_hub_has_surely_stored_nothing() -> None:
    """If an attempt was lost, later throttling is reported as an outage, because clients repeat throttled requests."""
    producer = FakeProducer()
    producer.failures = [ConnectionLostError("lost"), *[_build_busy_error()] * (ATTEMPTS - 1)]
    with pytest.raises(WorkspaceError) as caught:
        await _build_sender(producer).send("telemetry", [_build_message(1)])
    assert caught.value.code == "TELEMETRY_HUB_UNAVAILABLE"


async def _end_time(_seconds: float) -> None:
    raise TimeoutError


async def test_an_outage_states_whether_messages_are_possibly_stored() -> None:
    """If the time ends during a send, messages are possibly stored; not if the hub rejected every send before."""
    stuck, busy = StuckProducer(), FakeProducer()
    busy.failures = [_build_busy_error()]
    for sender, is_possibly_stored in (
        (EventHubsSender("unused.example", "", connect=lambda _hub: stuck, timeout_seconds=0), True),
        (_build_sender(busy, _end_time), False),
    ):
        with pytest.raises(WorkspaceError) as caught:
            await sender.send("telemetry", [_build_message(1)])
        assert caught.value.code == "TELEMETRY_HUB_UNAVAILABLE"
        assert ("Some messages are possibly stored." in caught.value.detail) == is_possibly_stored


async def test_a_batch_that_could_not_be_created_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the connection is lost before a batch is sent, and the hub is busy later, the error is throttling."""
    producer = FakeProducer()
    failures = [ConnectionLostError("lost")]

    async def create_batch(*, partition_key: str) -> EventDataBatch:
        if failures:
            raise failures.pop()
        return await FakeProducer().create_batch(partition_key=partition_key)

    monkeypatch.setattr(producer, "create_batch", create_batch)
    producer.failures = [_build_busy_error()] * ATTEMPTS
    with pytest.raises(WorkspaceError) as caught:
        await _build_sender(producer).send("telemetry", [_build_message(1)])
    assert caught.value.code == "THROTTLED"


async def test_batches_after_the_first_are_repeated_until_they_are_stored() -> None:
    """After the hub has stored the first batch, the sender repeats the others in order, more often than the first."""
    producer = FakeProducer(size=1000)
    producer.failures = [None, *[_build_busy_error(), ConnectionLostError("lost")] * ATTEMPTS]
    await _build_sender(producer).send("telemetry", [_build_message(number, size=400) for number in range(6)])
    assert not producer.failures
    assert [body[:6] for _, bodies in producer.sent for body in bodies] == [b"%06d" % number for number in range(6)]


async def test_an_error_after_the_first_batch_states_how_many_messages_are_stored() -> None:
    """If the time ends before all batches are stored, the error is no throttling, and states what is stored."""
    producer = FakeProducer(size=1000)
    producer.failures = [None, _build_busy_error()]
    with pytest.raises(WorkspaceError) as caught:
        await _build_sender(producer, _end_time).send(
            "telemetry", [_build_message(each, size=400) for each in range(6)]
        )
    stored = len(producer.sent[0][1])
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE")
    assert f"confirmed only {stored} of 6 messages" in caught.value.detail


def _replace_network(monkeypatch: pytest.MonkeyPatch, errors: Iterator[Exception]) -> None:
    """Replace the network of the SDK's client; each send raises the next error."""

    async def reject_events(_producer: EventHubProducer, **_: Any) -> None:
        raise next(errors)

    async def list_no_partitions(client: Any) -> None:
        client._partition_ids = []

    monkeypatch.setattr(EventHubProducer, "_send_event_data", reject_events)
    monkeypatch.setattr(EventHubProducerClient, "_get_partitions", list_no_partitions)


def _build_busy_amqp_error() -> AMQPException:
    return AMQPException(condition=b"com.microsoft:server-busy", description="busy")


async def test_the_sdk_does_not_pause_while_it_holds_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a hub is busy, the SDK reports it after two attempts without a pause, so that other sends can begin."""
    pauses: list[float] = []

    def compute_pause(*arguments: Any) -> float:
        pauses.append(_client_base._get_backoff_time(*arguments))
        return pauses[-1]

    _replace_network(monkeypatch, iter([_build_busy_amqp_error(), _build_busy_amqp_error()]))
    monkeypatch.setattr(_client_base_async, "_get_backoff_time", compute_pause)
    producer = _connect_producer("unused.invalid", "", "telemetry")
    batch = EventDataBatch(max_size_in_bytes=1000, partition_key="rig")
    batch.add(EventData(b"{}"))
    with pytest.raises(EventHubError) as caught:
        await producer.send_batch(batch, timeout=60)
    await producer.close()
    assert (caught.value.error, pauses) == ("server-busy", [0, 0])


@pytest.mark.parametrize(
    ("first_error", "code"),
    [
        (_build_busy_amqp_error(), "THROTTLED"),
        (AMQPConnectionError(b"amqp:connection:forced"), "TELEMETRY_HUB_UNAVAILABLE"),
        (TimeoutError(), "TELEMETRY_HUB_UNAVAILABLE"),
    ],
)
async def test_both_sends_of_an_sdk_call_decide_whether_the_error_is_throttled(
    monkeypatch: pytest.MonkeyPatch, first_error: Exception, code: str
) -> None:
    """If the first send of an SDK call was lost and the hub was busy at the second one, the error is no throttling."""
    errors = chain([first_error], (_build_busy_amqp_error() for _ in range(2 * ATTEMPTS - 1)))
    _replace_network(monkeypatch, errors)
    producer = _connect_producer("unused.invalid", "", "telemetry")
    monkeypatch.setattr(producer, "create_batch", FakeProducer().create_batch)
    sender = EventHubsSender("unused.invalid", "", connect=lambda _hub: producer, runtime=Runtime(sleep=_skip_pause))
    with pytest.raises(WorkspaceError) as caught:
        await sender.send("telemetry", [_build_message(1)])
    await sender.close()
    assert (caught.value.code, list(errors)) == (code, [])


async def test_a_sender_signs_in_only_when_it_sends() -> None:
    """A sender that sends nothing needs neither an identity nor a network."""
    await EventHubsSender("unused.example", "").close()
