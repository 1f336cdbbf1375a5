"""Event Hub triggers: a loop for each function and partition delivers batches and commits offsets."""

import itertools
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from local.host.hub_access import HubAccess
from local.host.retries import REDELIVERY
from local.host.shutdown import ShutdownSignal
from local.host.worker import FunctionFailed, LoadedFunction, invoke
from local.host.worker_protocol import CollectionBytes, CollectionSInt64, CollectionString, RetryContext, TypedData
from shared.backends.embedded.hub import StoredEvent
from shared.backends.embedded.hub_file import instant_from_microseconds
from shared.observability.logs import fields, get_logger
from shared.timestamps import now, rfc3339

_CACHE_SIZE = 1_000
DEFAULT_GROUP = "$Default"
_LOGGER = get_logger("local.event_hubs")
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Function and consumer group that read a partition."""

    function: str
    hub: str
    group: str
    partition: str


def event_data(event: StoredEvent, *, binary: bool) -> TypedData:
    """Return the input for one event: bytes if ``dataType`` of the binding is binary, else text."""
    return TypedData(bytes=event.body) if binary else TypedData(string=_text(event))


def batch_data(events: Sequence[StoredEvent], *, binary: bool) -> TypedData:
    """Return the input for a batch.

    As on the Functions host, bodies become text unless ``dataType`` is binary: invalid UTF-8 is lost, and an empty
    text is omitted, which fails the batch.
    """
    if binary:
        return TypedData(collection_bytes=CollectionBytes(bytes=[event.body for event in events]))
    return _strings([_text(event) for event in events])


def batch_metadata(events: Sequence[StoredEvent], reader: PartitionReader) -> dict[str, TypedData]:
    """Return the trigger metadata of a batch (``cardinality`` many)."""
    offsets = _strings([_offset(event) for event in events])
    return _common_metadata(reader) | {
        "PartitionKeyArray": _strings([event.partition_key for event in events]),
        "OffsetArray": offsets,
        "OffsetStringArray": offsets,
        "SequenceNumberArray": TypedData(
            collection_sint64=CollectionSInt64(sint64=[event.sequence_number for event in events])
        ),
        "EnqueuedTimeUtcArray": _json([_time(event.enqueued) for event in events]),
        "PropertiesArray": TypedData(json=f"[{','.join([event.properties for event in events])}]"),
        "SystemPropertiesArray": _json([_system_properties(event) for event in events]),
    }


def single_metadata(event: StoredEvent, reader: PartitionReader) -> dict[str, TypedData]:
    """Return the trigger metadata of one event (``cardinality`` one)."""
    return _common_metadata(reader) | {
        "PartitionKey": TypedData(string=event.partition_key),
        "Offset": TypedData(string=_offset(event)),
        "OffsetString": TypedData(string=_offset(event)),
        "SequenceNumber": _json(event.sequence_number),
        "EnqueuedTimeUtc": _json(_time(event.enqueued)),
        "Properties": TypedData(json=event.properties),
        "SystemProperties": _json(_system_properties(event)),
    }


def _common_metadata(reader: PartitionReader) -> dict[str, TypedData]:
    partition = _json(
        {
            "IsCheckpointingAfterInvocation": True,
            "FullyQualifiedNamespace": "localhost",
            "EventHubName": reader.hub,
            "ConsumerGroup": reader.group,
            "PartitionId": reader.partition,
        }
    )
    system = {"MethodName": reader.function, "UtcNow": rfc3339(now()), "RandGuid": str(uuid.uuid4())}
    return {"TriggerPartitionContext": partition, "PartitionContext": partition, "sys": _json(system)}


def _system_properties(event: StoredEvent) -> dict[str, Any]:
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.sequence_number,
        "OffsetString": _offset(event),
        "PartitionKey": event.partition_key or None,
        "EnqueuedTimeUtc": _time(event.enqueued),
    }


def _offset(event: StoredEvent) -> str:
    """Return the event's offset, which is its sequence number as text."""
    return str(event.sequence_number)


@lru_cache(maxsize=_CACHE_SIZE)
def _time(enqueued: int) -> str:
    """Return the enqueued time with the offset +00:00.

    The Functions host omits the zone. The SDK then needs 130 microseconds per event to detect the format, in the event
    loop that serves HTTP here. With the offset it needs a tenth of that time.
    """
    return instant_from_microseconds(enqueued).isoformat()


def _text(event: StoredEvent) -> str:
    return event.body.decode("utf-8", errors="replace")


def _strings(texts: Sequence[str]) -> TypedData:
    return TypedData(collection_string=CollectionString(string=[text for text in texts if text]))


