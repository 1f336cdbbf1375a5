"""Models of hub messages, hub events and impulses (normalised telemetry messages)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

TELEMETRY_HUB = "telemetry"
IMPULSES_HUB = "impulses"
UNROUTED = "_unrouted"
"""Connection of events that are invalid or match no connection; they are archived and counted, but not queryable."""


class HubMessage(NamedTuple):
    """Telemetry message that this service sends to an event hub.

    The class is a tuple, because the creation of a frozen dataclass takes three times as long.

    Attributes:
        body: bytes of the event, JSON text.
        partition_key: lookup (id in URLs) of the connection; messages with the same key keep their order.
        properties: application properties of the event.
    """

    body: bytes
    partition_key: str
    properties: Mapping[str, str]


class HubEvent(NamedTuple):
    """Event that a trigger function receives from an event hub.

    The class is a tuple, because the creation of a frozen dataclass takes three times as long.

    Attributes:
        body: bytes of the event.
        partition: id of the hub's partition.
        sequence_number: ascending in the partition; the same for each delivery of the event.
        enqueued_at: time at which the hub stored the event; the same for each delivery.
        properties: application properties.
        device_id: device id that IoT Hub sets; empty for other sources.
        partition_key: partition key that the sender chose; empty if unknown.
    """

    body: bytes
    partition: str
    sequence_number: int
    enqueued_at: datetime
    properties: Mapping[str, str]
    device_id: str = ""
    partition_key: str = ""


class Impulse(NamedTuple):
    """Normalised telemetry message, in the shape that live stream, archive and table share.

    The description of each attribute begins with its property in the JSON text.

    Attributes:
        message_id: ``ID``: unique within its connection, to recognise redelivered copies.
        timestamp: ``Timestamp``: time of measurement, UTC.
        connection: ``Metadata.ConnectionLookup``, or ``_unrouted``.
        surfaces: ``Metadata.SurfaceLookups``: the surfaces (groups of connections) that contain the connection.
        device_id: ``Subject``: id of the device that sent the message.
        headers: ``Headers``: application properties of the event.
        payload: ``Payload``: any JSON object.
    """

    message_id: str
    timestamp: datetime
    connection: str
    surfaces: tuple[str, ...]
    device_id: str
    headers: Mapping[str, str]
    payload: Mapping[str, Any]
