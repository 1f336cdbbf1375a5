"""Conversion of the Event Hub batches from the Functions host to the service's hub events.

This module is separate from ``triggers`` because it depends on the host's metadata and on internals of the SDK.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, repeat
from operator import methodcaller
from types import SimpleNamespace
from typing import Any, cast, overload

import azure.functions as func
from azure.functions.eventhub import EventHubTriggerConverter
from azure.functions.meta import Datum

from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.models import HubEvent
from shared.text_formats.large_json import long_integer_to_int

IOT_HUB_DEVICE = "iothub-connection-device-id"
"""IoT Hub's system property for the device id."""

_CACHED_TIMES = 1_024
_TEXT = frozenset({str})
_NUMBER = frozenset({int})
_BINARY = "collection_bytes"
"""Type of the data of a trigger with many events whose data type is binary."""

_ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", re.ASCII)
_sdk_parse = EventHubTriggerConverter._parse_datetime  # noqa: SLF001  replaced below, and used as the fallback


def parse_enqueued_time(text: str | None) -> datetime | None:
    """Parse the time at which an event was enqueued, as the SDK does; return None if the text is None or empty.

    The result has a time zone only if the text states a time zone.

    Raises:
        ValueError: the text is not a valid time.
    """
    if text and _ISO_8601.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # the parser of the SDK then raises an error with its own message
    return _sdk_parse(text)


@lru_cache(maxsize=_CACHED_TIMES)
def _parse_enqueued_time_to_utc(text: str | None) -> datetime | None:
    """Parse the time at which an event was enqueued; a time without a time zone is in UTC.

    Results are cached, because many events have the same time.
    """
    parsed = parse_enqueued_time(text)
    return parsed.replace(tzinfo=UTC) if parsed and not parsed.tzinfo else parsed


# The SDK tries up to sixteen formats for each event, which takes 130 microseconds for the format that the host sends:
# more than the rest of a trigger's work. Formats other than ISO 8601 still use the SDK's parser.
EventHubTriggerConverter._parse_datetime = staticmethod(parse_enqueued_time)  # type: ignore[method-assign, assignment]  # noqa: SLF001  the SDK has no public hook


class TriggerBatch(Sequence[func.EventHubEvent]):
    """Batch of an Event Hub trigger as the host sends it; hub events are read from it without the SDK's event objects.

    The creation of the SDK's objects would take longer than all other work of a trigger. They are created only if code
    uses the batch as a sequence.

    Args:
        bodies: bytes of the events.
        metadata: metadata of the trigger; its arrays have one element for each event, except that the host omits empty
            partition keys.
    """

    def __init__(self, bodies: Sequence[bytes], metadata: Mapping[str, Any]) -> None:
        self.bodies = bodies
        self.metadata = metadata

    def __len__(self) -> int:
        """Return the number of events in the batch."""
        return len(self.bodies)

    @overload
    def __getitem__(self, index: int) -> func.EventHubEvent: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[func.EventHubEvent]: ...
    def __getitem__(self, index: int | slice) -> func.EventHubEvent | Sequence[func.EventHubEvent]:
        """Return the event at an index of the batch as an object of the SDK."""
        data = Datum(SimpleNamespace(bytes=self.bodies), _BINARY)
        events: Sequence[func.EventHubEvent] = _sdk_decode(data, self.metadata)
        return events[index]


def _decode_event_batch(
    cls: type[EventHubTriggerConverter],  # noqa: ARG001  a class method of the SDK
    data: Datum,
    trigger_metadata: Mapping[str, Any],
) -> Sequence[func.EventHubEvent]:
    """Decode the data of an Event Hub trigger: bytes to a :class:`TriggerBatch`, other data to the SDK's events.

    This function replaces the method of the SDK that decodes such data.
    """
    if data.type == _BINARY:
        return TriggerBatch(data.value.bytes, trigger_metadata)
    events: Sequence[func.EventHubEvent] = _sdk_decode(data, trigger_metadata)
    return events


_sdk_decode = EventHubTriggerConverter.decode_multiple_events
EventHubTriggerConverter.decode_multiple_events = classmethod(_decode_event_batch)  # type: ignore[method-assign, assignment]


