"""What travels through the hubs: messages as they come in, impulses as they go on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

TELEMETRY_HUB = "telemetry"
IMPULSES_HUB = "impulses"
UNROUTED = "_unrouted"
"""Connection lookup of what no connection claims: kept in the cold archive and counted, never in the query table."""


@dataclass(frozen=True, slots=True)
class HubMessage:
    """A message to send to a hub.

    Attributes:
        body: the bytes of the event, JSON text.
        partition_key: messages with one key keep their order; the connection's lookup.
        properties: application properties of the event.
    """

    body: bytes
    partition_key: str
    properties: Mapping[str, str]


class HubEvent(NamedTuple):
    """An event as a trigger receives it. A tuple, since a frozen dataclass takes three times as long to make.

    Attributes:
        body: the bytes of the event.
        partition: id of the hub's partition.
        sequence_number: grows along the partition; the same event keeps it when it is delivered again.
        enqueued_at: when the hub took the event; the same on each delivery.
        properties: application properties.
        device_id: the IoT Hub's own device id, empty for other sources.
        partition_key: what the sender chose the partition by, empty where it is not known.
    """

    body: bytes
    partition: str
    sequence_number: int
    enqueued_at: datetime
    properties: Mapping[str, str]
    device_id: str = ""
    partition_key: str = ""


class Impulse(NamedTuple):
    """One normalised telemetry message, the shape that the live stream, the archive and the table share.

    Attributes:
        message_id: ``ID``: unique per message within its connection; removes redelivered copies.
        timestamp: ``Timestamp``: when the source measured, UTC.
        connection: ``Metadata.ConnectionLookup``, or ``_unrouted``.
        surfaces: ``Metadata.SurfaceLookups``: the surfaces that own the connection.
        device_id: ``Subject``.
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
