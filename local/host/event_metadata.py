"""Inputs and trigger metadata of events, in the format of the Functions host."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from local.host.worker_protocol import CollectionBytes, CollectionSInt64, CollectionString, TypedData
from shared.backends.embedded.hub import StoredEvent
from shared.backends.embedded.hub_file import instant_from_microseconds
from shared.timestamps import now, rfc3339

_CACHE_SIZE = 1_000


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
