"""What telemetry needs from the outside."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.catalog.snapshot import Catalog
from shared.telemetry.models import HubMessage

type CurrentCatalog = Callable[[], Awaitable[Catalog]]
"""Gives the catalog as this process knows it; cheap enough to be asked for each batch."""


class EventSender(Protocol):
    """Sends messages to a hub."""

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages; when this returns, the hub holds every one of them durably.

        Messages with one partition key keep their order. After an error the caller may send again: some of the
        messages may then stand in the hub twice.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE`` or THROTTLED ``THROTTLED``.
        """
        ...


@dataclass(frozen=True, slots=True)
class ArrivedMessages:
    """What one trigger batch brought for one connection from one partition.

    Attributes:
        connection: the connection's lookup, or ``_unrouted``.
        source: names the hub and partition; sequence numbers compare only within it.
        sequence_numbers: of the arrived messages, ascending.
        last_message: the newest enqueued time among them.
    """

    connection: str
    source: str
    sequence_numbers: tuple[int, ...]
    last_message: datetime


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """What is known of a connection while it runs.

    Attributes:
        status: CONNECTING, CONNECTED, DISCONNECTED or ERROR.
        messages_received: events that the hub took, each once however often it was delivered to us; a message that a
            caller sends again is an event again.
        last_message: when the newest message came in, None before the first.
    """

    status: str
    messages_received: int
    last_message: datetime | None


def derive_status(enabled: bool, state: ConnectionState | None) -> str:  # noqa: FBT001  said of one connection
    """Return a connection's status; a disabled one is disconnected, whatever was seen of it last."""
    if not enabled:
        return "DISCONNECTED"
    return "CONNECTING" if state is None else state.status


class ConnectionStateStore(Protocol):
    """Keeps status and statistics of connections."""

    async def record(self, arrivals: Sequence[ArrivedMessages]) -> None:
        """Count arrivals whose sequence number is above the highest one counted for that connection and source."""
        ...

    async def set_status(self, connection: str, status: str) -> None:
        """Set a connection's status (contract of ConnectionStatus)."""
        ...

    async def states(self) -> Mapping[str, ConnectionState]:
        """Return the state of every connection that has one, by lookup."""
        ...
