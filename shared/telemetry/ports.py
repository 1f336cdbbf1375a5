"""Ports of telemetry: catalog, hubs and connection states."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.catalog.snapshot import Catalog
from shared.telemetry.models import HubMessage

type CurrentCatalog = Callable[[], Awaitable[Catalog]]
"""Returns the cached catalog of this process. Called for each batch, so it must be cheap."""


class EventSender(Protocol):
    """Sender of messages to a hub."""

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages; when this returns, the hub has stored all of them durably.

        Messages with the same partition key keep their order. After an error, the caller can send again; the hub can
        then contain some messages twice.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE`` or THROTTLED ``THROTTLED``.
        """
        ...


@dataclass(frozen=True, slots=True)
class ArrivedMessages:
    """Messages of one trigger batch for one connection from one partition.

    Attributes:
        connection: lookup of the connection, or ``_unrouted``.
        source: hub and partition; sequence numbers are comparable only within it.
        sequence_numbers: of the messages, ascending.
        last_message: latest enqueued time of the messages.
    """

    connection: str
    source: str
    sequence_numbers: tuple[int, ...]
    last_message: datetime


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """Runtime state of a connection.

    Attributes:
        status: CONNECTING, CONNECTED, DISCONNECTED or ERROR.
        messages_received: number of events in the hub, each counted once for any number of deliveries. A message that a
            caller sends twice is two events.
        last_message: time of the latest message; None before the first.
    """

    status: str
    messages_received: int
    last_message: datetime | None


def derive_status(enabled: bool, state: ConnectionState | None) -> str:  # noqa: FBT001  a connection's flag
    """Return a connection's status; a disabled connection is always disconnected."""
    if not enabled:
        return "DISCONNECTED"
    return "CONNECTING" if state is None else state.status


class ConnectionStateStore(Protocol):
    """Storage of status and statistics of connections."""

    async def record(self, arrivals: Sequence[ArrivedMessages]) -> None:
        """Count messages with sequence numbers above the highest number counted for their connection and source."""
        ...

    async def set_status(self, connection: str, status: str) -> None:
        """Set a connection's status (ConnectionStatus of the contract)."""
        ...

    async def states(self) -> Mapping[str, ConnectionState]:
        """Return the state of every known connection by lookup."""
        ...
