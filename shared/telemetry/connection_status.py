"""Status of connections, derived from their definitions, their stored state and the Event Hubs of this deployment."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.models import Connection
from shared.telemetry.event_hub_sources import EventHubSource
from shared.telemetry.ports import ConnectionState, ConnectionStateStore
from shared.timestamps import format_rfc3339

CONNECTING: Final = "CONNECTING"
"""Status of a connection from which no message has arrived since it was declared or enabled."""


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """Status of a telemetry connection.

    Attributes:
        status: CONNECTING, CONNECTED, DISCONNECTED or ERROR.
        reason: cause of the status ERROR, if known; else None.
    """

    status: str
    reason: str | None = None


class ConnectionStatuses:
    """Derives the status of connections.

    Args:
        sources: Event Hubs and consumer groups that this deployment reads.
    """

    def __init__(self, sources: Collection[EventHubSource]) -> None:
        self._sources = frozenset(sources)

    def derive_status(self, connection: Connection, state: ConnectionState | None) -> ConnectionStatus:
        """Derive the status of a connection.

        A disabled connection is always DISCONNECTED. The status is ERROR if the connection has an Event Hub that this
        deployment does not read. Otherwise it is the stored status, or CONNECTING without a stored state.
        """
        if not connection.enabled:
            return ConnectionStatus("DISCONNECTED")
        hub = connection.source.event_hub
        if hub is not None and EventHubSource(hub, connection.source.consumer_group) not in self._sources:
            wanted = f"{hub}/{connection.source.consumer_group}"
            return ConnectionStatus("ERROR", f"The setting EVENT_HUB_SOURCES does not name {wanted}.")
        return ConnectionStatus(CONNECTING if state is None else state.status)


async def reset_connection_statuses(states: ConnectionStateStore, connection_lookups: Collection[str]) -> None:
    """Reset the stored status of connections that are disabled or missing, before they are enabled or created.

    Their status is then CONNECTING until their next message. The stored status of a disabled or missing connection is
    not shown, so it may be reset even if the change is not stored later.
    """
    stored = await states.load_statuses_by_connection()
    changed = [each for each in connection_lookups if stored.get(each, CONNECTING) != CONNECTING]
    if changed:
        await states.set_status(changed, CONNECTING)


def connection_statistics_to_json(state: ConnectionState | None) -> dict[str, Any]:
    """Return the message statistics of a connection as a JSON object; without a stored state, all counts are 0."""
    if state is None:
        return {"messagesReceived": 0, "lastMessage": None, "typeMismatches": 0}
    last = state.last_message
    return {
        "messagesReceived": state.messages_received,
        "lastMessage": None if last is None else format_rfc3339(last),
        "typeMismatches": state.type_mismatches,
    }