def read_hub_events(events: Sequence[func.EventHubEvent]) -> list[HubEvent]:
    """Convert the batch of an Event Hub trigger to hub events with their properties and positions.

    Args:
        events: the :class:`TriggerBatch` that the worker passes to a function whose trigger has the data type binary.

    Raises:
        ValueError: the trigger delivered no bytes; or the host's metadata lacks the partition, a sequence number or an
            enqueued time, or describes a different number of events.
    """
    if not events:
        return []
    if not isinstance(events, TriggerBatch):
        detail = "the Event Hub trigger delivered no bytes; set the data type of its binding to binary"
        raise ValueError(detail)  # noqa: TRY004  as for other invalid batches
    places = _parse_metadata_value(events.metadata, "SystemPropertiesArray") or ()
    properties = _parse_metadata_value(events.metadata, "PropertiesArray") or [{}] * len(events)
    if not len(events) == len(places) == len(properties):
        raise ValueError(
            "the metadata of the Event Hub batch describe a different number of events than the batch contains"
        )
    return list(
        map(
            HubEvent,
            events.bodies,
            repeat(_read_partition_id(events.metadata)),
            _read_sequence_numbers(places),
            _read_enqueued_times(places),
            _convert_event_properties_to_texts(properties),
            _read_metadata_texts(places, IOT_HUB_DEVICE),
            _read_metadata_texts(places, "PartitionKey"),
        )
    )


def read_partition_keys_if_complete(events: Sequence[func.EventHubEvent]) -> frozenset[str] | None:
    """Return the partition keys of a batch without reading its events; None if the metadata does not state all keys.

    The host omits empty keys from its metadata, so a list with fewer keys than events is incomplete.
    """
    if not isinstance(events, TriggerBatch):
        return None
    datum = events.metadata.get("PartitionKeyArray")
    keys = getattr(getattr(datum, "value", None), "string", None)
    return frozenset(keys) if keys is not None and len(keys) == len(events) else None


def _read_metadata_texts(event_metadata: Sequence[Mapping[str, Any]], property_name: str) -> list[str]:
    """Return the text of one metadata property for each event; it is empty if the value is missing or not a text.

    The type of the value is checked, because a sender can add annotations of any type and with any name to an event.
    """
    values = [place.get(property_name) for place in event_metadata]
    return [value if isinstance(value, str) else "" for value in values]


def _read_sequence_numbers(event_metadata: Sequence[Mapping[str, Any]]) -> list[int]:
    numbers = [place.get("SequenceNumber") for place in event_metadata]
    if not set(map(type, numbers)) <= _NUMBER:
        raise ValueError("an event of the Event Hub batch lacks its sequence number")
    return cast("list[int]", numbers)


def _read_enqueued_times(event_metadata: Sequence[Mapping[str, Any]]) -> list[datetime]:
    times = [_parse_enqueued_time_to_utc(place.get("EnqueuedTimeUtc")) for place in event_metadata]
    if None in times:
        raise ValueError("an event of the Event Hub batch lacks its enqueued time")
    return cast("list[datetime]", times)


def _read_partition_id(metadata: Mapping[str, Any]) -> str:
    context = _parse_metadata_value(metadata, "PartitionContext") or {}
    partition = context.get("PartitionId")
    if not isinstance(partition, str):
        raise ValueError("the metadata of the Event Hub batch lack the partition id")  # noqa: TRY004  a missing value too
    return partition


def _parse_metadata_value(metadata: Mapping[str, Any], name: str) -> Any:
    """Parse an element of the trigger's metadata.

    Instead of the JSON value, some versions of the host send a JSON string that contains its JSON text.
    """
    datum = metadata.get(name)
    value = None if datum is None else datum.value
    for _ in range(2):
        if isinstance(value, str):
            value = _parse_metadata_json(value)
    return value


def _parse_metadata_json(text: str) -> Any:
    try:
        return parse_lossless_json(text.encode())
    except ValueError:
        # The host writes application properties that are not finite as NaN and Infinity, which Python reads.
        return _replace_unpaired_surrogates(json.loads(text))


def _replace_unpaired_surrogates(value: Any) -> Any:
    """Return a JSON value whose texts have question marks in place of unpaired surrogates, which UTF-8 cannot encode.

    An event with such a text could never be sent.
    """
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _convert_event_properties_to_texts(properties: Sequence[Mapping[str, Any] | None]) -> Sequence[Mapping[str, str]]:
    """Convert the application properties of the events to texts; AMQP values other than strings become JSON text."""
    known = [values or {} for values in properties]
    # All values are checked at once, because almost all events have texts only.
    if set(map(type, chain.from_iterable(map(_get_values, known)))) <= _TEXT:
        return known
    return [_convert_property_values_to_texts(values) for values in known]


_get_values = methodcaller("values")


def _convert_property_values_to_texts(properties: Mapping[str, Any]) -> Mapping[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=long_integer_to_int)
        for name, value in properties.items()
        if value is not None
    }
