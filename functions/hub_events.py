"""From the host's form of an Event Hub batch to hub events."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import azure.functions as func

from functions.enqueued_times import read_quickly
from shared.telemetry.models import HubEvent

read_quickly()

IOT_HUB_DEVICE = "connection-device-id"
"""The IoT Hub's system property, without the prefix ``iothub-``."""


def hub_events(events: Sequence[func.EventHubEvent]) -> list[HubEvent]:
    """Return the events of a batch with their properties and place.

    The host puts metadata beside the batch, as arrays that every event shares; they are parsed once.

    Raises:
        ValueError: the host's metadata does not say where the events stand; nothing can be told apart then.
    """
    if not events:
        return []
    metadata: Mapping[str, Any] = events[0].metadata or {}
    partition = _partition(metadata)
    properties = _decoded(metadata.get("PropertiesArray")) or [{}] * len(events)
    return [_hub_event(event, partition, _texts(values)) for event, values in zip(events, properties, strict=True)]


def _hub_event(event: func.EventHubEvent, partition: str, properties: Mapping[str, str]) -> HubEvent:
    enqueued_at = event.enqueued_time
    if event.sequence_number is None or enqueued_at is None:
        raise ValueError("the host gave an event without its sequence number or enqueued time")
    return HubEvent(
        body=event.get_body(),
        partition=partition,
        sequence_number=event.sequence_number,
        enqueued_at=_aware(enqueued_at),
        properties=properties,
        device_id=(event.iothub_metadata or {}).get(IOT_HUB_DEVICE, ""),
        partition_key=event.partition_key or "",
    )


def _partition(metadata: Mapping[str, Any]) -> str:
    context = _decoded(metadata.get("PartitionContext")) or {}
    partition = context.get("PartitionId")
    if not isinstance(partition, str):
        raise ValueError("the host did not say which partition a batch is from")  # noqa: TRY004  a missing value too
    return partition


def _decoded(value: Any) -> Any:
    """Return metadata as JSON value; hosts give it as such, or as its text."""
    return json.loads(value) if isinstance(value, str) else value


def _texts(properties: Mapping[str, Any]) -> Mapping[str, str]:
    """Return application properties as texts; AMQP knows numbers and more, which count as their JSON text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in properties.items()
        if value is not None
    }


def _aware(instant: datetime) -> datetime:
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
