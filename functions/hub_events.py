"""Conversion of the Functions host's Event Hub batches to hub events.

Separate from ``triggers`` because it depends on the host's metadata and on internals of the SDK.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import azure.functions as func
from azure.functions.eventhub import EventHubTriggerConverter

from shared.telemetry.models import HubEvent

IOT_HUB_DEVICE = "connection-device-id"
"""IoT Hub's system property for the device id, without the prefix ``iothub-``."""

_ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", re.ASCII)
_sdk_parse = EventHubTriggerConverter._parse_datetime  # noqa: SLF001  replaced below, and used as the fallback


def parse_enqueued_time(text: str | None) -> datetime | None:
    """Parse an enqueued time as the SDK does; None if the text is missing.

    The time is aware if the text has a time zone, else naive.

    Raises:
        ValueError: the text is not a valid time.
    """
    if text and _ISO_8601.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # the parser of the SDK then raises an error with its own message
    return _sdk_parse(text)


# The SDK tries up to sixteen formats for each event, which takes 130 microseconds for the format that the host sends:
# more than the rest of a trigger's work. Formats other than ISO 8601 still use the SDK's parser.
EventHubTriggerConverter._parse_datetime = staticmethod(parse_enqueued_time)  # type: ignore[method-assign, assignment]  # noqa: SLF001  the SDK has no public hook


def read_hub_events(events: Sequence[func.EventHubEvent]) -> list[HubEvent]:
    """Convert a batch of the Functions host to hub events with their properties and positions.

    The host passes the metadata of all events as shared arrays, which are parsed once per batch.

    Raises:
        ValueError: the host's metadata lacks the partition, a sequence number or an enqueued time.
    """
    if not events:
        return []
    metadata: Mapping[str, Any] = events[0].metadata or {}
    partition = _read_partition(metadata)
    properties = _decode_metadata(metadata.get("PropertiesArray")) or [{}] * len(events)
    return [
        _to_hub_event(event, partition, _to_texts(values)) for event, values in zip(events, properties, strict=True)
    ]


def _to_hub_event(event: func.EventHubEvent, partition: str, properties: Mapping[str, str]) -> HubEvent:
    enqueued_at = event.enqueued_time
    if event.sequence_number is None or enqueued_at is None:
        raise ValueError("the event has no sequence number or no enqueued time")
    return HubEvent(
        body=event.get_body(),
        partition=partition,
        sequence_number=event.sequence_number,
        enqueued_at=enqueued_at if enqueued_at.tzinfo else enqueued_at.replace(tzinfo=UTC),
        properties=properties,
        device_id=(event.iothub_metadata or {}).get(IOT_HUB_DEVICE, ""),
        partition_key=event.partition_key or "",
    )


def _read_partition(metadata: Mapping[str, Any]) -> str:
    context = _decode_metadata(metadata.get("PartitionContext")) or {}
    partition = context.get("PartitionId")
    if not isinstance(partition, str):
        raise ValueError("the batch has no partition id")  # noqa: TRY004  a missing value too
    return partition


def _decode_metadata(value: Any) -> Any:
    """Return metadata as a JSON value; some versions of the host pass it as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _to_texts(properties: Mapping[str, Any]) -> Mapping[str, str]:
    """Convert application properties to texts; AMQP values other than strings become JSON text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in properties.items()
        if value is not None
    }
