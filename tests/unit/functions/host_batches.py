"""Event Hub batches in the form in which the Functions host sends them."""

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import azure.functions as func
from azure.functions import meta
from azure.functions.eventhub import EventHubTriggerConverter

from functions.hub_events import TriggerBatch

BODIES = [b'{"a":1}', b"\xff\x00", b""]
SYSTEM_PROPERTIES: list[dict[str, Any]] = [
    {"SequenceNumber": 41, "Offset": "4100", "PartitionKey": "rig", "EnqueuedTimeUtc": "2026-01-05T08:00:00.1234567Z"},
    {"SequenceNumber": 42, "Offset": "4200", "EnqueuedTimeUtc": "2026-01-05T08:00:01.5"},
    {
        "SequenceNumber": 43,
        "Offset": "4300",
        "PartitionKey": None,
        "EnqueuedTimeUtc": "2026-01-05T08:00:02Z",
        "iothub-connection-device-id": "rig-7",
    },
]
PROPERTIES: list[dict[str, Any]] = [{"messageId": "m"}, {"line": 3, "on": True, "none": None}, {}]


def decode_batch(**changes: object) -> Sequence[func.EventHubEvent]:
    """Return a batch as the worker library decodes it, with the given metadata changed."""
    metadata = {
        "PartitionContext": {"PartitionId": "5", "ConsumerGroup": "$Default"},
        "PropertiesArray": PROPERTIES,
        "SystemPropertiesArray": SYSTEM_PROPERTIES,
    } | changes
    encoded = {name: meta.Datum(json.dumps(value), "json") for name, value in metadata.items() if value is not None}
    return _decode_with_sdk(encoded)


def decode_batch_with_keys(keys: Sequence[str]) -> Sequence[func.EventHubEvent]:
    """Return a batch whose metadata has partition keys but no sequence numbers or offsets."""
    stated = meta.Datum(SimpleNamespace(string=keys), "collection_string")
    return _decode_with_sdk({"PartitionKeyArray": stated, "SystemPropertiesArray": meta.Datum("[]", "json")})


def _decode_with_sdk(metadata: Mapping[str, meta.Datum]) -> Sequence[func.EventHubEvent]:
    data = meta.Datum(SimpleNamespace(bytes=BODIES), "collection_bytes")
    events = EventHubTriggerConverter.decode(data, trigger_metadata=metadata)
    assert isinstance(events, TriggerBatch)
    return events
