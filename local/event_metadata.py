"""What the Functions host tells a function about the events of a batch, in the form in which it tells it."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.protos import CollectionBytes, CollectionSInt64, CollectionString, TypedData
from shared.telemetry.models import HubEvent
from shared.timestamps import now, rfc3339


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Who reads which partition."""

    function: str
    hub: str
    group: str
    partition: str


def body(event: HubEvent, *, binary: bool) -> TypedData:
    """Return one event as a function's input: bytes where its binding says ``dataType`` binary, else text."""
    return TypedData(bytes=event.body) if binary else TypedData(string=_text(event))


def bodies(events: Sequence[HubEvent], *, binary: bool) -> TypedData:
    """Return a batch as a function's input.

    As on the Functions host, bodies become text unless the binding says ``dataType`` binary: bytes that are not UTF-8
    are lost, and an empty text is left out, which fails the batch.
    """
    if binary:
        return TypedData(collection_bytes=CollectionBytes(bytes=[event.body for event in events]))
    return _strings([_text(event) for event in events])


def of_batch(events: Sequence[HubEvent], reader: PartitionReader) -> dict[str, TypedData]:
    """Return the trigger metadata of a batch (``cardinality`` many)."""
    return _surroundings(reader) | {
        "PartitionKeyArray": _strings([event.partition_key for event in events]),
        "OffsetArray": _strings([_offset(event) for event in events]),
        "OffsetStringArray": _strings([_offset(event) for event in events]),
        "SequenceNumberArray": TypedData(
            collection_sint64=CollectionSInt64(sint64=[event.sequence_number for event in events])
        ),
        "EnqueuedTimeUtcArray": _json([_time(event.enqueued_at) for event in events]),
        "PropertiesArray": _json([dict(event.properties) for event in events]),
        "SystemPropertiesArray": _json([_system_properties(event) for event in events]),
    }


def of_event(event: HubEvent, reader: PartitionReader) -> dict[str, TypedData]:
    """Return the trigger metadata of one event (``cardinality`` one)."""
    return _surroundings(reader) | {
        "PartitionKey": TypedData(string=event.partition_key),
        "Offset": TypedData(string=_offset(event)),
        "OffsetString": TypedData(string=_offset(event)),
        "SequenceNumber": _json(event.sequence_number),
        "EnqueuedTimeUtc": _json(_time(event.enqueued_at)),
        "Properties": _json(dict(event.properties)),
        "SystemProperties": _json(_system_properties(event)),
    }


def _surroundings(reader: PartitionReader) -> dict[str, TypedData]:
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


def _system_properties(event: HubEvent) -> dict[str, Any]:
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": event.sequence_number,
        "OffsetString": _offset(event),
        "PartitionKey": event.partition_key or None,
        "EnqueuedTimeUtc": _time(event.enqueued_at),
    }


def _offset(event: HubEvent) -> str:
    """Return the event's offset, an opaque text; here its sequence number."""
    return str(event.sequence_number)


def _time(instant: datetime) -> str:
    """Return an instant with the offset +00:00.

    The Functions host leaves the zone out, and functions get a naive datetime; the SDK then spends 130 microseconds an
    event on guessing the form, in the event loop that serves HTTP here. With the offset it spends a tenth.
    """
    return instant.astimezone(UTC).isoformat()


def _text(event: HubEvent) -> str:
    return event.body.decode("utf-8", errors="replace")


def _strings(texts: Sequence[str]) -> TypedData:
    return TypedData(collection_string=CollectionString(string=[text for text in texts if text]))


def _json(value: Any) -> TypedData:
    return TypedData(json=json.dumps(value))
