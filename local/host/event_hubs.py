"""Event Hub triggers. For each function and partition, a loop calls the function with events and commits offsets."""

import asyncio
import itertools
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from local.host.hub_access import HubAccess
from local.host.retries import REDELIVERY
from local.host.shutdown import ShutdownSignal
from local.host.worker import FunctionFailed, LoadedFunction, invoke_function
from local.host.worker_protocol import CollectionBytes, CollectionSInt64, CollectionString, RetryContext, TypedData
from shared.backends.embedded.hub import StoredEvent
from shared.observability.logs import fields, get_logger
from shared.timestamps import format_rfc3339, from_unix_microseconds, now

_CACHE_SIZE = 1_000
DEFAULT_GROUP = "$Default"
_LOGGER = get_logger("local.event_hubs")
_QUIET_SECONDS = 0.5
"""Seconds without a new event after which the next turn of a function that collects events begins."""

_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PartitionReaderNames:
    """Names of a trigger function and of the event hub, consumer group and partition that it reads."""

    function: str
    hub: str
    group: str
    partition: str


def build_event_input(event: StoredEvent, *, as_bytes: bool) -> TypedData:
    """Build the trigger input for one event: bytes if the binding's ``dataType`` is binary, else text."""
    return TypedData(bytes=event.body) if as_bytes else TypedData(string=_decode_body(event))


def build_batch_input(events: Sequence[StoredEvent], *, as_bytes: bool) -> TypedData:
    """Build the trigger input for a batch of events.

    As on the Functions host, bodies become text unless the binding's ``dataType`` is binary. Invalid UTF-8 is replaced,
    and empty texts are omitted. A batch with omitted texts fails, because its metadata describes more events.
    """
    if as_bytes:
        return TypedData(collection_bytes=CollectionBytes(bytes=[event.body for event in events]))
    return _to_typed_non_empty_texts([_decode_body(event) for event in events])


def build_batch_metadata(events: Sequence[StoredEvent], reader: PartitionReaderNames) -> dict[str, TypedData]:
    """Build the trigger metadata of a batch of events, for a function that receives batches (``cardinality`` many)."""
    offsets = _to_typed_non_empty_texts([_format_offset(event) for event in events])
    return _build_common_metadata(reader) | {
        "PartitionKeyArray": _to_typed_non_empty_texts([event.partition_key for event in events]),
        "OffsetArray": offsets,
        "OffsetStringArray": offsets,
        "SequenceNumberArray": TypedData(
            collection_sint64=CollectionSInt64(sint64=[event.sequence_number for event in events])
        ),
        "EnqueuedTimeUtcArray": _to_typed_json([_format_enqueued_time(event.enqueued) for event in events]),
        "PropertiesArray": TypedData(json=f"[{','.join([event.properties for event in events])}]"),
        "SystemPropertiesArray": _to_typed_json([_build_system_properties(event) for event in events]),
    }


def build_event_metadata(event: StoredEvent, reader: PartitionReaderNames) -> dict[str, TypedData]:
    """Build the trigger metadata of one event, for a function that receives single events (``cardinality`` one)."""
    return _build_common_metadata(reader) | {
        "PartitionKey": TypedData(string=event.partition_key),
        "Offset": TypedData(string=_format_offset(event)),
        "OffsetString": TypedData(string=_format_offset(event)),
        "SequenceNumber": _to_typed_json(event.sequence_number),
        "EnqueuedTimeUtc": _to_typed_json(_format_enqueued_time(event.enqueued)),
        "Properties": TypedData(json=event.properties),
        "SystemProperties": _to_typed_json(_build_system_properties(event)),
    }


def _build_common_metadata(reader: PartitionReaderNames) -> dict[str, TypedData]:
    partition = _to_typed_json(
        {
            "IsCheckpointingAfterInvocation": True,
            "FullyQualifiedNamespace": "localhost",
            "EventHubName": reader.hub,
            "ConsumerGroup": reader.group,
            "PartitionId": reader.partition,
        }
    )
    system = {"MethodName": reader.function, "UtcNow": format_rfc3339(now()), "RandGuid": str(uuid.uuid4())}
    return {"TriggerPartitionContext": partition, "PartitionContext": partition, "sys": _to_typed_json(system)}