def _json(value: Any) -> TypedData:
    return TypedData(json=orjson.dumps(value).decode())


@dataclass(frozen=True, slots=True)
class EventHubSetting:
    """Declaration of an Event Hub function, with resolved app settings.

    Attributes:
        function: the function.
        hub: name of the hub.
        group: name of the consumer group.
        many: whether it receives batches instead of single events.
        binary: whether it receives bytes instead of text.
        collect_seconds: seconds to wait after a partial batch, so that more events collect.
    """

    function: LoadedFunction
    hub: str
    group: str
    many: bool
    binary: bool
    collect_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Delivery:
    """Invocation to make: its input and the sequence numbers of its events."""

    data: TypedData
    metadata: dict[str, TypedData]
    first: int
    last: int


class PartitionLoop:
    """Ordered delivery of one partition to one function, with a commit after each batch."""

    def __init__(
        self, setting: EventHubSetting, partition: str, hub: HubAccess, batch_size: int, stopping: ShutdownSignal
    ) -> None:
        self._setting = setting
        self._reader = PartitionReader(setting.function.name, setting.hub, setting.group, partition)
        self._hub = hub
        self._batch_size = batch_size
        self._stopping = stopping

    async def run(self) -> None:
        """Deliver until the host stops; a running batch is finished first."""
        while not self._stopping.is_set():
            try:
                await self._deliver_all()
            except sqlite3.Error:
                _LOGGER.exception("the event hub cannot be read", extra=self._log_fields())
                await self._stopping.wait_for(_RETRY_SECONDS)

    async def _deliver_all(self) -> None:
        place = (self._reader.hub, self._reader.group, self._reader.partition)
        after = await self._hub.run(lambda reader: reader.read_offset(*place))
        while not self._stopping.is_set():
            arrival = self._hub.next_arrival()
            events = await self._read(after)
            if not events:
                await arrival.wait()
                continue
            for delivery in self._deliveries(events):
                if not await self._deliver(delivery):
                    return
                after = delivery.last
                await self._commit(after)
            if self._setting.collect_seconds and len(events) < self._batch_size:
                await self._stopping.wait_for(self._setting.collect_seconds)

    async def _read(self, after: int) -> list[StoredEvent]:
        where, limit = self._reader, self._batch_size
        return await self._hub.run(lambda reader: reader.read_rows(where.hub, where.partition, after, limit))

    async def _commit(self, sequence_number: int) -> None:
        where = self._reader
        await self._hub.run(lambda reader: reader.commit(where.hub, where.group, where.partition, sequence_number))

    def _deliveries(self, events: list[StoredEvent]) -> Iterable[_Delivery]:
        binary = self._setting.binary
        if self._setting.many:
            data = batch_data(events, binary=binary)
            metadata = batch_metadata(events, self._reader)
            return [_Delivery(data, metadata, events[0].sequence_number, events[-1].sequence_number)]
        return (
            _Delivery(
                event_data(event, binary=binary),
                single_metadata(event, self._reader),
                event.sequence_number,
                event.sequence_number,
            )
            for event in events
        )

    async def _deliver(self, delivery: _Delivery) -> bool:
        """Invoke the function until it succeeds or its retries end; return False if the host stops first."""
        policy = self._setting.function.retry or REDELIVERY
        for retries in itertools.count():
            try:
                await invoke(
                    self._setting.function,
                    delivery.data,
                    metadata=delivery.metadata,
                    retry=RetryContext(retries, policy.max_retry_count),
                )
            except FunctionFailed as failure:
                self._log_failure(failure, delivery, retries)
            else:
                return True
            if policy.is_exhausted(retries):
                _LOGGER.critical("events are dropped after the last retry", extra=self._log_fields(delivery))
                return True
            if await self._stopping.wait_for(policy.delay(retries)):
                return False
        raise AssertionError("itertools.count() does not end")

    def _log_failure(self, failure: FunctionFailed, delivery: _Delivery, retries: int) -> None:
        named = self._log_fields(delivery)
        named["fields"] |= {"retries": retries, "exception": failure.stack_trace}
        _LOGGER.error("a batch failed: %s", failure, extra=named)

    def _log_fields(self, delivery: _Delivery | None = None) -> dict[str, dict[str, object]]:
        named = fields(
            function=self._reader.function,
            hub=self._reader.hub,
            group=self._reader.group,
            partition=self._reader.partition,
        )
        if delivery is not None:
            named["fields"] |= {"first": delivery.first, "last": delivery.last}
        return named
