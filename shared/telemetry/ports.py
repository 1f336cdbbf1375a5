"""Ports of telemetry: workspace catalog, event hubs and connection states."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.catalog.snapshot import Catalog
from shared.telemetry.models import HubMessage
from shared.timestamps import format_rfc3339

type CurrentCatalog = Callable[[], Awaitable[Catalog]]
"""Returns the cached catalog of this process. Called for each batch, so it must be cheap."""

type RequireSpace = Callable[[], Awaitable[None]]
"""Raises STORAGE_FULL ``STORAGE_FULL`` if the disk of the embedded hub is nearly full."""


class EventSender(Protocol):
    """Sender of messages to an event hub."""

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages; return after the hub has stored all messages durably.

        Messages with the same partition key keep their order. After an error, the caller can send again; the hub can
        then contain some messages twice.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE``; THROTTLED ``THROTTLED`` if the hub has stored no
                message.
        """
        ...


@dataclass(frozen=True, slots=True)
class ArrivedMessages:
    """Messages that arrived in one batch, for one connection and from one partition of a hub.

    Attributes:
        connection: lookup (id in URLs) of the connection, or ``_unrouted`` for messages without a connection.
        source: hub and partition of the messages; sequence numbers can be compared only within a source.
        sequence_numbers: sequence numbers of the messages, ascending; at least one.
        first_message: earliest enqueued time of the messages.
        last_message: latest enqueued time of the messages.
        mismatched: sequence numbers of the messages with a value that does not have its declared type.
    """

    connection: str
    source: str
    sequence_numbers: tuple[int, ...]
    first_message: datetime
    last_message: datetime
    mismatched: frozenset[int] = frozenset()

    def list_uncounted_sequence_numbers(
        self, highest_counted_number: int | None, latest_counted_time: str
    ) -> Sequence[int]:
        """Return the sequence numbers of the messages that are not counted yet.

        A new hub under the same name, for instance after a failover to another region, reuses sequence numbers. If all
        messages are later than every counted message, none of them is a redelivery, whatever their numbers are.

        Args:
            highest_counted_number: highest sequence number that is counted for the connection and the source; None if
                no message is counted yet.
            latest_counted_time: latest enqueued time of the counted messages, as RFC 3339 text; empty if no message is
                counted yet.
        """
        if highest_counted_number is None or format_rfc3339(self.first_message) > latest_counted_time:
            return self.sequence_numbers
        return [number for number in self.sequence_numbers if number > highest_counted_number]


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """Status and message statistics of a connection.

    Attributes:
        status: CONNECTING, CONNECTED, DISCONNECTED or ERROR.
        messages_received: number of hub events; an event counts once for any number of deliveries. A message that a
            caller sends twice is two events.
        last_message: time of the latest message; None before the first message.
        type_mismatches: number of these hub events with a value that does not have its declared type.
    """

    status: str
    messages_received: int
    last_message: datetime | None
    type_mismatches: int = 0


class ConnectionStateStore(Protocol):
    """Storage for the status and the message statistics of connections."""

    async def add_arrived_messages_to_counts(self, arrivals: Sequence[ArrivedMessages]) -> None:
        """Add messages that arrived to the counts of their connections; each message is counted once.

        The store skips messages up to the highest sequence number that it has counted for their source (hub
        partition), unless the hub was reset; see :meth:`ArrivedMessages.list_uncounted_sequence_numbers`. Each message
        can move the time of the latest message forward. If that time is in the future by more than ``CLOCK_TOLERANCE``,
        the clock was set back; a new message of any source then replaces it by its own time or the current time.
        """
        ...

    async def set_status(self, connection_lookups: Collection[str], status: str) -> None:
        """Set the status of connections: CONNECTING, CONNECTED, DISCONNECTED or ERROR."""
        ...

    async def load_statuses_by_connection(self) -> Mapping[str, str]:
        """Return the status of each connection, without reading the message counts, which are many times larger.

        The keys of the mapping are lookups (ids in URLs). A connection that is missing has the status CONNECTING.
        """
        ...

    async def load_states_by_connection(self) -> Mapping[str, ConnectionState]:
        """Return the state of every known connection; the keys of the mapping are lookups (ids in URLs).

        If the time of a latest message is in the future by more than ``CLOCK_TOLERANCE``, the clock was set back. The
        store replaces the time by the current time once, and returns this time from then on.
        """
        ...