def _build_system_properties(event: StoredEvent) -> dict[str, Any]:
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.sequence_number,
        "OffsetString": _format_offset(event),
        "PartitionKey": event.partition_key or None,
        "EnqueuedTimeUtc": _format_enqueued_time(event.enqueued),
    }


def _format_offset(event: StoredEvent) -> str:
    """Return an event's offset as text; in this event hub, the offset equals the sequence number."""
    return str(event.sequence_number)


@lru_cache(maxsize=_CACHE_SIZE)
def _format_enqueued_time(enqueued_microseconds: int) -> str:
    """Format the time at which an event was enqueued, in microseconds since 1970, as ISO 8601 with the offset +00:00.

    The Functions host omits the offset. The SDK then needs 130 microseconds per event to detect the format, and blocks
    the event loop that also serves HTTP here. With the offset, the SDK needs a tenth of that time.
    """
    return from_unix_microseconds(enqueued_microseconds).isoformat()


def _decode_body(event: StoredEvent) -> str:
    return event.body.decode("utf-8", errors="replace")


def _to_typed_non_empty_texts(texts: Sequence[str]) -> TypedData:
    return TypedData(collection_string=CollectionString(string=[text for text in texts if text]))


def _to_typed_json(value: Any) -> TypedData:
    return TypedData(json=orjson.dumps(value).decode())


@dataclass(frozen=True, slots=True)
class EventHubSetting:
    """Configuration of a function with an Event Hub trigger, with the values of app settings inserted.

    Attributes:
        function: function that receives the events.
        hub: name of the event hub.
        group: name of the function's consumer group.
        many: whether the function receives batches of events instead of single events.
        binary: whether the function receives bytes instead of text.
        collect_seconds: while events keep arriving, the function receives them in turns, which begin this number of
            seconds after each other; 0 delivers all events immediately.
    """

    function: LoadedFunction
    hub: str
    group: str
    many: bool
    binary: bool
    collect_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Delivery:
    """Pending call of an Event Hub function: its input, and the sequence numbers of its first and last event."""

    data: TypedData
    metadata: dict[str, TypedData]
    first: int
    last: int


class _CollectionTurn(NamedTuple):
    """Turn in which a function receives the events that were stored when the turn began.

    The loop then waits and lets new events collect until the next turn.

    Attributes:
        last: sequence number of the newest event when the turn began.
        next_seconds: time of the event loop's clock at which the next turn begins at the latest.
    """

    last: int
    next_seconds: float


