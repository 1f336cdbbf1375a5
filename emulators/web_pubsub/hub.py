"""Hub of the Web PubSub emulator: the connections of clients by id, group and user."""

import asyncio
from collections.abc import Callable, Collection, Iterable

from emulators.web_pubsub.connection import NORMAL, ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload

_NONE_EXCLUDED: frozenset[str] = frozenset()


class Hub:
    """Set of connected clients that exchange messages; a group exists as long as it has a client.

    Args:
        name: name of the hub.
        count_clients: function that is called with 1 or -1 when a client connects or disconnects.
        close_code: WebSocket close code for connections that a request to the REST API closes.
    """

    def __init__(
        self, name: str, count_clients: Callable[[int], None] = lambda _change: None, close_code: int = NORMAL
    ) -> None:
        self.name = name
        self._count_clients = count_clients
        self.close_code = close_code
        self.connections: dict[str, ClientConnection] = {}
        self._groups: dict[str, dict[str, ClientConnection]] = {}
        self._users: dict[str, dict[str, ClientConnection]] = {}

    def add(self, connection: ClientConnection, groups: Iterable[str] = ()) -> None:
        """Add a client to the hub and to its initial groups."""
        self.connections[connection.id] = connection
        self._count_clients(1)
        if connection.user_id is not None:
            self._users.setdefault(connection.user_id, {})[connection.id] = connection
        for group in groups:
            self.join_group(connection, group)

    def remove(self, connection: ClientConnection) -> None:
        """Remove a client from the hub and all groups, and release the resources of its connection."""
        self.leave_all_groups(connection)
        if self.connections.pop(connection.id, None) is not None:
            self._count_clients(-1)
        if connection.user_id is not None:
            _remove_from_index(self._users, connection.user_id, connection)
        connection.dispose()

    def join_group(self, connection: ClientConnection, group: str) -> None:
        """Add a client to a group, unless the client has disconnected."""
        if connection.id in self.connections:
            self._groups.setdefault(group, {})[connection.id] = connection
            connection.groups.add(group)

    def leave_group(self, connection: ClientConnection, group: str) -> None:
        """Remove a client from a group."""
        _remove_from_index(self._groups, group, connection)
        connection.groups.discard(group)

    def leave_all_groups(self, connection: ClientConnection) -> None:
        """Remove a client from all its groups."""
        for group in tuple(connection.groups):
            self.leave_group(connection, group)

    def get_group_connections(self, group: str) -> Collection[ClientConnection]:
        """Return the connections of the clients in a group."""
        return self._groups.get(group, {}).values()

    def get_user_connections(self, user_id: str) -> Collection[ClientConnection]:
        """Return the connections of all clients of a user."""
        return self._users.get(user_id, {}).values()

    async def publish(self, group: str, data: bytes, data_type: DataType = DataType.JSON) -> None:
        """Send a message to all clients in a group, without waiting for slow clients.

        Args:
            group: name of the group.
            data: content of the message as bytes.
            data_type: type of the content.
        """
        await self.deliver(Payload(data, data_type, group=group), tuple(self.get_group_connections(group)))

    async def deliver(
        self, payload: Payload, connections: Iterable[ClientConnection], excluded_ids: Collection[str] = _NONE_EXCLUDED
    ) -> None:
        """Send a message to the given clients, except those whose connection id is excluded.

        The method then yields to the event loop, so that sockets can write. It waits a moment for clients whose queues
        are half full. Otherwise a large batch would fill the queues of all clients, however fast they read.
        """
        filling = [
            each for each in connections if each.id not in excluded_ids and each.send_and_check_if_wait_needed(payload)
        ]
        await asyncio.sleep(0)
        if filling:
            await asyncio.gather(*(connection.wait_for_queue_room() for connection in filling))


def _remove_from_index(index: dict[str, dict[str, ClientConnection]], key: str, connection: ClientConnection) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(connection.id, None)
        if not members:
            del index[key]