class PartitionLoop:
    """Loop that calls a function with the events of one partition in order, and commits the offset after each batch."""

    def __init__(
        self, setting: EventHubSetting, partition: str, hub: HubAccess, batch_size: int, stopping: ShutdownSignal
    ) -> None:
        self._setting = setting
        self._reader = PartitionReaderNames(setting.function.name, setting.hub, setting.group, partition)
        self._hub = hub
        self._batch_size = batch_size
        self._stopping = stopping

    async def run(self) -> None:
        """Deliver events until the host stops.

        A batch that has begun is finished before the loop ends, unless its function fails.
        """
        while not self._stopping.is_set():
            try:
                await self._deliver_events_until_stopped()
            except sqlite3.Error:
                _LOGGER.exception("the event hub cannot be read", extra=self._build_log_fields())
                await self._stopping.wait_until_set(_RETRY_SECONDS)

    async def _deliver_events_until_stopped(self) -> None:
        place = (self._reader.hub, self._reader.group, self._reader.partition)
        after = await self._hub.run_with_reader(lambda reader: reader.read_offset(*place))
        turn = await self._begin_collection_turn()
        while not self._stopping.is_set():
            arrival = self._hub.get_new_events_signal(self._reader.hub, self._reader.partition)
            events = await self._read_events(after)
            if not events:
                await arrival.wait()
                turn = await self._begin_collection_turn()
                continue
            for delivery in self._build_deliveries(events):
                if not await self._try_deliver_or_drop(delivery):
                    return
                after = delivery.last
                await self._commit_offset(after)
            if self._setting.collect_seconds and after >= turn.last:
                await self._wait_while_events_arrive(turn.next_seconds)
                turn = await self._begin_collection_turn()

    async def _begin_collection_turn(self) -> _CollectionTurn:
        if not self._setting.collect_seconds:
            return _CollectionTurn(0, 0.0)
        hub, partition = self._reader.hub, self._reader.partition
        last = await self._hub.run_with_reader(lambda reader: reader.read_last_assigned_sequence_number(hub, partition))
        return _CollectionTurn(last, asyncio.get_running_loop().time() + self._setting.collect_seconds)

    async def _wait_while_events_arrive(self, deadline_seconds: float) -> None:
        """Wait until no event has arrived for about half a second, the host stops, or the deadline has passed.

        Args:
            deadline_seconds: time of the event loop's clock.
        """
        clock = asyncio.get_running_loop().time
        while (left := deadline_seconds - clock()) > 0 and not self._stopping.is_set():
            arrival = self._hub.get_new_events_signal(self._reader.hub, self._reader.partition)
            try:
                async with asyncio.timeout(min(_QUIET_SECONDS, left)):
                    await arrival.wait()
            except TimeoutError:
                return

    async def _read_events(self, after_sequence: int) -> list[StoredEvent]:
        where, limit = self._reader, self._batch_size
        return await self._hub.run_with_reader(
            lambda reader: reader.read_rows(where.hub, where.partition, after_sequence, limit)
        )

    async def _commit_offset(self, sequence_number: int) -> None:
        where = self._reader
        await self._hub.run_with_reader(
            lambda reader: reader.store_offset(where.hub, where.group, where.partition, sequence_number)
        )

    def _build_deliveries(self, events: list[StoredEvent]) -> Iterable[_Delivery]:
        binary = self._setting.binary
        if self._setting.many:
            data = build_batch_input(events, as_bytes=binary)
            metadata = build_batch_metadata(events, self._reader)
            return [_Delivery(data, metadata, events[0].sequence_number, events[-1].sequence_number)]
        return (
            _Delivery(
                build_event_input(event, as_bytes=binary),
                build_event_metadata(event, self._reader),
                event.sequence_number,
                event.sequence_number,
            )
            for event in events
        )

    async def _try_deliver_or_drop(self, delivery: _Delivery) -> bool:
        """Call the function with events until it succeeds; after the last failed retry, drop the events.

        Return False if the host stops first, else True.
        """
        policy = self._setting.function.retry or REDELIVERY
        for retry_count in itertools.count():
            try:
                await invoke_function(
                    self._setting.function,
                    delivery.data,
                    metadata=delivery.metadata,
                    retry=RetryContext(retry_count, policy.max_retry_count),
                )
            except FunctionFailed as failure:
                self._log_failure(failure, delivery, retry_count)
            else:
                return True
            if policy.is_exhausted(retry_count):
                _LOGGER.critical("events are dropped after the last retry", extra=self._build_log_fields(delivery))
                return True
            if await self._stopping.wait_until_set(policy.compute_delay_seconds(retry_count)):
                return False
        raise AssertionError("unreachable: the loop over itertools.count() has no end")

    def _log_failure(self, failure: FunctionFailed, delivery: _Delivery, retry_count: int) -> None:
        named = self._build_log_fields(delivery)
        named["fields"] |= {"retries": retry_count, "exception": failure.stack_trace}
        _LOGGER.error("a function failed to process a batch of events: %s", failure, extra=named)

    def _build_log_fields(self, delivery: _Delivery | None = None) -> dict[str, dict[str, object]]:
        named = fields(
            function=self._reader.function,
            hub=self._reader.hub,
            group=self._reader.group,
            partition=self._reader.partition,
        )
        if delivery is not None:
            named["fields"] |= {"first": delivery.first, "last": delivery.last}
        return named
